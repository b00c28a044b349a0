"""Compare columns with another reader's result for the same file, or with the frame they came from."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from harness.check.canonical import strings_of
from harness.datasets.user_data import arrow_types
from harness.datasets.user_data.arrow_frames import OF_POLARS
from harness.model import LabError, Scalar

if TYPE_CHECKING:
    import pyarrow.parquet as pq


WHOLE = 200_000  # up to this many values, all are compared
_PART = 24  # beyond that, one row in this many
_LARGE = 10_000_000  # from this many values on there are several pieces, because locating each takes time
_PIECES = 3
SMALL = 500_000  # bytes of a Parquet file: only some columns of a larger one are compared
_SHARE = 8  # of a larger file, one byte in this many is decoded again
_PAGE = 1 << 20  # bytes of a page, as writers choose it
_SMALLEST = 100_000  # bytes that decode in the time needed to locate rows of a column and to compare them
_ENDS = 10_000  # bytes that decode in the time needed to find a column's nulls and ends
_NEWEST = pl.CompatLevel.newest()
_INTEGERS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def pieces(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the rows to compare, as first rows and lengths: all of a small frame, otherwise pieces of it."""
    if rows * width <= WHOLE:
        return [(0, rows)]
    several = rows * width >= _LARGE
    size = max(min(rows // _PART, WHOLE // width) // _PIECES, 1)
    return [(first, size) for first in ((0, (rows - size) // 2, rows - size) if several else (rows - size,))]


def said(rows: int, width: int) -> str:
    """Describe how much of each column is compared."""
    if rows * width <= WHOLE:
        return "every value"
    return f"{sum(size for _, size in pieces(rows, width)):,} of {rows:,} rows"


def require_frame(frame: pl.DataFrame, table: pa.Table, where: str) -> None:
    """Raise LabError if a frame differs from the Arrow table that it was made from, as far as they are compared."""
    for first, size in pieces(*frame.shape):
        require_same(frame.slice(first, size), table.slice(first, size), first, where)


def require_same(found: Iterable[pl.Series], table: pa.Table, first: int, where: str) -> None:
    """Raise LabError with the column and row of a value that differs in Arrow; a frame is its columns."""
    for column in found:
        name, expected = column.name, table.column(column.name)
        if len(column) != len(expected):
            raise LabError(
                f'{where}, column "{name}": one reader finds {len(column):,} values, another {len(expected):,}'
            )
        if (row := different(column, expected)) is not None:
            raise LabError(
                f'{where}, column "{name}", row {first + row}: two readers read different values from it; cast the '
                "column to another type, or make it a string, where the file is written"
            )


def different(column: pl.Series, expected: pa.ChunkedArray) -> int | None:
    """Return the first row in which a column differs from Arrow's, even in a zero's sign; None without one.

    The column is converted to Arrow, because a wrong conversion from Arrow to polars could be wrong in the same way
    again.
    """
    expected = expected.combine_chunks() if isinstance(expected, pa.ChunkedArray) else expected
    if isinstance(column.dtype, pl.BaseExtension):
        column = column.ext.storage()
        is_wide = pa.types.is_decimal256(expected.type)
        expected = strings_of(expected) if is_wide else getattr(expected, "storage", expected)
    try:
        given = column.to_arrow(compat_level=_NEWEST)
    except OF_POLARS:
        return 0
    if pa.types.is_primitive(expected.type) and given.type == expected.type:
        bits = _INTEGERS[expected.type.bit_width] if pa.types.is_floating(expected.type) else expected.type
        if given.view(bits).equals(expected.view(bits)):
            return None
    given, expected = _decoded(given), _decoded(getattr(expected, "storage", expected))
    if _zoned(given.type) != _zoned(expected.type):
        return 0
    bits = _as_integers(expected.type, pa.types.is_floating)  # to Arrow, 0 equals -0, and no NaN equals another
    with suppress(pa.ArrowException):  # types or values that cannot be converted into one another
        given = given if given.type == expected.type else given.cast(expected.type)
        if given.view(bits).equals(expected.view(bits)):
            return None
    pairs = enumerate(zip(_objects(given), _objects(expected), strict=True))
    return next((row for row, (one, other) in pairs if not same(one, other)), None)


def _decoded(values: pa.Array) -> pa.Array:
    if not pa.types.is_dictionary(values.type):
        return values
    words = values.dictionary
    if pa.types.is_string_view(words.type):  # polars' string views, which Arrow cannot select by position
        values = pa.DictionaryArray.from_arrays(values.indices, words.cast(pa.large_string()))
    return values.dictionary_decode()


def _zoned(of: pa.DataType) -> list[bool]:
    """Set for all timestamps of a type whether they have a zone."""
    return [part.tz is not None for part in arrow_types.parts(of) if pa.types.is_timestamp(part)]


def _as_integers(of: pa.DataType, known: Callable[[pa.DataType], bool]) -> pa.DataType:
    """Return a type with integers instead of the mapped types, at any depth of lists and structs."""
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_as_integers(field.type, known)) for field in of])
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        made = pa.list_ if pa.types.is_list(of) else pa.large_list
        return made(of.value_field.with_type(_as_integers(of.value_type, known)))
    if pa.types.is_fixed_size_list(of):
        return pa.list_(of.value_field.with_type(_as_integers(of.value_type, known)), of.list_size)
    return _INTEGERS[of.bit_width] if known(of) else of


def _objects(values: pa.Array) -> list[Scalar]:
    """Return values as Python objects; dates and times, which Python cannot represent in full, as numbers."""
    try:
        return list(values.view(_as_integers(values.type, pa.types.is_temporal)).to_pylist())
    except (pa.ArrowException, ArithmeticError, ValueError):
        return list(values)  # as Arrow's own


def same(one: Scalar, other: Scalar) -> bool:
    """Return whether two Python values are the same, at any depth."""
    if isinstance(one, float) and isinstance(other, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if isinstance(other, uuid.UUID):
        return bool(one == other.bytes)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def share(leaves: Sequence[Sequence[pq.ColumnChunkMetaData]]) -> float:
    """Return how many bytes of a Parquet file, whose columns have these chunks, may be decoded again."""
    whole = sum(chunk.total_uncompressed_size for leaf in leaves for chunk in leaf)
    return max(whole / _SHARE - _ENDS * len(leaves), 0.0)


def chosen(leaves: Sequence[Sequence[pq.ColumnChunkMetaData]], schema: pa.Schema) -> list[str]:
    """Return the columns of a large Parquet file whose rows are compared, in order; `leaves` have their chunks.

    To read one row, a reader decodes a page of the column, which is most of a file of a few MB. So one column of each
    type comes first. Lists and structs come before plain columns, because the footer does not describe them. Then come
    the cheapest columns. Together they are a part of the file.
    """
    place, ranked, types = 0, list[tuple[bool, float, str, str]](), Counter[str]()
    for name, of in zip(schema.names, schema.types, strict=True):
        width = sum(not part.num_fields for part in arrow_types.parts(of)) if of.num_fields else 1
        ranked.append((not of.num_fields, sum(_cost(leaf[0]) for leaf in leaves[place : place + width]), str(of), name))
        place += width
    by_type = []
    for flat, cost, type_name, name in sorted(ranked):
        by_type.append((types[type_name], flat, cost, name))
        types[type_name] += 1
    left, names = share(leaves), set[str]()
    for _, _, cost, name in sorted(by_type):
        if not names or cost <= left:
            names.add(name)
            left -= cost
    return [name for name in schema.names if name in names]


def _cost(leaf: pq.ColumnChunkMetaData) -> float:
    """Return how many bytes a reader decodes for the first rows of part of a column; uncompressed data are copied."""
    size = leaf.total_uncompressed_size
    if size > _PAGE:
        size = min(size, (2 if "RLE_DICTIONARY" in leaf.encodings else 1) * _PAGE)
    return float(_SMALLEST + size / (3 if leaf.total_compressed_size >= 0.99 * leaf.total_uncompressed_size else 1))


def batches(
    file: pq.ParquetFile, names: list[str], wanted: list[tuple[int, int]], groups: list[int]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield columns of rows of a Parquet file, with the first row; `groups` are the sizes of its row groups.

    Each column is read in one of the wanted pieces, at the start of its row group. Three pieces of all columns would
    take three times as long.
    """
    starts = [sum(groups[:place]) for place in range(len(groups))]
    for place, (first, size) in enumerate(wanted):
        group = max(number for number, start in enumerate(starts) if start <= first)
        columns = names[place :: len(wanted)]
        options = {"batch_size": min(size, groups[group]), "row_groups": [group], "use_threads": False}
        batch = next(file.iter_batches(columns=columns, **options), None) if columns and size else None
        if batch is not None and not {*columns} <= {*batch.schema.names}:  # a name with dots is read as a path
            batch = next(file.iter_batches(**options))
        if batch is not None:
            yield starts[group], batch
