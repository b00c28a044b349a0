"""Where lists of lists of a frame are more than arrays of a database are."""

from __future__ import annotations

import polars as pl


def rows(series: pl.Series) -> dict[str, int]:
    """Return the first rows (from 0) in which a list inside another is `missing`, or the lists are `ragged`.

    Ragged are lists that make no rectangle: lists of one depth in one row have different lengths, or are empty inside
    another one.
    """
    found: dict[str, int] = {}

    def note(what: str, where: pl.Series) -> None:
        if not where.is_empty():
            found[what] = min(found.get(what, len(series)), int(where.min()))  # type: ignore[arg-type]

    level = pl.DataFrame({"row": pl.int_range(len(series), eager=True), "list": series})
    while _is_of_lists(level["list"].dtype):
        level = level.filter(pl.col("list").list.len() > 0).explode("list")
        note("missing", level.filter(pl.col("list").is_null())["row"])
        lengths = pl.col("list").list.len()
        of_row = level.drop_nulls("list").group_by("row").agg(lengths.min().alias("low"), lengths.max().alias("high"))
        note("ragged", of_row.filter((pl.col("low") != pl.col("high")) | (pl.col("low") == 0))["row"])
    return found


def _is_of_lists(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.List)
