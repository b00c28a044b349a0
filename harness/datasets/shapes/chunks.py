"""A shape's rows, one chunk at a time, from a seeded generator's raw words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from harness.datasets import seeded
from harness.datasets.specification import Column, Specification

CHUNK_ROWS = 20_000  # rows generated at a time: 40 MB for the widest shape


def specification(
    name: str,
    logical_types: dict[str, str],
    made: seeded.Made,
    bytes_a_row: int,
    nullable: bool = False,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Specification:
    """Return a dataset with a running `id`, which matches rows, and the columns that `made` builds for its chunks.

    `nullable` applies to these columns. `labels` are the strings of category columns.
    """
    all_logical_types, of_categories = {"id": "int64", **logical_types}, labels or {}
    return Specification(
        name=name,
        version=1,
        logical_types=all_logical_types,
        row_key=("id",),
        bytes_a_row=bytes_a_row,
        build=lambda rows, seed: seeded.batches(
            rows, seed, lambda ids, words: {"id": pa.array(ids), **made(ids, words)}, CHUNK_ROWS
        ),
        in_databases=True,
        columns=tuple(
            Column(column, logical, nullable and column != "id", labels=tuple(of_categories.get(column, ())))
            for column, logical in all_logical_types.items()
        ),
    )


def moments(words: np.ndarray, zone: str | None) -> pa.Array:
    """Return timestamps of the year 2025, to the microsecond."""
    first = np.datetime64("2025-01-01", "us").astype(np.int64)
    micros = first + (words % np.uint64(365 * 86_400 * 1_000_000)).astype(np.int64)
    return pa.array(micros).cast(pa.timestamp("us", zone))
