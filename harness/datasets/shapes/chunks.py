"""A shape's rows, one chunk at a time, from a seeded generator's raw words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from harness.datasets.specification import Column, Specification

CHUNK_ROWS = 20_000  # rows generated at a time: 40 MB for the widest shape
Words = Callable[[], np.ndarray]  # returns one random uint64 per row, new ones at each call
Made = Callable[[np.ndarray, Words], dict[str, pa.Array]]  # builds the columns other than `id` for a chunk's ids


def specification(
    name: str,
    logical_types: dict[str, str],
    made: Made,
    bytes_a_row: int,
    nullable: bool = False,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Specification:
    """Return a dataset with a running `id`, which matches rows, and these columns; `nullable` applies to the columns.

    `labels` are the strings of category columns.
    """
    all_logical_types, of_categories = {"id": "int64", **logical_types}, labels or {}
    return Specification(
        name=name,
        version=1,
        logical_types=all_logical_types,
        row_key=("id",),
        bytes_a_row=bytes_a_row,
        build=lambda rows, seed: _batches(rows, seed, made),
        in_databases=True,
        columns=tuple(
            Column(column, logical, nullable and column != "id", labels=tuple(of_categories.get(column, ())))
            for column, logical in all_logical_types.items()
        ),
    )


def _batches(rows: int, seed: int, made: Made) -> Iterator[pa.RecordBatch]:
    for number, start in enumerate(range(0, rows, CHUNK_ROWS)):
        ids = np.arange(start, min(start + CHUNK_ROWS, rows), dtype=np.int64)
        # Use only the bit generator's raw words: numpy guarantees their stream forever, but not its distributions'.
        source = np.random.PCG64(np.random.SeedSequence([seed, number]))

        def words(count: int = len(ids), source: np.random.PCG64 = source) -> np.ndarray:
            drawn: np.ndarray = source.random_raw(count)
            return drawn

        yield pa.RecordBatch.from_pydict({"id": pa.array(ids), **made(ids, words)})


def fractions(words: np.ndarray) -> np.ndarray:
    """Return random words as floats in [0, 1) with 53 random bits."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def chosen(values: pa.Array, words: np.ndarray) -> pa.Array:
    """Return one of some values for every word."""
    return values.take(pa.array((words % np.uint64(len(values))).astype(np.int32)))


def moments(words: np.ndarray, zone: str | None) -> pa.Array:
    """Return timestamps of the year 2025, to the microsecond."""
    first = np.datetime64("2025-01-01", "us").astype(np.int64)
    micros = first + (words % np.uint64(365 * 86_400 * 1_000_000)).astype(np.int64)
    return pa.array(micros).cast(pa.timestamp("us", zone))
