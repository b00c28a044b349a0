"""Parquet files that a transport wrote, as sums of canonical values, in pieces; see `harness.check.sums`.

Any types are right that hold the same values. They are recorded like those of a frame from a read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.types as of
from pyarrow import parquet

from harness.check import sums
from harness.check.canonical import NotConvertible
from harness.check.sums import Sums
from harness.model import first_line

_TYPES = {
    "boolean": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_tz": pa.timestamp("us", "UTC"),
    "uuid": pa.string(),
    "text": pa.string(),
}
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())


def files_in(folder: str | Path) -> list[Path]:
    """Return the Parquet files in a folder, at any depth, in order."""
    return sorted(path for path in Path(folder).rglob("*.parquet") if path.is_file())


def summed(folder: str | Path, logical_types: Mapping[str, str]) -> tuple[Sums, dict[str, str]]:
    """Sum all rows of a folder's Parquet files; return also the columns with other than canonical types, and these.

    Raises NotConvertible for other columns than expected, and for a value that its canonical type cannot hold.
    """
    files = files_in(folder)
    converted: dict[str, str] = {}
    for file in files:
        converted |= _converted(file, logical_types)
    return sums.of_files(files, logical_types, canonical), converted


def _converted(file: Path, logical_types: Mapping[str, str]) -> dict[str, str]:
    schema = parquet.read_schema(file)
    if sorted(schema.names) != sorted(logical_types):
        raise NotConvertible(
            f"the columns are {', '.join(schema.names) or 'none'} instead of {', '.join(logical_types)}"
        )
    types = {name: schema.field(name).type for name in logical_types}
    return {name: str(found) for name, found in types.items() if not _is_canonical(found, logical_types[name])}


def _is_canonical(type_: pa.DataType, logical: str) -> bool:
    return type_ in _STRINGS if _TYPES[logical] == pa.string() else type_ == _TYPES[logical]


def canonical(batch: pa.RecordBatch, logical_types: Mapping[str, str]) -> pa.RecordBatch:
    """Return a batch with the columns of a canonical frame. Raises NotConvertible for values these cannot hold."""
    try:
        return pa.RecordBatch.from_pydict(
            {name: _column(batch.column(name), logical) for name, logical in logical_types.items()}
        )
    except (pa.ArrowException, ValueError) as error:
        raise NotConvertible(first_line(error)) from None


def _column(column: pa.ChunkedArray, logical: str) -> pa.ChunkedArray:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if of.is_dictionary(column.type):
        column = column.dictionary_decode()
    if logical == "uuid" and column.type not in _STRINGS:
        return column.cast(pa.binary(16))
    if logical == "date" and of.is_timestamp(column.type):
        days = column.cast(pa.date32(), safe=False)
        if not days.cast(column.type).equals(column):
            raise NotConvertible("a date has a time of day")
        return days
    return column.cast(_TYPES[logical])
