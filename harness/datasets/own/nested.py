"""Where lists and structs of a frame are more than those of a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

_A_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def rows(series: pl.Series) -> dict[str, int]:
    """Return the first rows (from 0) of what a database may not hold of a column of lists or structs.

    `null` is a value that is null, `missing` one inside another one, `ragged` are lists of lists that are no rectangle:
    those of one depth in one row have different lengths, or are empty inside another one.
    """
    found: dict[str, int] = {}
    if _is_nested(series.dtype):
        level = pl.DataFrame({"row": pl.int_range(len(series), eager=True), "value": series})
        _note(found, "null", level.filter(pl.col("value").is_null()))
        _look(level.drop_nulls("value"), found)
    return found


def _look(level: pl.DataFrame, found: dict[str, int]) -> None:
    """Look into the values of rows, of which none is null."""
    dtype: Any = level["value"].dtype
    if isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            if _is_nested(field.dtype):
                inside = level.with_columns(level["value"].struct.field(field.name).alias("value"))
                _note(found, "missing", inside.filter(pl.col("value").is_null()))
                _look(inside.drop_nulls("value"), found)
    elif _is_nested(dtype.inner):
        inside = level.filter(pl.col("value").list.len() > 0).explode("value")
        _note(found, "missing", inside.filter(pl.col("value").is_null()))
        inside = inside.drop_nulls("value")
        if isinstance(dtype.inner, pl.List):
            lengths = pl.col("value").list.len()
            of_row = inside.group_by("row").agg(lengths.min().alias("low"), lengths.max().alias("high"))
            _note(found, "ragged", of_row.filter((pl.col("low") != pl.col("high")) | (pl.col("low") == 0)))
        _look(inside, found)


def _note(found: dict[str, int], what: str, rows: pl.DataFrame) -> None:
    if rows.height:
        first = int(rows["row"].min())  # type: ignore[arg-type]
        found[what] = min(found.get(what, first), first)


def _is_nested(dtype: Any) -> bool:
    return isinstance(dtype, pl.List | pl.Struct)


def days(series: pl.Series) -> pl.DataFrame:
    """Return the days in lists and structs of a column with their rows, as the columns `row` and `value`."""
    found = [pl.DataFrame(schema={"row": pl.Int64, "value": pl.Date})]
    for level in leaves(series) if _is_nested(series.dtype) else ():
        dtype: Any = level["value"].dtype
        if dtype == pl.Date:
            found.append(level)
        elif isinstance(dtype, pl.Datetime):
            whole = level["value"].to_physical() // (86_400 * _A_SECOND[dtype.time_unit])
            found.append(level.with_columns(whole.cast(pl.Int32).cast(pl.Date).alias("value")))
    return pl.concat(found)


def not_counted(series: pl.Series) -> int | None:
    """Return the first row with a moment in its lists and structs that microseconds in 64 bits do not count, if any."""
    found: dict[str, int] = {}
    for level in leaves(series) if series.dtype.is_nested() else ():
        dtype: Any = level["value"].dtype
        if isinstance(dtype, pl.Datetime) and dtype.time_unit != "us":
            counted = level["value"].cast(pl.Datetime("us", dtype.time_zone), strict=False).cast(dtype, strict=False)
            _note(found, "first", level.filter(counted.ne_missing(level["value"])))
    return found.get("first")


def leaves(series: pl.Series) -> Iterator[pl.DataFrame]:
    """Yield what stands in a column that is no list and no struct, without nulls, as the columns `row` and `value`."""
    yield from _leaves(pl.DataFrame({"row": pl.int_range(len(series), eager=True), "value": series}))


def _leaves(level: pl.DataFrame) -> Iterator[pl.DataFrame]:
    values, dtype = level["value"], level["value"].dtype
    if isinstance(dtype, pl.Array):
        yield from _leaves(level.with_columns(values.arr.to_list()))
    elif isinstance(dtype, pl.List):
        yield from _leaves(level.filter(pl.col("value").list.len() > 0).explode("value"))
    elif isinstance(dtype, pl.Struct):
        for field in dtype.fields:
            yield from _leaves(level.with_columns(values.struct.field(field.name).alias("value")))
    else:
        yield level.drop_nulls("value")


def renamed(series: pl.Series, dtype: Any) -> pl.Series:
    """Return a column whose structs have the names of fields, at any depth, that they have in another dtype."""
    if not _has_structs(series.dtype):
        return series
    made = series.alias("").to_frame().select(_renamed(pl.first(), dtype)).to_series()
    return made.alias(series.name)


def _renamed(values: pl.Expr, dtype: Any) -> pl.Expr:
    if isinstance(dtype, pl.List):
        return values.list.eval(_renamed(pl.element(), dtype.inner)) if _has_structs(dtype) else values
    if not isinstance(dtype, pl.Struct):
        return values
    numbers = [str(number) for number in range(len(dtype.fields))]  # polars takes a name such as * for a pattern
    numbered = values.struct.rename_fields(numbers).struct
    parts = zip(numbers, dtype.fields, strict=True)
    made = pl.struct(_renamed(numbered.field(number), of.dtype).alias(of.name) for number, of in parts)
    return pl.when(values.is_not_null()).then(made)


def _has_structs(dtype: Any) -> bool:
    return _has_structs(dtype.inner) if isinstance(dtype, pl.List) else isinstance(dtype, pl.Struct)
