"""Rows in the forms in which ADBC carries them into Postgres and back.

A type that ADBC lacks goes as the next larger one. ADBC would silently change or refuse columns of two types:

- It turns an interval into months, days and nanoseconds, which end at 292 years and are not a duration. The lab
  selects its microseconds instead, with `extract`, which is exact since Postgres 14. A day counts 24 hours, as clients
  write a duration of a day. An interval with months has no fixed length and arrives as a null, which no client wrote.
  https://www.postgresql.org/docs/current/functions-datetime.html
- It flattens an array of several dimensions into a list of all items. It does not ingest lists of lists, of decimals
  or of timestamps. They go as array literals through a temporary table, whose rows the server casts. Arrays of several
  dimensions and of decimals come back as JSON.
  https://www.postgresql.org/docs/current/arrays.html

It assumes UTF-8 for all strings. Strings of a database in another encoding arrive as the server's bytes, whatever the
connection's encoding. In SQL_ASCII these are the bytes that a client wrote.
https://www.postgresql.org/docs/current/functions-binarystring.html
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from harness.check.canonical import NotConvertible, load_frame
from harness.check.logical_types import depth, digits, is_wide, items, plain, polars_dtype, stored
from harness.model import Scalar
from harness.systems.postgres.tables import STORED, column_type
from harness.transports.postgres.sql import identifier, identifiers, literal

Columns = Sequence[tuple[Scalar, ...]]  # name, type and declared dimensions of each, and the database's encoding
_MICROSECONDS = (
    "CASE WHEN extract(year FROM {0}) = 0 AND extract(month FROM {0}) = 0 "
    "THEN (extract(epoch FROM {0}) * 1000000)::bigint END"
)
_JSON = "array_to_json({0})::text"
_BYTES = "convert_to({0}::text, '{1}')"
_STRINGS = {"text", "character varying", "json", "jsonb"}
# Array type -> conversion of a JSON item to Python; NaN and infinity are strings in JSON.
_ITEMS: dict[str, Callable[[Scalar], Scalar]] = {
    "real[]": float,
    "double precision[]": float,
    "date[]": dt.date.fromisoformat,
    "numeric[]": str,
    "timestamp without time zone[]": dt.datetime.fromisoformat,
    "timestamp with time zone[]": dt.datetime.fromisoformat,
    "time without time zone[]": dt.time.fromisoformat,
    "bytea[]": lambda found: bytes.fromhex(found.removeprefix("\\x")),
}
_AS_STRINGS = {"decimal", "timestamp", "timestamp_tz"}  # list items that ADBC does not ingest


def in_order(parquet: str | Path, logical_types: dict[str, str], order: Sequence[str]) -> pa.Table:
    """Return the rows of a file sorted, as ADBC ingests them."""
    frame = load_frame(parquet, "polars", logical_types)
    made = frame.with_columns([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
    return _with_wide(made.sort(order).to_arrow(), logical_types)


def streamed(parquet: str | Path, logical_types: dict[str, str]) -> pa.RecordBatchReader:
    """Return the rows of a file as ADBC ingests them, in pieces: the file may be larger than memory."""

    def made(batch: pa.RecordBatch) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(batch))
        made = frame.select([_ingestible(frame[name], logical) for name, logical in logical_types.items()])
        return _with_wide(made.to_arrow(), logical_types)

    file = ParquetFile(parquet)
    first = made(pa.RecordBatch.from_pylist([], file.schema_arrow))
    pieces = (batch for piece in file.iter_batches() for batch in made(piece).cast(first.schema).to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, pieces)


def _ingestible(series: pl.Series, logical: str) -> pl.Series:
    """Return a column as ADBC ingests it: a UUID as 16 bytes, and a type that Postgres lacks as the next larger one."""
    if logical == "uuid":  # a string is refused (SQLSTATE 22P03)
        return series.str.replace_all("-", "", literal=True).str.decode("hex")
    if logical == "array(uuid)":
        return series.list.eval(pl.element().str.replace_all("-", "", literal=True).str.decode("hex"))
    if _goes_as_text(logical):
        strings = [None if lists is None else _array(lists) for lists in series.to_list()]
        return pl.Series(series.name, strings, pl.String)
    in_table = stored(logical, STORED)
    return series if in_table == logical else series.cast(polars_dtype(in_table))


def _with_wide(rows: pa.Table, logical_types: dict[str, str]) -> pa.Table:
    """Return rows in which decimals that polars holds as strings are Arrow decimals."""
    for place, (name, logical) in enumerate(logical_types.items()):
        if is_wide(logical):
            rows = rows.set_column(place, name, rows.column(place).cast(pa.decimal256(*digits(logical))))
    return rows


def _goes_as_text(logical: str) -> bool:
    return depth(logical) > 1 or (depth(logical) == 1 and plain(items(stored(logical, STORED))) in _AS_STRINGS)


def _array(value: Scalar) -> str:
    """Return lists as an array literal, with every item in quotes."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"{{{','.join(map(_array, value))}}}"
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def by_strings(table: str, logical_types: dict[str, str]) -> tuple[str, list[str], list[str]]:
    """Return a temporary table for columns that ADBC ingests as strings, and the statements before and after.

    Returns an empty name and no statements if ADBC ingests all columns directly. The table is in the schema `pg_temp`.
    """
    strings = [name for name, logical in logical_types.items() if _goes_as_text(logical)]
    if not strings:
        return "", [], []
    beside = f"{table}_strings"[-60:]
    full, into = f"pg_temp.{identifier(beside)}", identifier(table)
    cast = (
        f"{identifier(name)}::{column_type(logical_types[name])}" if name in strings else identifier(name)
        for name in logical_types
    )
    before = [
        f"DROP TABLE IF EXISTS {full}",
        f"CREATE TEMPORARY TABLE {identifier(beside)} (LIKE {into})",
        f"ALTER TABLE {full} {', '.join(f'ALTER {identifier(name)} TYPE text' for name in strings)}",
    ]
    insertion = f"INSERT INTO {into} ({identifiers(logical_types)}) SELECT {', '.join(cast)} FROM {full}"
    return beside, before, [insertion, f"DROP TABLE {full}"]


def question(table: str) -> str:
    """Return the query for `Columns` of a table."""
    return (
        "SELECT attname, format_type(atttypid, NULL), attndims, getdatabaseencoding() FROM pg_attribute "
        f"WHERE attrelid = {literal(identifier(table))}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )


def select_list(columns: Columns) -> str:
    """Return the select list with which ADBC fetches every value; `columns` answer its `question`."""
    forms = [_form(*column) for column in columns]
    if not any(forms):
        return "*"
    names = [identifier(name) for name, *_ in columns]
    return ", ".join(f"{form} AS {name}" if form else name for name, form in zip(names, forms, strict=True))


def _form(name: str, of: str, dimensions: int, encoding: str) -> str:
    """Return the expression that fetches a column; empty if the column arrives unchanged."""
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
    """Return rows of such a select list with strings instead of bytes, and lists instead of JSON.

    Raises NotConvertible for bytes that are not UTF-8, and if a value lacks the column's number of dimensions.
    """
    for place, (name, of, dimensions, encoding) in enumerate(columns):
        if _as_bytes(of, encoding):
            rows = rows.set_column(place, name, _strings(name, rows.column(place), of))
        if _as_json(of, dimensions, encoding):
            rows = rows.set_column(place, name, _lists(name, rows.column(place), of, max(dimensions, 1)))
    return rows


def _strings(name: str, found: pa.ChunkedArray, of: str) -> pa.ChunkedArray:
    try:
        return found.cast(pa.large_string())
    except pa.ArrowInvalid:
        raise NotConvertible(f"{name}: {of} does not convert to strings, its bytes are not UTF-8") from None


def _lists(name: str, strings: pa.ChunkedArray, of: str, dimensions: int) -> pa.Array:
    item = _ITEMS.get(of, lambda found: found)
    # -0 is not an integer, and a float lacks some digits of a decimal.
    decoder = json.JSONDecoder(
        parse_int=item if item in (float, str) else int, parse_float=item if item is str else None
    )

    def made(value: Scalar) -> Scalar:
        if value is None:
            return None
        return [made(one) for one in value] if isinstance(value, list) else item(value)

    arrow_type = _arrow_type(of)
    for _ in range(dimensions):
        arrow_type = pa.large_list(arrow_type)
    try:
        return pa.array(
            [None if text is None else made(decoder.decode(text)) for text in strings.to_pylist()], arrow_type
        )
    except (TypeError, ValueError):
        raise NotConvertible(f"{name}: {of} does not convert to lists of {dimensions} levels") from None


def _arrow_type(of: str) -> pa.DataType:
    known = {"boolean": pa.bool_(), "smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}
    known |= {"timestamp without time zone": pa.timestamp("us"), "timestamp with time zone": pa.timestamp("us", "UTC")}
    known |= {"bytea": pa.large_binary(), "time without time zone": pa.time64("us")}
    known |= {"real": pa.float32(), "double precision": pa.float64(), "date": pa.date32()}
    return known.get(of.removesuffix("[]"), pa.large_string())
