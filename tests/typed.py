"""A frame of types that few transports move, with hostile values at each level, for each database."""

from collections.abc import Callable

import polars as pl

_DAY = 86_400_000_000


def typed(system: str, rows: int) -> pl.DataFrame:
    """Return rows with a unique `id` and a column of every such type that a database has; a third has nulls."""

    def numbers(value: Callable[[int], int | None]) -> pl.Series:
        return pl.Series([value(row) for row in range(rows)], dtype=pl.Int64)

    of_lists = pl.List(pl.List(pl.Int32))
    columns = {
        "id": numbers(lambda row: row),
        "pairs": pl.Series([[[row, None], [-row, 2]] if row % 3 else [] for row in range(rows)], dtype=of_lists),
        "words": pl.Series([[["a", ""], ["\\", '"'], [None, f"{row},"]] for row in range(rows)]),
    }
    if system == "postgres":
        columns["waited"] = numbers(lambda row: row * _DAY - 1 if row % 3 else None).cast(pl.Duration("us"))
        columns["span"] = numbers(lambda row: (row - 7) * 1_000).cast(pl.Duration("ns"))
    else:
        columns["moment"] = numbers(lambda row: row * _DAY * 1_000 - 1).cast(pl.Datetime("ns"))
        columns["instant"] = numbers(lambda row: row * 7 if row % 3 else None).cast(pl.Datetime("ns", "UTC"))
        columns["ragged"] = pl.Series([[[row] * n for n in range(row % 3)] for row in range(rows)], dtype=of_lists)
        columns["parts"] = pl.Series([{"x": row, "words": [None, f"{row}"] * (row % 3)} for row in range(rows)])
    return pl.DataFrame(columns)
