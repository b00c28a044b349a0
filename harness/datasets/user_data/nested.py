"""Find values in a frame's lists and structs that a database may not hold."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from harness.check.canonical import entries_of
from harness.check.logical_types import PER_SECOND, Dtype


def rows(series: pl.Series) -> dict[str, int]:
    """Return the first rows (from 0) of values in a column of lists or structs that a database may not hold.

    `null` is a null value, `missing` a null inside another value. `ragged` are nested lists that are not rectangular:
    lists of one depth in one row have different lengths, or are empty inside another one. `nul` is a string with
    U+0000.
    """
    found: dict[str, int] = {}
    lengths = pl.col("value").list.len()
    for depth, (level, around) in enumerate(_levels(_with_rows(series)) if _is_nested(series.dtype) else ()):
        dtype: Dtype = level["value"].dtype
        if _is_nested(dtype):
            _note(found, "missing" if depth else "null", level.filter(pl.col("value").is_null()))
        if isinstance(dtype, pl.List) and isinstance(around, pl.List):
            of_lists = level.drop_nulls("value").group_by("row")
            of_row = of_lists.agg(lengths.min().alias("low"), lengths.max().alias("high"))
            _note(found, "ragged", of_row.filter((pl.col("low") != pl.col("high")) | (pl.col("low") == 0)))
        elif dtype == pl.String:
            _note(found, "nul", level.filter(pl.col("value").str.contains("\0", literal=True)))
    return found


def _note(found: dict[str, int], what: str, rows: pl.DataFrame) -> None:
    if rows.height:
        first = int(rows["row"].min())  # type: ignore[arg-type]
        found[what] = min(found.get(what, first), first)


def _is_nested(dtype: Dtype) -> bool:
    return isinstance(dtype, pl.List | pl.Struct | pl.Map)


def days(series: pl.Series) -> pl.DataFrame:
    """Return the dates in lists and structs of a column with their rows, as the columns `row` and `value`."""
    found = [pl.DataFrame(schema={"row": pl.Int64, "value": pl.Date})]
    for level in leaves(series) if _is_nested(series.dtype) else ():
        dtype: Dtype = level["value"].dtype
        if dtype == pl.Date:
            found.append(level)
        elif isinstance(dtype, pl.Datetime):
            whole = level["value"].to_physical() // (86_400 * PER_SECOND[dtype.time_unit])
            found.append(level.with_columns(whole.cast(pl.Int32).cast(pl.Date).alias("value")))
    return pl.concat(found)


def not_counted(series: pl.Series) -> int | None:
    """Return the first row with a timestamp in its lists and structs that 64-bit microseconds cannot hold, if any."""
    found: dict[str, int] = {}
    for level in leaves(series) if series.dtype.is_nested() else ():
        dtype: Dtype = level["value"].dtype
        if isinstance(dtype, pl.Datetime) and dtype.time_unit != "us":
            counted = level["value"].cast(pl.Datetime("us", dtype.time_zone), strict=False).cast(dtype, strict=False)
            _note(found, "first", level.filter(counted.ne_missing(level["value"])))
    return found.get("first")


def repeated(series: pl.Series) -> int | None:
    """Return the first row with a map that has a key twice, if any: polars accepts them from Arrow unchanged."""
    found: dict[str, int] = {}
    for level, _ in _levels(_with_rows(series)) if series.dtype.is_nested() else ():
        values: Dtype = level["value"]
        if isinstance(values.dtype, pl.Map):
            keys = values.map.keys()
            _note(found, "first", level.filter(keys.list.n_unique() < keys.list.len()))
    return found.get("first")


def leaves(series: pl.Series) -> Iterator[pl.DataFrame]:
    """Yield the non-nested values in a column, without nulls, as the columns `row` and `value`."""
    for level, _ in _levels(_with_rows(series)):
        if not level["value"].dtype.is_nested():
            yield level.drop_nulls("value")


def _with_rows(series: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"row": pl.int_range(len(series), eager=True), "value": series})


def _levels(level: pl.DataFrame, around: Dtype = None) -> Iterator[tuple[pl.DataFrame, Dtype]]:
    """Yield values with their rows, then those inside them, at any depth, each with the type around them."""
    yield level, around
    values: Dtype = level["value"]
    if isinstance(values.dtype, pl.Map):
        values = values.map.entries()
    elif isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    if isinstance(values.dtype, pl.List):
        lists = level.with_columns(values.alias("value")).filter(values.list.len() > 0)
        yield from _levels(lists.explode("value"), values.dtype)
    elif isinstance(values.dtype, pl.Struct):
        some = level.drop_nulls("value")
        for field in some["value"].struct.unnest():  # polars reads the name * as all columns
            yield from _levels(some.with_columns(field.alias("value")), values.dtype)


def renamed(series: pl.Series, dtype: Dtype) -> pl.Series:
    """Return a column whose struct fields, at any depth, have the names of another dtype."""
    if not _has_structs(series.dtype):
        return series
    made = series.alias("").to_frame().select(_renamed(pl.first(), dtype)).to_series()
    return made.alias(series.name)


def _renamed(values: pl.Expr, dtype: Dtype) -> pl.Expr:
    if isinstance(dtype, pl.List):
        return values.list.eval(_renamed(pl.element(), dtype.inner)) if _has_structs(dtype) else values
    if isinstance(dtype, pl.Map):
        return _renamed(values.map.entries(), entries_of(dtype)).cast(dtype) if _has_structs(dtype) else values
    if not isinstance(dtype, pl.Struct):
        return values
    numbers = [str(number) for number in range(len(dtype.fields))]  # polars reads a name such as * as a pattern
    numbered = values.struct.rename_fields(numbers).struct
    parts = zip(numbers, dtype.fields, strict=True)
    made = pl.struct(_renamed(numbered.field(number), of.dtype).alias(of.name) for number, of in parts)
    return pl.when(values.is_not_null()).then(made)


def _has_structs(dtype: Dtype) -> bool:
    if isinstance(dtype, pl.Map):
        return _has_structs(dtype.key) or _has_structs(dtype.value)
    return _has_structs(dtype.inner) if isinstance(dtype, pl.List) else isinstance(dtype, pl.Struct)
