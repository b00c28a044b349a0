"""Rows in chunks, from the raw words of a seeded generator."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

CHUNK_ROWS = 100_000  # rows generated at a time: keeps memory flat whatever the number of rows
Words = Callable[..., np.ndarray]  # returns one random uint64 per row, or `columns` of them, new ones at each call
Made = Callable[[np.ndarray, Words], dict[str, Any]]  # builds the columns of a chunk's row numbers


def source(*seeds: int) -> np.random.PCG64:
    """Return a generator of raw words: numpy guarantees their stream forever, but not its distributions'."""
    return np.random.PCG64(np.random.SeedSequence(seeds))


def batches(rows: int, seed: int, made: Made, chunk_rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield a table in batches of at most `chunk_rows` rows."""
    for number, start in enumerate(range(0, rows, chunk_rows)):
        ids, drawn = np.arange(start, min(start + chunk_rows, rows), dtype=np.int64), source(seed, number)

        def words(columns: int = 1, count: int = len(ids), drawn: np.random.PCG64 = drawn) -> np.ndarray:
            found: np.ndarray = drawn.random_raw(count * columns)
            return found

        yield pa.RecordBatch.from_pydict(made(ids, words))


def fractions(words: np.ndarray) -> np.ndarray:
    """Return random words as floats in [0, 1) with 53 random bits."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def chosen(values: pa.Array, words: np.ndarray) -> pa.Array:
    """Return one of some values for every word."""
    return values.take(pa.array((words % np.uint64(len(values))).astype(np.int32)))
