"""CSV cells that are numbers: as integers, as floats that match every written digit, or as decimals."""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from harness.check.logical_types import INTEGERS, MOST_DIGITS, digits, polars_dtype
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.steps import Call, Steps, applied

SURE = 15  # digits that every float preserves
NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|^(?:NaN|nan|-?inf)$"
WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
PLAIN = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"


def as_number(cell: str, options: Options) -> str:
    """Return a cell normalized as a number: without surrounding spaces, with a point."""
    cell = cell.strip(" ")
    return cell.replace(",", ".", 1) if options.decimal == "," and "." not in cell else cell


def as_numbers(cells: pl.Series, options: Options) -> tuple[Steps, pl.Series] | None:
    """Return the steps that normalize cells as numbers, and the cells; None if they cannot be numbers."""
    steps: Steps = ()
    if (cells.str.starts_with(" ") | cells.str.ends_with(" ")).any():
        steps = (Call("str.strip_chars", (" ",)),)
    if options.decimal == ",":
        if cells.str.contains(".", literal=True).any():
            return None  # thousands separators, or another language's format
        steps = (*steps, Call("str.replace", (",", "."), {"literal": True}))
    return steps, applied(cells, steps)


def whole(cells: pl.Series, options: Options) -> Steps:
    before, cells = as_numbers(cells, options) or ((), cells)
    for dtype in (pl.Int64, pl.UInt64, pl.Decimal(MOST_DIGITS, 0)):
        made = cells.cast(dtype, strict=False)
        if not made.null_count():
            return (*before, Call("cast", (dtype,))) if (made.cast(pl.String) == cells).all() else ()
    return ()


def number(cells: pl.Series, options: Options) -> Steps:
    if (numbers := as_numbers(cells, options)) is None or not numbers[1].str.contains(NUMBER).all():
        return ()
    before, cells = numbers
    floats = cells.cast(pl.Float64, strict=False)
    if not floats.null_count() and _exact(cells, floats):
        return (*before, Call("cast", (pl.Float64,)))
    places = scale(cells)
    return (*before, Call("cast", (pl.Decimal(MOST_DIGITS, places),))) if places is not None else ()


def _exact(cells: pl.Series, floats: pl.Series) -> bool:
    """Return whether floats, written with the fewest distinguishing digits, are the numbers in the cells."""
    unsure = cells.str.len_bytes() > SURE
    unsure |= cells.str.contains("[eEN]")
    unsure &= floats.cast(pl.String) != cells
    left = zip(cells.filter(unsure), floats.filter(unsure), strict=True)
    return all(cell in ("NaN", "nan", "inf", "-inf") or Decimal(cell) == Decimal(repr(made)) for cell, made in left)


def scale(cells: pl.Series) -> int | None:
    """Return how many decimal places hold every number; None if 38 digits are not enough."""
    if not cells.str.contains(PLAIN).all():
        return None
    places, whole = cells.str.extract(r"\.([0-9]+)$").str.len_bytes(), cells.str.extract(r"^-?0*([0-9]*)")
    scale, most = int(places.max() or 0), int(whole.str.len_bytes().max() or 0)  # type: ignore[arg-type]
    return scale if scale + most <= MOST_DIGITS else None


def asked(cells: pl.Series, logical: str) -> Steps:
    if logical in INTEGERS or logical == "float64":
        return (Call("cast", (polars_dtype(logical),)),)
    needed = scale(cells)
    if needed is None or (logical != "decimal" and needed > digits(logical)[1]):
        return ()
    dtype = pl.Decimal(MOST_DIGITS, needed) if logical == "decimal" else polars_dtype(logical)
    return (Call("cast", (dtype,)),)
