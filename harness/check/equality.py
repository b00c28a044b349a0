"""Expected frame against actual frame: every value of every column, matched by row key. Pure.

Floats are compared bit by bit, except that any NaN equals any NaN: -0.0 is not 0.0. Null equals only null.
"""

from typing import Protocol

import polars as pl

from harness.check.canonical import entries_of
from harness.check.logical_types import Dtype

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # Python's date range in days since 1970-01-01
_LONGEST_VALUE = 60  # characters of a value shown in a difference


class Columns(Protocol):
    """The part of the expected frame that verification uses; a polars frame has it, and so does a column reader."""

    @property
    def schema(self) -> pl.Schema: ...
    @property
    def height(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    def __getitem__(self, name: str) -> pl.Series: ...


def differences(
    expected: Columns,
    actual: pl.DataFrame,
    row_key: tuple[str, ...],
    one_missing: bool = False,
    with_values: bool = True,
) -> list[str]:
    """Return the differences, one line a column; an empty list means that every value is equal.

    Both frames are canonical (same columns and dtypes). `expected` is in key order, `actual` in any order. Without a
    key, whole rows are matched in any order, and repeated rows are counted. With `one_missing`, NaN in a float column
    counts as null, as in pandas. Lines omit values if these must not be shown. If the numbers of rows differ, only that
    is reported. Raises ValueError if the columns or dtypes differ: canonicalise both first.
    """
    if expected.schema != actual.schema:
        raise ValueError(
            f"expected the schema {expected.schema}, found {actual.schema}; canonicalise both frames first"
        )
    if expected.height != actual.height:
        return [f"expected {expected.height} rows, found {actual.height}"]
    if not row_key:
        return _different_rows(expected, actual, one_missing)
    # Sort one column at a time into key order, so that memory never holds a second copy of the frame.
    order = actual.select(pl.arg_sort_by(row_key, nulls_last=True)).to_series()
    lines = (
        _difference(expected, name, actual[name].gather(order), row_key, one_missing, with_values)
        for name in expected.columns
    )
    return [line for line in lines if line is not None]


def equal_as_they_stand(expected: pl.DataFrame, actual: pl.DataFrame, one_missing: bool = False) -> bool:
    """Return whether every value equals the one at its position, so that no row must be searched. See `differences`."""
    return expected.schema == actual.schema and all(
        _bits(expected[name], one_missing).equals(_bits(actual[name], one_missing), null_equal=True)
        for name in expected.columns
    )


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


def _different_rows(expected: Columns, actual: pl.DataFrame, one_missing: bool) -> list[str]:
    """Report how many rows are not among those expected, and which columns' values differ regardless of rows."""
    wanted, found = (
        pl.DataFrame([_bits(frame[name], one_missing).alias(str(place)) for place, name in enumerate(expected.columns)])
        for frame in (expected, actual)
    )
    hashes = [frame.hash_rows().alias("row") for frame in (wanted, found)]
    if wanted[hashes[0].arg_sort()].equals(found[hashes[1].arg_sort()]) or wanted.sort("*").equals(found.sort("*")):
        return []  # unequal rows with one hash: not observed so far, and the second order does not need it
    changed = [
        name
        for name, column, other in zip(expected.columns, wanted, found, strict=True)
        if not column.hash().sort().equals(other.hash().sort())
    ]
    counts = hashes[0].value_counts().join(hashes[1].value_counts(), on="row", how="left").fill_null(0)
    wrong = int((counts["count"].cast(pl.Int64) - counts["count_right"].cast(pl.Int64)).clip(0).sum())
    where = f"values differ in {', '.join(changed)}" if changed else "their values are in other rows"
    return [f"{wrong} of {expected.height} rows are not there as they should be: {where}"]


def _shown(series: pl.Series, place: int) -> str:
    """Return a value as Python prints it, also a date outside the years 1 to 9999, which Python cannot hold."""
    if getattr(series.dtype, "time_unit", "") == "ns" and (count := series.to_physical()[place]) is not None:
        return f"nanosecond {count} since 1970"
    if series.dtype in (pl.Date, pl.Datetime):
        unit, a_day = ("day", 1) if series.dtype == pl.Date else ("microsecond", 86_400_000_000)
        count = series.to_physical()[place]
        if count is not None and not _FIRST_DAY * a_day <= count < (_LAST_DAY + 1) * a_day:
            return f"{unit} {count} since 1970"
    value = repr(series[place])
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}... ({len(value)} characters)"


def _bits(series: pl.Series, one_missing: bool = False) -> pl.Series:
    """Return a column that is equal exactly where the values are: floats by their bits, categories by their strings.

    Maps become lists of their entries.
    """
    if isinstance(series.dtype, pl.Categorical):
        return series.cast(pl.String)
    if series.dtype.is_nested() and _has_other_bits(series.dtype):
        return series.alias("").to_frame().select(_bits_inside(pl.first(), series.dtype)).to_series().alias(series.name)
    if not series.dtype.is_float():
        return series
    return series.fill_nan(None if one_missing else float("nan")).reinterpret(dtype=_as_integer(series.dtype))


def _as_integer(dtype: pl.DataType) -> Dtype:
    # By dtype: with `signed` alone polars 2.1 keeps a float, and 0.0 would equal -0.0.
    return pl.UInt32 if dtype == pl.Float32 else pl.UInt64


def _has_other_bits(dtype: Dtype) -> bool:
    """Return whether a dtype contains floats or maps."""
    if isinstance(dtype, pl.List):
        return _has_other_bits(dtype.inner)
    if isinstance(dtype, pl.Struct):
        return any(_has_other_bits(field.dtype) for field in dtype.fields)
    return isinstance(dtype, pl.Map) or bool(dtype.is_float())


def _bits_inside(values: pl.Expr, dtype: Dtype) -> pl.Expr:
    """Return values with bits instead of floats, in lists and structs of any depth; fields are numbered."""
    if isinstance(dtype, pl.Map):
        return _bits_inside(values.map.entries(), entries_of(dtype))
    if isinstance(dtype, pl.List):
        return values.list.eval(_bits_inside(pl.element(), dtype.inner))
    if isinstance(dtype, pl.Struct):
        numbers = [str(number) for number in range(len(dtype.fields))]  # polars reads a name such as * as a pattern
        numbered = values.struct.rename_fields(numbers).struct
        parts = zip(numbers, dtype.fields, strict=True)
        made = pl.struct(_bits_inside(numbered.field(number), of.dtype).alias(number) for number, of in parts)
        return pl.when(values.is_not_null()).then(made)
    return values.fill_nan(float("nan")).reinterpret(dtype=_as_integer(dtype)) if dtype.is_float() else values


def nulls_for_nans(expected: pl.DataFrame, actual: pl.DataFrame, row_key: tuple[str, ...]) -> pl.DataFrame:
    """Return `actual` with null for each float NaN where null is expected: pandas has one marker for both."""
    wanted = actual.select(row_key).join(expected, on=row_key, how="left", maintain_order="left")
    floats = [name for name in expected.columns if expected.schema[name].is_float()]
    return actual.with_columns(
        pl.when(actual[name].is_nan() & wanted[name].is_null()).then(None).otherwise(actual[name]).alias(name)
        for name in floats
    )


def came_back(converted: dict[str, str] | None) -> str:
    """Describe how a verified frame arrived: `exact`, or `converted` with each column and its dtype.

    Returns an empty string if no frame arrived (None).
    """
    if converted is None:
        return ""
    if not converted:
        return "exact"
    return "converted: " + ", ".join(f"{name} ({dtype})" for name, dtype in converted.items())
