"""Where lists and structs of a frame are more than those of a database."""

from __future__ import annotations

from typing import Any

import polars as pl


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
    none = pl.DataFrame(schema={"row": pl.Int64, "value": pl.Date})
    if not _is_nested(series.dtype):
        return none
    return pl.concat([none, *_days(pl.DataFrame({"row": pl.int_range(len(series), eager=True), "value": series}))])


def _days(level: pl.DataFrame) -> list[pl.DataFrame]:
    values, dtype = level["value"], level["value"].dtype
    if dtype == pl.Date:
        return [level.drop_nulls("value")]
    if isinstance(dtype, pl.List):
        return _days(level.filter(pl.col("value").list.len() > 0).explode("value"))
    fields = [field.name for field in dtype.fields] if isinstance(dtype, pl.Struct) else []
    return [one for name in fields for one in _days(level.with_columns(values.struct.field(name).alias("value")))]
