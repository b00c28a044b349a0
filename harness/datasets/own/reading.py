"""A file as a polars frame: Parquet, CSV, or Arrow (file or stream, also called Feather)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyarrow import ipc, parquet

from harness.datasets.own import arrow_types
from harness.model import LabError

_READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": lambda path: pl.read_parquet(path, memory_map=False, hive_partitioning=False),
    "arrow": lambda path: pl.read_ipc(path),
    "arrow_stream": pl.read_ipc_stream,
    # Types from all rows: a column that is whole until the last row is none of integers.
    "csv": lambda path: pl.read_csv(path, infer_schema_length=None, try_parse_dates=True),
    "tsv": lambda path: pl.read_csv(path, infer_schema_length=None, try_parse_dates=True, separator="\t"),
}
_TABLES: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda path: parquet.read_table(path, memory_map=False, partitioning=None),
    "arrow": lambda path: ipc.open_file(path.read_bytes()).read_all(),
    "arrow_stream": lambda path: ipc.open_stream(path.read_bytes()).read_all(),
}
_OF_POLARS = pl.exceptions.PolarsError, pl.exceptions.PanicException
_OF_ARROW = ArithmeticError, TypeError, ValueError, NotImplementedError  # for values that it has no type for
_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow_stream",
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow_stream"}


def read(path: Path) -> pl.DataFrame:
    """Return what stands in a file; its first bytes, and for texts its name, say what it is. Raises LabError."""
    found = form(path)
    try:
        if found in ("csv", "tsv"):
            require_different(_heading(path, found), str(path))
            return _READ[found](path)
        schema = _schema(path, found)
        require_different(list(schema.names), str(path))
        arrow_types.require_known(schema)
        if arrow_types.for_polars(schema):
            return _with_uuids(_READ[found](path), schema)
        return _of_arrow(_TABLES[found](path))
    except (*_OF_POLARS, NotImplementedError, OSError, ValueError) as error:
        _require_narrow(path, found)
        reason = str(error).strip().partition("\n")[0]
        raise LabError(f"{path}: expected {found.replace('_', ' ')}, but it cannot be read: {reason}") from None


def _require_narrow(path: Path, found: str) -> None:
    """Raise LabError with the column of integers of 128 bits, which polars writes and Arrow does not read."""
    schemas: dict[str, Callable[[Path], Any]] = {"parquet": pl.read_parquet_schema, "arrow": pl.read_ipc_schema}
    with suppress(*_OF_POLARS, OSError, ValueError):
        for name, dtype in schemas[found](path).items() if found in schemas else ():
            if dtype in (pl.Int128, pl.UInt128):
                raise LabError(
                    f'column "{name}": expected integers of 64 bits at most, found {dtype}; cast it to one of these, '
                    "to decimals or to text"
                )


def of_memory(data: Any) -> pl.DataFrame:
    """Return a frame of pandas or polars, or an Arrow table, as a polars frame. Raises LabError for all else."""
    library, name = type(data).__module__.partition(".")[0], type(data).__name__
    if (library, name) == ("polars", "DataFrame"):
        return data
    if (library, name) not in (("pandas", "DataFrame"), ("pyarrow", "Table")):
        raise LabError(f"expected a DataFrame of pandas or polars or a Table of pyarrow, found {library}.{name}")
    names = list(map(str, data.columns if library == "pandas" else data.column_names))
    require_different(names, "the frame")
    try:
        return _of_arrow(_of_pandas(data) if library == "pandas" else data)
    except (*_OF_POLARS, *_OF_ARROW) as error:
        which = _not_of_arrow(data) if library == "pandas" else ""
        reason = str(error.args[0] if len(error.args) == 2 else error).strip().partition("\n")[0]
        reason = reason.encode(errors="backslashreplace").decode()  # also that of half a character
        raise LabError(
            f"{which}expected values of one type that Arrow has, found others ({reason}); cast them, or make them text"
        ) from None


def _of_pandas(frame: Any) -> Any:
    """Return a frame of pandas as a table of Arrow. Raises LabError where that would change objects of mixed types."""
    named = frame.set_axis(list(map(str, frame.columns)), axis="columns")
    zoned = {name: one.dt.tz_convert("UTC") for name, one in named.items() if hasattr(one.dtype, "tz")}
    table = pa.Table.from_pandas(named.assign(**zoned) if zoned else named, preserve_index=False)
    for field in table.schema:
        objects = named[field.name] if named[field.name].dtype == object else ()
        if pa.types.is_date32(field.type) and any(isinstance(one, datetime) for one in objects):
            raise LabError(f'column "{field.name}": expected days or moments, found both; make all of them moments')
        if pa.types.is_binary(field.type) and any(isinstance(one, str) for one in objects):
            raise LabError(f'column "{field.name}": expected bytes or texts, found both; make all of them texts')
    return table


def _not_of_arrow(frame: Any) -> str:
    """Name the first column of a frame of pandas that Arrow has no type for."""
    for place, name in enumerate(map(str, frame.columns)):
        try:
            pa.array(frame.iloc[:, place], from_pandas=True)
        except _OF_ARROW:
            return f'column "{name}": '
    return ""


def _of_arrow(table: Any) -> pl.DataFrame:
    arrow_types.require_known(table.schema)
    arrow_types.require_times(table)
    return _with_uuids(pl.DataFrame(pl.from_arrow(_in_utc(arrow_types.narrowed(table)))), table.schema)


def _in_utc(table: Any) -> Any:
    """Return a table of Arrow with the instants in UTC whose zones are offsets: polars knows zones by their names."""
    if not (offsets := arrow_types.with_offsets(table.schema)):
        return table
    utc = [one.with_type(pa.timestamp(one.type.unit, "UTC")) if one.name in offsets else one for one in table.schema]
    return table.cast(pa.schema(utc))


def not_for_polars(path: Path) -> tuple[list[str], list[str]]:
    """Return the columns of a file whose zone is an offset, and those of decimals that polars does not read."""
    found = form(path)
    if found in ("csv", "tsv"):
        return [], []
    schema = _schema(path, found)
    return arrow_types.with_offsets(schema), arrow_types.with_wide(schema)


def _with_uuids(frame: pl.DataFrame, schema: Any) -> pl.DataFrame:
    """Return a frame in which UUIDs of a schema of Arrow are still known as such: polars takes them for bytes."""
    known = [frame[name] for name in arrow_types.with_uuids(schema)]
    return frame.with_columns([one.ext.to(pl.Extension("arrow.uuid", one.dtype)) for one in known])


def require_different(names: list[str], where: str) -> None:
    """Raise LabError where two columns have one name."""
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise LabError(f'expected columns of different names in {where}, found "{twice[0]}" twice')


def form(path: Path) -> str:
    """Say what a file is: parquet, arrow, arrow_stream, csv or tsv. Raises LabError for all else."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing"
        raise LabError(f"expected a file of Parquet, CSV or Arrow at {path}, found {found}")
    try:
        with path.open("rb") as file:
            start = file.read(6)
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from None
    for magic, of_magic in _MAGIC.items():
        if start.startswith(magic):
            return of_magic
    of_suffix = _SUFFIXES.get(path.suffix.lower(), "")
    if of_suffix not in ("csv", "tsv"):
        known = ", ".join(_SUFFIXES)
        raise LabError(f"expected a file of Parquet, CSV or Arrow ({known}), found something else in {path}")
    return of_suffix


def _heading(path: Path, found: str) -> list[str]:
    """Return the names in a CSV as they stand there: polars gives the second of one name another."""
    separator = "\t" if found == "tsv" else ","
    first = pl.read_csv(path, separator=separator, has_header=False, n_rows=1, infer_schema=False)
    return [str(name) for name in first.row(0)] if first.height else []


def _schema(path: Path, found: str) -> Any:
    """Return the schema of Arrow of what stands in a file."""
    if found == "parquet":
        return parquet.read_schema(path)
    with pa.OSFile(str(path)) as file:
        return (ipc.open_file if found == "arrow" else ipc.open_stream)(file).schema
