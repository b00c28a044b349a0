"""Decimals that arrived as strings: polars decimals if 38 digits are enough, otherwise normalized strings."""

from __future__ import annotations

import polars as pl

from harness.check.canonical import decimal_text
from harness.check.logical_types import MOST_DIGITS
from harness.model import LabError

_MOST = 76  # maximum digits in Arrow and ClickHouse
_NUMBER = r"^-?\d+(\.\d+)?$"


def narrow(strings: pl.Series) -> pl.Series | None:
    """Return decimals of 38 digits with all the strings' places; None if 38 digits are not enough."""
    scale = _places(strings)
    if scale > MOST_DIGITS:
        return None
    try:
        return strings.cast(pl.Decimal(MOST_DIGITS, scale), strict=True)
    except pl.exceptions.PolarsError:
        return None


def logical_type_of(strings: pl.Series) -> str:
    """Return the logical type of decimals with more digits. Raises LabError for invalid numbers and too many digits."""
    others = (~strings.str.contains(_NUMBER)).arg_true()
    if len(others):
        raise LabError(
            f'column "{strings.name}", row {others[0]}: a decimal is NaN or infinity; make it null, or drop the row'
        )
    scale = _places(strings)
    whole = strings.str.extract(r"^-?0*(\d*)").str.len_chars().max()
    precision = max(int(whole or 0) + scale, MOST_DIGITS + 1)  # type: ignore[arg-type]
    if precision > _MOST:
        raise LabError(
            f'column "{strings.name}": a decimal has {precision} digits, and at most {_MOST} fit; round it, or make it '
            "a string"
        )
    return f"decimal({precision}, {scale})"


def canonical(strings: pl.Series, logical: str) -> pl.Series:
    """Return decimals of a logical type as strings; equal decimals have equal strings."""
    made = [text if text is None else decimal_text(text, logical) for text in strings.to_list()]
    return pl.Series(strings.name, made, pl.String)


def _places(strings: pl.Series) -> int:
    return int(strings.str.extract(r"\.(\d+)$").str.len_chars().max() or 0)  # type: ignore[arg-type]
