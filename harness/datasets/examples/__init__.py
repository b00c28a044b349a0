"""Frames of five shapes that people have, made by seeded builders: to try `lab recommend` on, and to test it by.

Nobody's data: shaped as what is published, of random values.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from harness.datasets.examples import documents, orders, sensors, trips, web_log
from harness.model import LabError, unknown

# Name -> the columns that are unique together (none where rows repeat), and what makes so many rows from a seed.
EXAMPLES: dict[str, tuple[tuple[str, ...], Callable[[int, int], pl.DataFrame]]] = {
    "trips": ((), trips.build),
    "web_log": ((), web_log.build),
    "sensors": (("moment",), sensors.build),
    "orders": (("order_id",), orders.build),
    "documents": ((), documents.build),
}


def example(name: str, rows: int, seed: int) -> pl.DataFrame:
    """Return so many rows of an example, the same for the same seed. Raises LabError."""
    if name not in EXAMPLES:
        raise unknown("example", name, EXAMPLES)
    if rows < 1:
        raise LabError(f"expected rows to be a whole number of at least 1, found {rows}")
    return EXAMPLES[name][1](rows, seed)
