"""Parquet and Arrow files as frames: polars reads them, pyarrow what polars cannot; each checks the other."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc, parquet

from harness.datasets.user_data import arrow_types, compared
from harness.datasets.user_data.arrow_frames import OF_POLARS, of_arrow, quietly, require_zones, with_uuids
from harness.model import LabError, Scalar

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": lambda path: pl.read_parquet(path, memory_map=False, hive_partitioning=False),
    "arrow": lambda path: pl.read_ipc(path),
    "arrow_stream": pl.read_ipc_stream,
}
_TABLES: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": lambda path: parquet.read_table(path, memory_map=False, partitioning=None),
    "arrow": lambda path: ipc.open_file(path.read_bytes()).read_all(),
    "arrow_stream": lambda path: ipc.open_stream(path.read_bytes()).read_all(),
}
_POLARS = {
    "parquet": "frame = polars.read_parquet({}, hive_partitioning=False)",
    "arrow": "frame = polars.read_ipc({})",
    "arrow_stream": "frame = polars.read_ipc_stream({})",
}
_ARROW = {
    "parquet": ("import pyarrow.parquet", "table = pyarrow.parquet.read_table({}, partitioning=None{})"),
    "arrow": ("import pyarrow.ipc", "table = pyarrow.ipc.open_file({}).read_all(){}"),
    "arrow_stream": ("import pyarrow.ipc", "table = pyarrow.ipc.open_stream({}).read_all(){}"),
}
_BUFFER = 1 << 16
_INT96 = "INT96"
_FAR = (-(2**63), 2**63 - 1)
_INTO_MICROSECONDS = ', coerce_int96_timestamp_unit="us"'


@dataclass(frozen=True)
class OfFile:
    """A file's frame, the lines of a program that read it, and how much of it was compared.

    A program that reads through Arrow gets a `table`, for columns with an offset zone or wide decimals.
    """

    frame: pl.DataFrame
    lines: tuple[str, ...]
    compared: str
    offsets: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()


def read(path: Path, form: str, where: str) -> OfFile:
    """Return the content of a Parquet or Arrow file. Raises LabError with a column that no frame holds."""
    try:
        with quietly():
            return _read(path, form, where)
    except (*OF_POLARS, NotImplementedError, OSError, ValueError) as error:
        _require_narrow(path, form)
        reason = str(error).strip().partition("\n")[0]
        raise LabError(f"{where}: expected {form.replace('_', ' ')}, but it cannot be read: {reason}") from None


def _read(path: Path, form: str, where: str) -> OfFile:
    # Avoid reading a whole column for one page.
    piecewise = {"memory_map": False, "pre_buffer": False, "buffer_size": _BUFFER}
    file = parquet.ParquetFile(path, **piecewise) if form == "parquet" else None
    if file is not None:
        _require_parquet(file)
    schema = file.schema_arrow if file is not None else _schema(path, form)
    require_different(list(schema.names), where)
    arrow_types.require_known(schema)
    require_zones(schema)
    old = {*_of_leaves(file, "physical_type", _INT96)} if file is not None else set()
    if old:
        _require_no_zone(file, old)
    far = _int96(path) if old else ""
    if arrow_types.for_polars(schema) and not far:
        frame = with_uuids(_READ[form](path), schema)
        rows = _compare(frame, path, form, file, schema, where)
        return OfFile(frame, (_POLARS[form],), rows)
    table = (
        parquet.read_table(path, memory_map=False, partitioning=None, coerce_int96_timestamp_unit="us") if far else None
    )
    table = _TABLES[form](path) if table is None else table
    frame = of_arrow(table)
    if file is not None:
        _compare_with_polars(table, path, file, where)
    rows = _compare_table(frame, table, where)
    found = schema if not far else table.schema
    lines = tuple(line.format("{}", far) for line in _ARROW[form])
    return OfFile(frame, lines, rows, tuple(arrow_types.with_offsets(found)), tuple(arrow_types.with_wide(found)))


def _require_parquet(file: pq.ParquetFile) -> None:
    """Raise LabError with a column whose Parquet type Arrow reads as another."""
    if variant := re.search(r"group (?:field_id=\S+ )?(.+?) \(Variant\(", str(file.schema)):
        raise LabError(
            f'column "{variant[1]}": found a VARIANT of Parquet, which no frame holds; cast it to JSON, or to a string'
        )
    if name := next(_of_leaves(file, "converted_type", "INTERVAL"), ""):
        raise LabError(
            f'column "{name}": found an INTERVAL of Parquet, which no frame holds; cast it to a string, or to seconds'
        )


def _of_leaves(file: pq.ParquetFile, what: str, wanted: str) -> Iterator[str]:
    """Yield the columns of a Parquet file that have a leaf whose attribute `what` is the wanted one."""
    leaves = (file.schema.column(place) for place in range(len(file.schema)))
    yield from (str(leaf.path).partition(".")[0] for leaf in leaves if getattr(leaf, what) == wanted)


def _require_no_zone(file: pq.ParquetFile, old: set[str]) -> None:
    """Raise LabError with an INT96 column that had a time zone in Arrow: polars keeps it, pyarrow drops it."""
    written = (file.metadata.metadata or {}).get(b"ARROW:schema", b"")
    for field in ipc.read_schema(pa.BufferReader(base64.b64decode(written))) if written else ():
        zoned = any(getattr(part, "tz", None) for part in arrow_types.parts(field.type))
        if zoned and field.name.partition(".")[0] in old:
            raise LabError(
                f'column "{field.name}": timestamps of INT96 with a time zone, which some readers take for none; '
                "write them as INT64"
            )


def _int96(path: Path) -> str:
    """Return pyarrow's option for INT96 timestamps; empty if nanoseconds hold them all.

    Nanoseconds before 1677 and after 2262 wrap around; microseconds lose the last three digits. Both together determine
    the file's values. Raises LabError with the first row that neither holds.
    """
    both = [
        parquet.read_table(path, memory_map=False, partitioning=None, coerce_int96_timestamp_unit=unit)
        for unit in ("ns", "us")
    ]
    beyond, finer = False, None
    for field in both[1].schema:
        fine, coarse = (_numbers(table[field.name]) for table in both)
        for one, other in zip(fine, coarse, strict=True):
            cut = one - other * 1_000  # it wraps around like the nanoseconds
            beyond |= bool(((other * 1_000) // 1_000 != other).any())
            if (rows := (cut != 0).fill_null(False).arg_true()).len() and finer is None:
                finer = f'column "{field.name}", row {rows[0]}'
    if beyond and finer:
        raise LabError(
            f"{finer}: found timestamps of INT96 with nanoseconds, and others before 1677 or after 2262, which no "
            "type holds both; round them to microseconds, or make those beyond null"
        )
    return _INTO_MICROSECONDS if beyond else ""


def _numbers(column: pa.ChunkedArray) -> Iterator[pl.Series]:
    """Yield the timestamps in an Arrow column, at any depth, as numbers."""
    for chunk in column.chunks:
        for leaf in arrow_types.leaves(chunk):
            if pa.types.is_timestamp(leaf.type):
                yield pl.Series(pl.from_arrow(leaf.cast(pa.int64())))


def _compare(frame: pl.DataFrame, path: Path, form: str, file: pq.ParquetFile, schema: pa.Schema, where: str) -> str:
    """Compare polars' values with pyarrow's; return how much was compared."""
    rows, width = frame.shape
    if file is None:
        return _compare_arrow(frame, path, form, where)
    groups = _groups(rows, file, where)
    small = path.stat().st_size < compared.SMALL
    if rows * width <= compared.WHOLE and small:
        compared.require_same(frame, _TABLES["parquet"](path), 0, where)
        return "every value"
    names = schema.names if small else compared.chosen(file, schema)
    wanted = compared.pieces(rows, max(width, compared.WHOLE // rows + 1))
    for first, batch in compared.batches(file, names, wanted, groups):
        compared.require_same(frame[batch.schema.names][first : first + batch.num_rows], batch, first, where)
    for name in _other_ends(frame, file):
        table = parquet.read_table(path, columns=[name], memory_map=False, partitioning=None)
        compared.require_same(frame[[name]], table, 0, where)
    of = "each column" if len(names) == width else f"{len(names)} of {width} columns"
    return f"{wanted[0][1]:,} of {rows:,} rows of {of}, and the nulls and ends of columns"


def _other_ends(frame: pl.DataFrame, file: pq.ParquetFile) -> Iterator[str]:
    """Yield the columns whose nulls and extremes differ from the footer's, or are missing there."""
    metadata, columns = file.metadata, {column.name: column for column in frame}
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    for place in range(metadata.num_columns):
        name = metadata.schema.column(place).path
        if (column := columns.get(name)) is None:
            continue  # part of a list or a struct
        told = [group.column(place).statistics for group in groups]
        if any(one is None or one.null_count is None for one in told):
            if column.dtype != pl.String:
                yield name
        elif sum(one.null_count for one in told) != column.null_count():
            yield name
        elif column.dtype.is_signed_integer() or column.dtype in (pl.Date, pl.Datetime):
            ends = [one for one in told if one.has_min_max]
            if ends and _ends(column) != (min(one.min_raw for one in ends), max(one.max_raw for one in ends)):
                yield name


def _ends(column: pl.Series) -> tuple[Scalar, Scalar]:
    """Return a column's smallest and largest number, also for times; asking polars takes longer."""
    if column.dtype.is_integer():
        return column.min(), column.max()
    ends = pc.min_max(column.to_arrow().view(pa.int32() if column.dtype == pl.Date else pa.int64())).as_py()
    return ends["min"], ends["max"]


def _compare_arrow(frame: pl.DataFrame, path: Path, form: str, where: str) -> str:
    """Compare polars' values of an Arrow file with pyarrow's batches; return how much was compared."""
    whole = frame.height * frame.width <= compared.WHOLE
    rows = seen = 0
    with pa.memory_map(str(path)) as source:
        reader = ipc.open_file(source) if form == "arrow" else ipc.open_stream(source)
        known = (reader.get_batch(number) for number in range(reader.num_record_batches)) if form == "arrow" else reader
        for number, batch in enumerate(known):
            size = batch.num_rows if whole else max(batch.num_rows // (1 if number == 0 else 50), 1)
            size = min(size, compared.WHOLE // frame.width, batch.num_rows)
            compared.require_same(frame.slice(rows, size), batch.slice(0, size), rows, where)
            rows, seen = rows + batch.num_rows, seen + size
    if rows != frame.height:
        raise LabError(f"{where}: one reader finds {frame.height:,} rows, another {rows:,}; write the file again")
    return "every value" if whole else f"{seen:,} of {rows:,} rows"


def _groups(rows: int, file: pq.ParquetFile, where: str) -> list[int]:
    """Return the sizes of a file's row groups. Raises LabError if they do not match the rows read."""
    groups = [file.metadata.row_group(place).num_rows for place in range(file.metadata.num_row_groups)]
    if sum(groups) != rows:
        raise LabError(f"{where}: its footer has {sum(groups):,} rows, and {rows:,} were read; write the file again")
    return groups


def _compare_with_polars(table: pa.Table, path: Path, file: pq.ParquetFile, where: str) -> None:
    """Compare Arrow's values of a Parquet file with polars', except for columns that polars reads differently.

    For a large file it compares the first rows, so that polars decodes as little as possible.
    """
    _groups(table.num_rows, file, where)
    far = {*_of_leaves(file, "physical_type", _INT96)}
    names = [one.name for one in table.schema if one.name not in far and arrow_types.for_polars(pa.schema([one]))]
    if names and not arrow_types.with_offsets(table.schema):  # polars opens no file with these
        size = compared.pieces(table.num_rows, len(names))[0][1]
        other = pl.read_parquet(path, columns=names, n_rows=size, memory_map=False, hive_partitioning=False)
        compared.require_same(with_uuids(other, table.schema), table.slice(0, size), 0, where)


def _compare_table(frame: pl.DataFrame, table: pa.Table, where: str) -> str:
    """Compare a frame with the Arrow table that it was made from; return how much was compared."""
    for first, size in compared.pieces(*frame.shape):
        compared.require_same(frame.slice(first, size), table.slice(first, size), first, where)
    return compared.said(*frame.shape)


def _require_narrow(path: Path, form: str) -> None:
    """Raise LabError with a column of 128-bit integers, which polars writes and Arrow cannot read."""
    schemas: dict[str, Callable[[Path], pa.Table]] = {"parquet": pl.read_parquet_schema, "arrow": pl.read_ipc_schema}
    with suppress(*OF_POLARS, OSError, ValueError), quietly():
        for name, dtype in schemas[form](path).items() if form in schemas else ():
            if dtype in (pl.Int128, pl.UInt128):
                raise LabError(
                    f'column "{name}": expected integers of 64 bits at most, found {dtype}; cast it to one of these, '
                    "to decimals or to text"
                )


def require_different(names: list[str], where: str) -> None:
    """Raise LabError if two columns have the same name."""
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise LabError(f'expected columns of different names in {where}, found "{twice[0]}" twice')


def _schema(path: Path, form: str) -> pa.Schema:
    """Return the Arrow schema of an Arrow file."""
    with pa.OSFile(str(path)) as file:
        return (ipc.open_file if form == "arrow" else ipc.open_stream)(file).schema
