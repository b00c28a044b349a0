"""Frames of five common shapes from seeded builders, to try `lab recommend` on, and to test it.

They contain no real data: the shapes are published, the values are random.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from harness.datasets.examples import documents, orders, sensors, trips, web_log
from harness.model import LabError, unknown

# Name -> the columns that are unique together (none if rows repeat), and the builder of rows from a seed.
EXAMPLES: dict[str, tuple[tuple[str, ...], Callable[[int, int], pl.DataFrame]]] = {
    "trips": ((), trips.build),
    "web_log": ((), web_log.build),
    "sensors": (("moment",), sensors.build),
    "orders": (("order_id",), orders.build),
    "documents": ((), documents.build),
}


def example(name: str, rows: int, seed: int) -> pl.DataFrame:
    """Return this many rows of an example, the same for the same seed. Raises LabError."""
    if name not in EXAMPLES:
        raise unknown("example", name, EXAMPLES)
    if rows < 1:
        raise LabError(f"rows {rows}: give a whole number of at least 1")
    return EXAMPLES[name][1](rows, seed)
