"""What was read as columns, compared with what another reader makes of a file, or with the frame it is from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from harness.datasets.own.arrow_frames import OF_POLARS, of_arrow
from harness.model import LabError

WHOLE = 200_000  # values up to which all are compared
_PART = 12  # of so many rows one, beyond
_LARGE = 10_000_000  # values from which on there are several pieces: to find each takes its time
_PIECES = 3


def pieces(rows: int, width: int) -> list[tuple[int, int]]:
    """Return the rows to compare, as first rows and lengths: all of a small frame, else pieces of it."""
    if rows * width <= WHOLE:
        return [(0, rows)]
    several = rows * width >= _LARGE
    size = max(min(rows // _PART, WHOLE // width) // _PIECES, 1)
    return [(first, size) for first in ((0, (rows - size) // 2, rows - size) if several else (rows - size,))]


def said(rows: int, width: int, more: str = "") -> str:
    """Say how much is compared of a frame."""
    if rows * width <= WHOLE:
        return "every value"
    return f"{sum(size for _, size in pieces(rows, width)):,} of {rows:,} rows{more}"


def require_same(found: pl.DataFrame, table: Any, first: int, where: str) -> None:
    """Raise LabError with the column and the row of a value that another reader gives otherwise."""
    table = (table if isinstance(table, pa.Table) else pa.Table.from_batches([table])).select(found.columns)
    other = of_arrow(table)
    if _equal(found, other) and all(table[name].null_count == found[name].null_count() for name in found.columns):
        return
    for name in found.columns:
        column, expected = found[name], other[name]
        if len(column) != len(expected):
            raise LabError(
                f'{where}, column "{name}": one reader finds {len(column):,} values, another {len(expected):,}'
            )
        if (row := different(column, expected)) is not None:
            _refuse(where, name, first + row)
        if table[name].null_count != column.null_count() and not pa.types.is_null(table[name].type):
            _refuse(where, name, first)


def _equal(found: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Say whether two frames are one at a glance: of floats also bit by bit."""
    try:
        if found.schema != other.schema or not found.equals(other):
            return False
    except OF_POLARS:
        return False  # of a type that it does not compare
    floats = [name for name, dtype in found.schema.items() if dtype.is_float()]
    return all(
        not found[name].null_count() and found[name].to_numpy().tobytes() == other[name].to_numpy().tobytes()
        for name in floats
    )


def _refuse(where: str, name: str, row: int) -> None:
    raise LabError(
        f'{where}, column "{name}", row {row}: two readers make different values of it; cast the column to another '
        "type, or make it a string, where the file is written"
    )


def different(left: pl.Series, right: pl.Series) -> int | None:
    """Return the first row in which two columns differ, also in the sign of a zero; None where they do not."""
    if left.dtype != right.dtype:
        try:
            right = right.cast(left.dtype)
        except OF_POLARS:
            return 0
    if isinstance(left.dtype, pl.BaseExtension):
        left, right = left.ext.storage(), right.ext.storage()
    if left.dtype.is_nested() or left.dtype == pl.Object:
        pairs = enumerate(zip(left.to_list(), right.to_list(), strict=True))
        return next((row for row, (one, other) in pairs if not same(one, other)), None)
    if left.dtype.is_float():
        left, right = _with_signs(left), _with_signs(right)
    changed = left.ne_missing(right)
    return int(changed.arg_max() or 0) if changed.any() else None


def _with_signs(floats: pl.Series) -> pl.Series:
    """Return the bits of floats, all of NaN alike: so 0 and -0 differ."""
    return floats.cast(pl.Float64).fill_nan(math.nan).reinterpret(dtype=pl.Int64)


def same(one: Any, other: Any) -> bool:
    """Say whether two values of Python are one, at any depth."""
    if isinstance(one, float) and isinstance(other, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (one != one and other != other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def batches(file: Any, wanted: list[tuple[int, int]], groups: list[int]) -> Iterator[tuple[int, Any]]:
    """Yield the rows that are wanted of a Parquet file, with the first row of each piece; `groups` are its row groups.

    A piece is at the start of a row group, wherever there is one near: what is before it would be decoded for nothing.
    """
    starts = [sum(groups[:place]) for place in range(len(groups))]
    for first, size in wanted:
        group = max(place for place, start in enumerate(starts) if start <= first)
        piece = file.iter_batches(batch_size=min(size, groups[group]), row_groups=[group], use_threads=False)
        batch = next(piece, None)
        if batch is not None:
            yield starts[group], batch
