"""What was read as columns, compared with what another reader makes of a file, or with the frame it is from."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import polars as pl
import pyarrow as pa

from harness.datasets.own import arrow_types
from harness.datasets.own.arrow_frames import OF_POLARS
from harness.model import LabError

WHOLE = 200_000  # values up to which all are compared
_PART = 24  # of so many rows one, beyond
_LARGE = 10_000_000  # values from which on there are several pieces: to find each takes its time
_PIECES = 3
SMALL = 500_000  # bytes of a Parquet file up to which that is so, and rows of every column are compared beyond
_SHARE = 8  # of so many bytes of a larger one, one is decoded again
_PAGE = 1 << 20  # bytes that writers give a page
_SMALLEST = 30_000  # bytes that are decoded in the time that it takes to find a column
_INTEGERS = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def pieces(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the rows to compare, as first rows and lengths: all of a small frame, else pieces of it."""
    if rows * width <= WHOLE:
        return [(0, rows)]
    several = rows * width >= _LARGE
    size = max(min(rows // _PART, WHOLE // width) // _PIECES, 1)
    return [(first, size) for first in ((0, (rows - size) // 2, rows - size) if several else (rows - size,))]


def said(rows: int, width: int) -> str:
    """Say how much is compared of each column of a frame."""
    if rows * width <= WHOLE:
        return "every value"
    return f"{sum(size for _, size in pieces(rows, width)):,} of {rows:,} rows"


def require_same(found: pl.DataFrame, table: Any, first: int, where: str) -> None:
    """Raise LabError with the column and the row of a value that Arrow has otherwise."""
    for name in found.columns:
        column, expected = found[name], table.column(name)
        if len(column) != len(expected):
            raise LabError(
                f'{where}, column "{name}": one reader finds {len(column):,} values, another {len(expected):,}'
            )
        if (row := different(column, expected)) is not None:
            raise LabError(
                f'{where}, column "{name}", row {first + row}: two readers make different values of it; cast the '
                "column to another type, or make it a string, where the file is written"
            )


def different(column: pl.Series, expected: Any) -> int | None:
    """Return the first row in which a column is not what Arrow has, also in the sign of a zero; None if there is none.

    It is the column that is turned, into Arrow: what polars makes of Arrow may be wrong, and would be wrong again.
    """
    expected = expected.combine_chunks() if isinstance(expected, pa.ChunkedArray) else expected
    if isinstance(column.dtype, pl.BaseExtension):
        column = column.ext.storage()
        is_wide = pa.types.is_decimal256(expected.type)
        expected = arrow_types.texts_of(expected) if is_wide else getattr(expected, "storage", expected)
    try:
        given = column.to_arrow(compat_level=pl.CompatLevel.newest())
    except OF_POLARS:
        return 0
    if pa.types.is_primitive(expected.type) and not pa.types.is_floating(expected.type) and given.equals(expected):
        return None
    given, expected = _decoded(given), _decoded(getattr(expected, "storage", expected))
    if _zoned(given.type) != _zoned(expected.type):
        return 0
    bits = _as_integers(expected.type, pa.types.is_floating)  # Arrow takes 0 and -0 for equal, and no two NaN
    with suppress(pa.ArrowException):  # of types, or of values, that do not go into one another
        given = given if given.type == expected.type else given.cast(expected.type)
        if given.view(bits).equals(expected.view(bits)):
            return None
    pairs = enumerate(zip(_objects(given), _objects(expected), strict=True))
    return next((row for row, (one, other) in pairs if not same(one, other)), None)


def _decoded(values: Any) -> Any:
    if not pa.types.is_dictionary(values.type):
        return values
    words = values.dictionary
    if pa.types.is_string_view(words.type):  # as polars has them, of which Arrow takes none by their places
        values = pa.DictionaryArray.from_arrays(values.indices, words.cast(pa.large_string()))
    return values.dictionary_decode()


def _zoned(of: Any) -> list[bool]:
    """Say of all timestamps of a type whether they have a zone."""
    return [part.tz is not None for part in arrow_types.parts(of) if pa.types.is_timestamp(part)]


def _as_integers(of: Any, known: Callable[[Any], bool]) -> Any:
    """Return a type with integers in place of what is known, at any depth of lists and structs."""
    if pa.types.is_struct(of):
        return pa.struct([field.with_type(_as_integers(field.type, known)) for field in of])
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        made = pa.list_ if pa.types.is_list(of) else pa.large_list
        return made(of.value_field.with_type(_as_integers(of.value_type, known)))
    return _INTEGERS[of.bit_width] if known(of) else of


def _objects(values: Any) -> list[Any]:
    """Return the values as those of Python: dates and times, of which it has not all, as their numbers."""
    try:
        return list(values.view(_as_integers(values.type, pa.types.is_temporal)).to_pylist())
    except (pa.ArrowException, ArithmeticError, ValueError):
        return list(values)  # as Arrow's own


def same(one: Any, other: Any) -> bool:
    """Say whether two values of Python are one, at any depth."""
    if isinstance(one, float) and isinstance(other, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if isinstance(other, uuid.UUID):
        return bool(one == other.bytes)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def chosen(file: Any, schema: Any) -> list[str]:
    """Return the columns of a large Parquet file of which rows are compared, in their order.

    To see one row a reader decodes a page of the column, of a file of some MB most of it. So one column of each type
    comes first, lists and structs, of which the footer says nothing, before others, then the cheapest; together they
    are a part of the file.
    """
    metadata, place, ranked = file.metadata, 0, []
    group, types = metadata.row_group(0), Counter[str]()
    for field in schema:
        leaves = sum(not part.num_fields for part in arrow_types.parts(field.type))
        cost = sum(_cost(group.column(leaf)) for leaf in range(place, place + leaves))
        ranked.append((not field.type.num_fields, cost, str(field.type), field.name))
        place += leaves
    by_type = []
    for flat, cost, of, name in sorted(ranked):
        by_type.append((types[of], flat, cost, name))
        types[of] += 1
    left = sum(metadata.row_group(one).total_byte_size for one in range(metadata.num_row_groups)) / _SHARE
    names: set[str] = set()
    for _, _, cost, name in sorted(by_type):
        if not names or cost <= left:
            names.add(name)
            left -= cost
    return [name for name in schema.names if name in names]


def _cost(leaf: Any) -> float:
    """Return how many bytes a reader decodes for the first rows of a part of a column; what is as it is it copies."""
    stored = leaf.total_compressed_size >= 0.99 * leaf.total_uncompressed_size
    pages = 2 if "RLE_DICTIONARY" in leaf.encodings else 1
    return _SMALLEST + min(leaf.total_uncompressed_size, pages * _PAGE) / (3 if stored else 1)


def batches(file: Any, names: list[str], wanted: list[tuple[int, int]], groups: list[int]) -> Iterator[tuple[int, Any]]:
    """Yield columns of rows of a Parquet file, with the first row; `groups` are the sizes of its row groups.

    Each column is read in one of the pieces that are wanted, at the start of its group: three pieces of all columns
    would cost three times as much.
    """
    starts = [sum(groups[:place]) for place in range(len(groups))]
    for place, (first, size) in enumerate(wanted):
        group = max(number for number, start in enumerate(starts) if start <= first)
        columns = names[place :: len(wanted)]
        options = {"batch_size": min(size, groups[group]), "row_groups": [group], "use_threads": False}
        batch = next(file.iter_batches(columns=columns, **options), None) if columns and size else None
        if batch is not None and not {*columns} <= {*batch.schema.names}:  # a name with dots is taken for a path
            batch = next(file.iter_batches(**options))
        if batch is not None:
            yield starts[group], batch
