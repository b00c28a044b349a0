"""Expected frame against actual frame: every value of every column, matched by row key. Pure.

Floats are compared bit by bit, except that any NaN equals any NaN: -0.0 is not 0.0. Null equals only null.
"""

from typing import Protocol

import polars as pl


class Columns(Protocol):
    """What verification needs of the expected frame: a polars frame has it, and what reads columns one at a time."""

    @property
    def schema(self) -> pl.Schema: ...
    @property
    def height(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __getitem__(self, name: str) -> pl.Series: ...


def differences(expected: Columns, actual: pl.DataFrame, row_key: tuple[str, ...]) -> list[str]:
    """Return what differs, one line a column; an empty list means that every value is equal.

    Both frames are canonical (same columns and dtypes); `expected` is in key order, `actual` in any. Where the number
    of rows differs, only that is said. Raises ValueError when the columns or dtypes differ: canonicalise both first.
    """
    if expected.schema != actual.schema:
        raise ValueError(
            f"expected the schema {expected.schema}, found {actual.schema}; canonicalise both frames first"
        )
    if expected.height != actual.height:
        return [f"expected {expected.height} rows, found {actual.height}"]
    # One column at a time is brought into key order, so that no second copy of the frame is ever in memory.
    order = actual.select(pl.arg_sort_by(row_key, nulls_last=True)).to_series()
    lines = (_difference(expected, name, actual[name].gather(order), row_key) for name in expected.columns)
    return [line for line in lines if line is not None]


def _difference(expected: Columns, name: str, found: pl.Series, row_key: tuple[str, ...]) -> str | None:
    wanted = expected[name]
    wrong = _bits(wanted).ne_missing(_bits(found)).arg_true()
    if wrong.is_empty():
        return None
    first = int(wrong[0])
    key = ", ".join(f"{column}={expected[column][first]!r}" for column in row_key)
    return (
        f"{name}: {len(wrong)} of {expected.height} values differ; first at {key}: "
        f"expected {wanted[first]!r}, found {found[first]!r}"
    )


def _bits(series: pl.Series) -> pl.Series:
    if series.dtype != pl.Float64:  # the one float dtype of canonical frames
        return series
    # By dtype: with `signed` alone polars 2.1 leaves a float a float, and 0.0 would equal -0.0.
    return series.fill_nan(float("nan")).reinterpret(dtype=pl.UInt64)


def fidelity(converted: dict[str, str] | None) -> str:
    """Say how a verified frame came back: `exact`, or `converted` with each column and the dtype it had.

    Nothing is said where no frame came back (None).
    """
    if converted is None:
        return ""
    if not converted:
        return "exact"
    return "converted: " + ", ".join(f"{name} ({dtype})" for name, dtype in converted.items())
