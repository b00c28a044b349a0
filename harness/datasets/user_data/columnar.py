"""Parquet and Arrow files as frames: polars reads them, or else pyarrow; each checks the other."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
from pyarrow import ipc, parquet

from harness.datasets.user_data import arrow_types, compared
from harness.datasets.user_data.arrow_frames import OF_POLARS, of_arrow, quietly, require_zones, with_uuids
from harness.datasets.user_data.steps import Program, Read
from harness.model import LabError, Scalar, first_line

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_READ: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": lambda path: pl.read_parquet(path, glob=False, memory_map=False, hive_partitioning=False),
    "arrow": lambda path: pl.scan_ipc(path, glob=False).collect(),
    "arrow_stream": pl.read_ipc_stream,
}
_TABLES: dict[str, Callable[[Path], pa.Table]] = {
    "parquet": lambda path: parquet.read_table(path, memory_map=False, partitioning=None),
    "arrow": lambda path: ipc.open_file(path.read_bytes()).read_all(),
    "arrow_stream": lambda path: ipc.open_stream(path.read_bytes()).read_all(),
}
_POLARS = {
    "parquet": "frame = polars.read_parquet({}, glob=False, hive_partitioning=False)",
    "arrow": "frame = polars.scan_ipc({}, glob=False).collect()",
    "arrow_stream": "frame = polars.read_ipc_stream({})",
}
_ARROW = {
    "parquet": ("import pyarrow.parquet", "table = pyarrow.parquet.read_table({}, partitioning=None{})"),
    "arrow": ("import pyarrow.ipc", "table = pyarrow.ipc.open_file({}).read_all(){}"),
    "arrow_stream": ("import pyarrow.ipc", "table = pyarrow.ipc.open_stream({}).read_all(){}"),
}
_BUFFER = 1 << 16
_INT96 = "INT96"
_FAR = 2**63 // 1_000  # microseconds that nanoseconds of 64 bits do not count
# The types in which a footer stores the ends of a column.
_NUMBERS: dict[object, pa.DataType] = {pl.Date: pa.int32(), pl.Datetime: pa.int64()}
_NUMBERS |= {pl.Int8: pa.int8(), pl.Int16: pa.int16(), pl.Int32: pa.int32(), pl.Int64: pa.int64()}
_INTO_MICROSECONDS = ', coerce_int96_timestamp_unit="us"'


def read(path: Path, form: str, where: str) -> Read:
    """Return the content of a Parquet or Arrow file. Raises LabError with a column that no frame holds."""
    try:
        with quietly():
            return _read(path, form, where)
    except (*OF_POLARS, pa.ArrowException, NotImplementedError, OSError, ValueError) as error:
        _require_narrow(path, form)
        raise LabError(f"{where}: cannot be read as {form.replace('_', ' ')}: {first_line(error)}") from None


def _read(path: Path, form: str, where: str) -> Read:
    # Avoid reading a whole column for one page.
    piecewise = {"memory_map": False, "pre_buffer": False, "buffer_size": _BUFFER}
    file = parquet.ParquetFile(path, **piecewise) if form == "parquet" else None
    schema = file.schema_arrow if file is not None else _schema(path, form)
    require_different(list(schema.names), where)
    odd = arrow_types.odd(schema)
    if file is not None and odd.names:
        _require_parquet(file, odd)
    arrow_types.require_known(odd)
    require_zones(odd)
    old = {*_of_leaves(file, "physical_type", _INT96)} if file is not None and odd.names else set()
    if old:
        _require_no_zone(file, old)
    far = _int96(path, None if any("." in name for name in schema.names) else [*old]) if old else ""
    if arrow_types.for_polars(odd) and not far:
        frame = with_uuids(_READ[form](path), odd)
        return Read(frame, Program((_POLARS[form],)), _compare(frame, path, form, file, schema, where))
    table = _in_unit(path, None, "us") if far else _TABLES[form](path)
    frame = of_arrow(table)
    if file is not None:
        _compare_with_polars(table, path, file, where)
    compared.require_frame(frame, table, where)
    found = schema if not far else table.schema
    lines = tuple(line.format("{}", far) for line in _ARROW[form])
    offsets = tuple(arrow_types.columns(found, arrow_types.has_offset))
    wide = tuple(arrow_types.columns(found, pa.types.is_decimal256))
    return Read(frame, Program(lines, offsets=offsets, wide=wide), compared.said(*frame.shape))


def _require_parquet(file: pq.ParquetFile, odd: pa.Schema) -> None:
    """Raise LabError with a column whose Parquet type Arrow reads as another."""
    nested = any(of.num_fields for of in odd.types)
    if nested and (variant := re.search(r"group (?:field_id=\S+ )?(.+?) \(Variant\(", str(file.schema))):
        raise LabError(f'column "{variant[1]}": frames have no VARIANT type; cast it to JSON, or to a string')
    if name := next(_of_leaves(file, "converted_type", "INTERVAL"), ""):
        raise LabError(f'column "{name}": no frame holds an INTERVAL of Parquet; cast it to a string, or to seconds')


def _of_leaves(file: pq.ParquetFile, what: str, wanted: str) -> Iterator[str]:
    """Yield the columns of a Parquet file that have a leaf whose attribute `what` is the wanted one."""
    schema = file.schema
    leaves = map(schema.column, range(len(schema)))
    yield from (str(leaf.path).partition(".")[0] for leaf in leaves if getattr(leaf, what) == wanted)


def _require_no_zone(file: pq.ParquetFile, old: set[str]) -> None:
    """Raise LabError with an INT96 column that had a time zone in Arrow: polars keeps it, pyarrow drops it."""
    written = (file.metadata.metadata or {}).get(b"ARROW:schema", b"")
    for field in ipc.read_schema(pa.BufferReader(base64.b64decode(written))) if written else ():
        zoned = any(getattr(part, "tz", None) for part in arrow_types.parts(field.type))
        if zoned and field.name.partition(".")[0] in old:
            raise LabError(
                f'column "{field.name}": some readers ignore the time zone of INT96 timestamps; write them as INT64'
            )


def _int96(path: Path, columns: list[str] | None) -> str:
    """Return pyarrow's option for INT96 timestamps in some columns; empty if nanoseconds hold them all.

    Nanoseconds before 1677 and after 2262 wrap around; microseconds lose the last three digits. Both together determine
    the file's values. Raises LabError with the first row that neither holds.
    """
    coarse = _in_unit(path, columns, "us")
    if not any((one.abs() >= _FAR).any() for field in coarse.schema for one in _numbers(coarse[field.name])):
        return ""
    fine = _in_unit(path, columns, "ns")
    for field in coarse.schema:
        for one, other in zip(_numbers(fine[field.name]), _numbers(coarse[field.name]), strict=True):
            cut = one - other * 1_000  # it wraps around like the nanoseconds
            if (rows := (cut != 0).fill_null(False).arg_true()).len():
                raise LabError(
                    f'column "{field.name}", row {rows[0]}: INT96 timestamps with nanoseconds, and others before 1677 '
                    "or after 2262: no type holds both; round these to microseconds, or make the others null"
                )
    return _INTO_MICROSECONDS


def _in_unit(path: Path, columns: list[str] | None, unit: str) -> pa.Table:
    return parquet.read_table(
        path, columns=columns, memory_map=False, partitioning=None, coerce_int96_timestamp_unit=unit
    )


def _numbers(column: pa.ChunkedArray) -> Iterator[pl.Series]:
    """Yield the timestamps in an Arrow column, at any depth, as numbers."""
    for leaf in arrow_types.leaves(column.combine_chunks()):
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
        compared.require_same(frame, file.read(use_threads=False), 0, where)  # to open it again takes longer
        return "every value"
    metadata = file.metadata
    parts = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    leaves = [[part.column(place) for part in parts] for place in range(metadata.num_columns)]
    names = schema.names if small else compared.chosen(leaves, schema)
    wanted = compared.pieces(rows, max(width, compared.WHOLE // rows + 1))
    for first, batch in compared.batches(file, names, wanted, groups):
        found = (frame[name].slice(first, batch.num_rows) for name in batch.schema.names)
        compared.require_same(found, batch, first, where)
    others, unknown = _other_ends(frame, leaves)
    for name in others:
        table = parquet.read_table(path, columns=[name], memory_map=False, partitioning=None)
        compared.require_same([frame[name]], table, 0, where)
    of = "each column" if len(names) == width else f"{len(names)} of {width} columns"
    ends = f"{width - unknown} of {width} columns" if unknown else "columns"
    return f"{wanted[0][1]:,} of {rows:,} rows of {of}, and the nulls and ends of {ends}"


def _other_ends(frame: pl.DataFrame, leaves: list[list[pq.ColumnChunkMetaData]]) -> tuple[list[str], int]:
    """Return the columns to decode again, and how many are not compared as a whole.

    The nulls or ends of the former differ from the footer's. Where it has none, they are a small part of the file.
    """
    columns, found, left, unknown = {column.name: column for column in frame}, [], compared.share(leaves), 0
    for chunks in leaves:
        name = chunks[0].path_in_schema if chunks else ""
        if (column := columns.get(name)) is None:
            continue  # part of a list or a struct
        told = [chunk.statistics for chunk in chunks]
        if any(one is None or one.null_count is None for one in told):
            left -= (cost := sum(chunk.total_uncompressed_size for chunk in chunks))
            if left < 0:
                left, unknown = left + cost, unknown + 1
            else:
                found.append(name)
        elif sum(one.null_count for one in told) != column.null_count():
            found.append(name)
        elif numbers := _NUMBERS.get(column.dtype.base_type()):
            ends = [one for one in told if one.has_min_max]
            if ends and _ends(column, numbers) != (min(one.min_raw for one in ends), max(one.max_raw for one in ends)):
                found.append(name)
    return found, unknown


def _ends(column: pl.Series, numbers: pa.DataType) -> tuple[Scalar, Scalar]:
    """Return a column's smallest and largest number, also for times; asking polars takes longer."""
    if column.dtype.is_temporal():
        column = pl.Series(column.to_arrow().view(numbers))
    return column.min(), column.max()


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
    if names and not arrow_types.columns(table.schema, arrow_types.has_offset):  # polars opens no file with these
        size = compared.pieces(table.num_rows, len(names))[0][1]
        other = pl.read_parquet(path, columns=names, n_rows=size, glob=False, memory_map=False, hive_partitioning=False)
        compared.require_same(with_uuids(other, table.schema), table.slice(0, size), 0, where)


def _require_narrow(path: Path, form: str) -> None:
    """Raise LabError with a column of 128-bit integers, which polars writes and Arrow cannot read."""
    scans: dict[str, Callable[..., pl.LazyFrame]] = {"parquet": pl.scan_parquet, "arrow": pl.scan_ipc}
    with suppress(*OF_POLARS, OSError, ValueError), quietly():
        for name, dtype in scans[form](path, glob=False).collect_schema().items() if form in scans else ():
            if dtype in (pl.Int128, pl.UInt128):
                raise LabError(
                    f'column "{name}": {dtype} is wider than 64 bits; cast it to 64 bits, a decimal or a string'
                )


def require_different(names: list[str], where: str) -> None:
    """Raise LabError if two columns have the same name."""
    if len({*names}) < len(names):
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        raise LabError(f'{where}: two columns are named "{twice[0]}"; rename one')


def require_no_pattern(names: Iterable[str], where: str) -> None:
    """Raise LabError for a column name that polars takes for a pattern, so that it finds no column."""
    if odd := next((name for name in names if name.startswith("^") and name.endswith("$")), None):
        raise LabError(f'{where}: polars takes the name of column "{odd}" for a pattern; rename it')


def _schema(path: Path, form: str) -> pa.Schema:
    """Return the Arrow schema of an Arrow file."""
    with pa.OSFile(str(path)) as file:
        return (ipc.open_file if form == "arrow" else ipc.open_stream)(file).schema
