"""Rows in the forms in which ADBC carries them into Postgres and back.

A type that it has no form for goes as the next one. An interval comes as its microseconds: ADBC itself would make
months, days and nanoseconds of it, which end at 292 years and are no duration. A day of an interval counts 24 hours, as
clients write a duration of a day; one with months has no length and comes as a null, which is no value that was
written. https://www.postgresql.org/docs/current/functions-datetime.html (`extract` is exact since Postgres 14)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.check.canonical import load_frame
from harness.model import LabError
from harness.transports.postgres.sql import identifier, literal

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_MICROSECONDS = (
    "CASE WHEN extract(year FROM {0}) = 0 AND extract(month FROM {0}) = 0 "
    "THEN (extract(epoch FROM {0}) * 1000000)::bigint END AS {0}"
)


def in_order(parquet: str | Path, kinds: dict[str, str], order: Sequence[str]) -> pa.Table:
    """Return the rows of a file sorted, as ADBC ingests them."""
    frame = load_frame(parquet, "polars", kinds)
    return frame.with_columns([_ingestible(frame[name], kind) for name, kind in kinds.items()]).sort(order).to_arrow()


def streamed(parquet: str | Path, kinds: dict[str, str]) -> pa.RecordBatchReader:
    """Return the rows of a file as ADBC ingests them, a piece at a time: it may be larger than memory."""
    import polars as pl
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

    def made(batch: pa.RecordBatch) -> pa.Table:
        frame = pl.DataFrame(pl.from_arrow(batch))
        return frame.select([_ingestible(frame[name], kind) for name, kind in kinds.items()]).to_arrow()

    file = ParquetFile(parquet)
    first = made(pa.RecordBatch.from_pylist([], file.schema_arrow))
    pieces = (batch for piece in file.iter_batches() for batch in made(piece).cast(first.schema).to_batches())
    return pa.RecordBatchReader.from_batches(first.schema, pieces)


def _ingestible(series: pl.Series, kind: str) -> pl.Series:
    """Return a column as ADBC ingests it: a UUID as 16 bytes, and what it has no type of Postgres for as the next."""
    import polars as pl

    if kind == "uuid":  # text is refused (SQLSTATE 22P03)
        return series.str.replace_all("-", "", literal=True).str.decode("hex")
    wider = {"category": pl.String, "int8": pl.Int16, "uint8": pl.Int16, "uint16": pl.Int32, "uint32": pl.Int64}
    return series.cast(pl.Decimal(20, 0) if kind == "uint64" else wider.get(kind, series.dtype))


def question(table: str) -> str:
    """Return the query for the columns of a table: their names and types."""
    return (
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute "
        f"WHERE attrelid = {literal(identifier(table))}::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )


def selection(columns: Iterable[tuple[Any, ...]]) -> str:
    """Return what to select of a table so that ADBC brings every value; `columns` answer its `question`."""
    found = {name: of == "interval" for name, of in columns}
    if not any(found.values()):
        return "*"
    named = ((identifier(name), interval) for name, interval in found.items())
    return ", ".join(_MICROSECONDS.format(name) if interval else name for name, interval in named)


def require_kinds(answer: pa.Table) -> pa.Table:
    """Return the rows of a person's query. Raises LabError for a column that no frame has in the form it came in."""
    import pyarrow as pa

    for field in answer.schema:
        if pa.types.is_interval(field.type):
            raise LabError(
                f'column "{field.name}": a query brings an interval as months, days and nanoseconds, which no frame '
                "holds; ask for its extract(epoch FROM ...), or give the data as a file"
            )
    return answer
