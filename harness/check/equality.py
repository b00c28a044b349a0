"""Expected frame against actual frame: every value of every column, matched by row key. Pure.

Floats are compared bit by bit, except that any NaN equals any NaN: -0.0 is not 0.0. Null equals only null.
"""

from typing import Protocol

import polars as pl

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of Python, since 1970-01-01
_LONGEST_VALUE = 60  # characters of a value in a difference


class Columns(Protocol):
    """What verification needs of the expected frame: a polars frame has it, and what reads columns one at a time."""

    @property
    def schema(self) -> pl.Schema: ...
    @property
    def height(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __getitem__(self, name: str) -> pl.Series: ...


def in_order(frame: pl.DataFrame, row_key: tuple[str, ...], one_missing: bool = False) -> pl.Series:
    """Return the places of a canonical frame's rows in the order of these columns, nulls last.

    Without a key it is an order of whole rows, the same for equal frames: also where they have -0.0 beside 0.0.
    """
    if row_key:
        return frame.select(pl.arg_sort_by(row_key, nulls_last=True)).to_series()
    columns = [_bits(frame[name], one_missing).alias(str(place)) for place, name in enumerate(frame.columns)]
    return pl.DataFrame(columns).select(pl.arg_sort_by(pl.all(), nulls_last=True)).to_series()


def differences(
    expected: Columns,
    actual: pl.DataFrame,
    row_key: tuple[str, ...],
    one_missing: bool = False,
    with_values: bool = True,
) -> list[str]:
    """Return what differs, one line a column; an empty list means that every value is equal.

    Both frames are canonical (same columns and dtypes); `expected` is in key order (see `in_order`), `actual` in any.
    Without a key whole rows are matched, and those that repeat another one are counted. With `one_missing` a NaN among
    floats is a null, as in pandas. Lines are without values where these are not to be told.
    Where the number of rows differs, only that is said. Raises ValueError when the columns or dtypes differ:
    canonicalise both first.
    """
    if expected.schema != actual.schema:
        raise ValueError(
            f"expected the schema {expected.schema}, found {actual.schema}; canonicalise both frames first"
        )
    if expected.height != actual.height:
        return [f"expected {expected.height} rows, found {actual.height}"]
    # One column at a time is brought into key order, so that no second copy of the frame is ever in memory.
    order = in_order(actual, row_key, one_missing)
    if not row_key:
        return _different_rows(expected, actual, order, one_missing)
    lines = (
        _difference(expected, name, actual[name].gather(order), row_key, one_missing, with_values)
        for name in expected.columns
    )
    return [line for line in lines if line is not None]


def _difference(
    expected: Columns, name: str, found: pl.Series, row_key: tuple[str, ...], one_missing: bool, with_values: bool
) -> str | None:
    wanted = expected[name]
    wrong = _bits(wanted, one_missing).ne_missing(_bits(found, one_missing)).arg_true()
    if wrong.is_empty():
        return None
    count = f"{name}: {len(wrong)} of {expected.height} values differ"
    if not with_values:
        return count
    first = int(wrong[0])
    key = ", ".join(f"{column}={expected[column][first]!r}" for column in row_key)
    return f"{count}; first at {key}: expected {_shown(wanted, first)}, found {_shown(found, first)}"


def _different_rows(expected: Columns, actual: pl.DataFrame, order: pl.Series, one_missing: bool) -> list[str]:
    """Say how many rows are not among those expected, and of which columns the values are not, whatever their row."""
    if not any(
        _bits(expected[name], one_missing).ne_missing(_bits(actual[name].gather(order), one_missing)).any()
        for name in expected.columns
    ):
        return []
    changed, hashes = [], []
    for place, name in enumerate(expected.columns):
        pair = [_bits(frame[name], one_missing).hash().alias(str(place)) for frame in (expected, actual)]
        hashes.append(pair)
        if pair[0].sort().ne(pair[1].sort()).any():
            changed.append(name)
    sides = (
        pl.DataFrame(list(columns)).hash_rows().alias("row").value_counts() for columns in zip(*hashes, strict=True)
    )
    counts = next(sides).join(next(sides), on="row", how="left").fill_null(0)
    wrong = int((counts["count"].cast(pl.Int64) - counts["count_right"].cast(pl.Int64)).clip(0).sum())
    where = f"values differ in {', '.join(changed)}" if changed else "their values stand in other rows"
    return [f"{wrong} of {expected.height} rows are not there as they should be: {where}"]


def _shown(series: pl.Series, place: int) -> str:
    """Return a value as Python prints it, also one that Python has not: its dates are those of the years 1 to 9999."""
    if series.dtype.is_temporal():
        unit, a_day = ("day", 1) if series.dtype == pl.Date else ("microsecond", 86_400_000_000)
        count = series.to_physical()[place]
        if count is not None and not _FIRST_DAY * a_day <= count < (_LAST_DAY + 1) * a_day:
            return f"{unit} {count} since 1970"
    value = repr(series[place])
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}... ({len(value)} characters)"


def _bits(series: pl.Series, one_missing: bool = False) -> pl.Series:
    """Return a column that is equal exactly where the values are: floats by their bits, categories by their texts."""
    if isinstance(series.dtype, pl.Categorical):
        return series.cast(pl.String)
    if not series.dtype.is_float():
        return series
    # By dtype: with `signed` alone polars 2.1 leaves a float a float, and 0.0 would equal -0.0.
    bits = pl.UInt32 if series.dtype == pl.Float32 else pl.UInt64
    return series.fill_nan(None if one_missing else float("nan")).reinterpret(dtype=bits)


def nulls_for_nans(expected: pl.DataFrame, actual: pl.DataFrame, row_key: tuple[str, ...]) -> pl.DataFrame:
    """Return `actual` with a null for each NaN among floats where a null is expected: pandas has one for both."""
    wanted = actual.select(row_key).join(expected, on=row_key, how="left", maintain_order="left")
    floats = [name for name in expected.columns if expected.schema[name].is_float()]
    return actual.with_columns(
        pl.when(actual[name].is_nan() & wanted[name].is_null()).then(None).otherwise(actual[name]).alias(name)
        for name in floats
    )


def fidelity(converted: dict[str, str] | None) -> str:
    """Say how a verified frame came back: `exact`, or `converted` with each column and the dtype it had.

    Nothing is said where no frame came back (None).
    """
    if converted is None:
        return ""
    if not converted:
        return "exact"
    return "converted: " + ", ".join(f"{name} ({dtype})" for name, dtype in converted.items())
