"""A shape's rows, a chunk at a time, of the raw words of a seeded generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from harness.datasets.specification import Column, Specification

CHUNK_ROWS = 20_000  # made at a time: 40 MB of the widest
Words = Callable[[], np.ndarray]  # one random uint64 a row, others at each call
Made = Callable[[np.ndarray, Words], dict[str, pa.Array]]  # columns beside `id`, of the ids of a chunk


def specification(
    name: str,
    logical_types: dict[str, str],
    made: Made,
    bytes_a_row: int,
    nullable: bool = False,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Specification:
    """Return a dataset of these columns behind a running `id`, by which rows are matched; `nullable` are all others.

    `labels` are the texts of categories by their column.
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
        # Only the bit generator's raw words are used: numpy promises their stream for ever, of distributions not.
        source = np.random.PCG64(np.random.SeedSequence([seed, number]))

        def words(count: int = len(ids), source: np.random.PCG64 = source) -> np.ndarray:
            drawn: np.ndarray = source.random_raw(count)
            return drawn

        yield pa.RecordBatch.from_pydict({"id": pa.array(ids), **made(ids, words)})


def fractions(words: np.ndarray) -> np.ndarray:
    """Return random words as floats in [0, 1) of 53 random bits."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def chosen(values: pa.Array, words: np.ndarray) -> pa.Array:
    """Return one of some values for every word."""
    return values.take(pa.array((words % np.uint64(len(values))).astype(np.int32)))


def moments(words: np.ndarray, zone: str | None) -> pa.Array:
    """Return moments of the year 2025, to the microsecond."""
    first = np.datetime64("2025-01-01", "us").astype(np.int64)
    micros = first + (words % np.uint64(365 * 86_400 * 1_000_000)).astype(np.int64)
    return pa.array(micros).cast(pa.timestamp("us", zone))
