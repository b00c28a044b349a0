"""Rows in the forms in which ADBC carries them into Postgres and back.

A type that it has no form for goes as the next one. Columns of two types it would change without a word, or not take:

- Of an interval it makes months, days and nanoseconds, which end at 292 years and are no duration. It comes as its
  microseconds instead, by `extract`, which is exact since Postgres 14. A day of it counts 24 hours, as clients write a
  duration of a day; one with months has no length and comes as a null, which is no value that was written.
  https://www.postgresql.org/docs/current/functions-datetime.html
- Of an array of several dimensions it makes a list of all items, and lists of lists, of decimals or of moments it does
  not ingest. They go as the texts of arrays, through a table beside the right one whose rows the server casts. Those
  of several dimensions and of decimals come back as JSON.
  https://www.postgresql.org/docs/current/arrays.html

It takes all strings for UTF-8. Those of a database in another encoding come as the bytes that the server makes of what
it holds, whatever the encoding of the connection. In SQL_ASCII these are the bytes that somebody has written.
https://www.postgresql.org/docs/current/functions-binarystring.html
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.check.canonical import NotConvertible, load_frame
from harness.check.logical_types import depth, digits, is_wide, items, plain, polars_dtype, stored
from harness.systems.postgres.tables import STORED, column_type
from harness.transports.postgres.sql import identifier, identifiers, literal

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

Columns = Sequence[tuple[Any, ...]]  # name, type and declared dimensions of each, and the encoding of the database
_MICROSECONDS = (
    "CASE WHEN extract(year FROM {0}) = 0 AND extract(month FROM {0}) = 0 "
    "THEN (extract(epoch FROM {0}) * 1000000)::bigint END"
)
_JSON = "array_to_json({0})::text"
_BYTES = "convert_to({0}::text, '{1}')"
_STRINGS = {"text", "character varying", "json", "jsonb"}
# What stands in JSON for an item of an array, as Python takes it; NaN and infinity are texts there.
_ITEMS: dict[str, Callable[[Any], Any]] = {
    "real[]": float,
    "double precision[]": float,
    "date[]": dt.date.fromisoformat,
    "numeric[]": str,
    "timestamp without time zone[]": dt.datetime.fromisoformat,
    "timestamp with time zone[]": dt.datetime.fromisoformat,
    "time without time zone[]": dt.time.fromisoformat,
    "bytea[]": lambda found: bytes.fromhex(found.removeprefix("\\x")),
}
_AS_TEXTS = {"decimal", "timestamp", "timestamp_tz"}  # items of lists that ADBC does not ingest


def in_order(parquet: str | Path, logical_types: dict[str, str], order: Sequence[str]) -> pa.Table:
    """Return the rows of a file sorted, as ADBC ingests them."""
    frame = load_frame(parquet, "polars", logical_types)
    made = frame.with_columns([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
    return _with_wide(made.sort(order).to_arrow(), logical_types)


def streamed(parquet: str | Path, logical_types: dict[str, str]) -> pa.RecordBatchReader:
    """Return the rows of a file as ADBC ingests them, a piece at a time: it may be larger than memory."""
    import polars as pl
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    def made(batch: pa.RecordBatch) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(batch))
        made = frame.select([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
        return _with_wide(made.to_arrow(), logical_types)

    file = ParquetFile(parquet)
    first = made(pa.RecordBatch.from_pylist([], file.schema_arrow))
    pieces = (batch for piece in file.iter_batches() for batch in made(piece).cast(first.schema).to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, pieces)


def _ingestible(series: pl.Series, logical: str) -> pl.Series:
    """Return a column as ADBC ingests it: a UUID as 16 bytes, and what it has no type of Postgres for as the next."""
    import polars as pl

    if logical == "uuid":  # text is refused (SQLSTATE 22P03)
        return series.str.replace_all("-", "", literal=True).str.decode("hex")
    if logical == "array(uuid)":
        return series.list.eval(pl.element().str.replace_all("-", "", literal=True).str.decode("hex"))
    if _goes_as_text(logical):
        texts = [None if lists is None else _array(lists) for lists in series.to_list()]
        return pl.Series(series.name, texts, pl.String)
    in_table = stored(logical, STORED)
    return series if in_table == logical else series.cast(polars_dtype(in_table))


def _with_wide(rows: pa.Table, logical_types: dict[str, str]) -> pa.Table:
    """Return rows in which decimals that polars has as texts are decimals of Arrow."""
    import pyarrow as pa

    for place, (name, logical) in enumerate(logical_types.items()):
        if is_wide(logical):
            rows = rows.set_column(place, name, rows.column(place).cast(pa.decimal256(*digits(logical))))
    return rows


def _goes_as_text(logical: str) -> bool:
    return depth(logical) > 1 or (depth(logical) == 1 and plain(items(stored(logical, STORED))) in _AS_TEXTS)


def _array(value: Any) -> str:
    """Return lists as the text of an array, with every item in quotes."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"{{{','.join(map(_array, value))}}}"
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def by_texts(table: str, logical_types: dict[str, str]) -> tuple[str, list[str], list[str]]:
    """Return a table beside another one for what ADBC ingests of it as texts, and the statements before and after.

    Empty and none where it ingests all as it is. The table is temporary, in the schema `pg_temp`.
    """
    texts = [name for name, logical in logical_types.items() if _goes_as_text(logical)]
    if not texts:
        return "", [], []
    beside = f"{table}_texts"[-60:]
    full, into = f"pg_temp.{identifier(beside)}", identifier(table)
    cast = (
        f"{identifier(name)}::{column_type(logical_types[name])}" if name in texts else identifier(name)
        for name in logical_types
    )
    before = [
        f"DROP TABLE IF EXISTS {full}",
        f"CREATE TEMPORARY TABLE {identifier(beside)} (LIKE {into})",
        f"ALTER TABLE {full} {', '.join(f'ALTER {identifier(name)} TYPE text' for name in texts)}",
    ]
    insertion = f"INSERT INTO {into} ({identifiers(logical_types)}) SELECT {', '.join(cast)} FROM {full}"
    return beside, before, [insertion, f"DROP TABLE {full}"]


def question(table: str) -> str:
    """Return the query for `Columns` of a table."""
    return (
        "SELECT attname, format_type(atttypid, NULL), attndims, getdatabaseencoding() FROM pg_attribute "
        f"WHERE attrelid = {literal(identifier(table))}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )


def selection(columns: Columns) -> str:
    """Return what to select of a table so that ADBC brings every value; `columns` answer its `question`."""
    forms = [_form(*column) for column in columns]
    if not any(forms):
        return "*"
    names = [identifier(name) for name, *_ in columns]
    return ", ".join(f"{form} AS {name}" if form else name for name, form in zip(names, forms, strict=True))


def _form(name: str, of: str, dimensions: int, encoding: str) -> str:
    """Return what brings a column; empty where it comes as it is."""
    quoted = identifier(name)
    if of == "interval":
        return _MICROSECONDS.format(quoted)
    as_json = _as_json(of, dimensions, encoding)
    form = _JSON.format(quoted) if as_json else quoted
    if _as_bytes(of, encoding):
        return _BYTES.format(form, "SQL_ASCII" if encoding == "SQL_ASCII" else "UTF8")
    return form if as_json else ""


def _as_json(of: str, dimensions: int, encoding: str) -> bool:
    return dimensions > 1 or of == "numeric[]" or (of.endswith("[]") and _as_bytes(of, encoding))


def _as_bytes(of: str, encoding: str) -> bool:
    return encoding != "UTF8" and of.removesuffix("[]") in _STRINGS


def brought(rows: pa.Table, columns: Columns) -> pa.Table:
    """Return rows that were selected like this with strings in place of bytes, and lists in place of JSON.

    Raises NotConvertible where bytes are no UTF-8, or there are not as many dimensions as the column has.
    """
    for place, (name, of, dimensions, encoding) in enumerate(columns):
        if _as_bytes(of, encoding):
            rows = rows.set_column(place, name, _strings(name, rows.column(place), of))
        if _as_json(of, dimensions, encoding):
            rows = rows.set_column(place, name, _lists(name, rows.column(place), of, max(dimensions, 1)))
    return rows


def _strings(name: str, found: pa.ChunkedArray, of: str) -> pa.ChunkedArray:
    import pyarrow as pa

    try:
        return found.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise NotConvertible(f"{name}: {of} does not convert to strings, its bytes are no UTF8") from None


def _lists(name: str, texts: pa.ChunkedArray, of: str, dimensions: int) -> pa.Array:
    import pyarrow as pa

    item = _ITEMS.get(of, lambda found: found)
    # -0 is no integer, and a float has not all digits of a decimal.
    decoder = json.JSONDecoder(
        parse_int=item if item in (float, str) else int, parse_float=item if item is str else None
    )

    def made(value: Any) -> Any:
        if value is None:
            return None
        return [made(one) for one in value] if isinstance(value, list) else item(value)

    arrow_type = _arrow_type(of)
    for _ in range(dimensions):
        arrow_type = pa.large_list(arrow_type)
    try:
        return pa.array(
            [None if text is None else made(decoder.decode(text)) for text in texts.to_pylist()], arrow_type
        )
    except (TypeError, ValueError):
        raise NotConvertible(f"{name}: {of} does not convert to lists of {dimensions} levels") from None


def _arrow_type(of: str) -> pa.DataType:
    import pyarrow as pa

    known = {"boolean": pa.bool_(), "smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}
    known |= {"timestamp without time zone": pa.timestamp("us"), "timestamp with time zone": pa.timestamp("us", "UTC")}
    known |= {"bytea": pa.large_binary(), "time without time zone": pa.time64("us")}
    known |= {"real": pa.float32(), "double precision": pa.float64(), "date": pa.date32()}
    return known.get(of.removesuffix("[]"), pa.large_string())
