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
