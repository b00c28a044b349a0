"""The rows of `benchmark_input`: two columns of names, the second misspelt, and a number.

The published article gives the queries, the number of rows (800 million) and files (100) and their bytes (3.9 GiB), but
neither generator nor values. Ours has 2,000 names in `col_1` and 500 in `col_2`, so there are up to a million groups.
Names early in the lists are more frequent, so the largest groups are clear. Many pairs are similar, so that
similarities of names are meaningful. With `amount`, a row takes about as many bytes in Parquet as in the article.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from harness.datasets import seeded

CHUNK_ROWS = 983_040  # rows generated at a time: keeps memory flat whatever the number of rows; 8 row groups
_LARGEST_AMOUNT = 10_000
_FIRST = (
    "Ada Amir Anna Anton Berta Boris Carla Cesar Clara Dario Dora Edgar Elena Emil Erik Esra Eva Felix Frida Georg "
    "Greta Hanna Hugo Ines Ivan Jana Jonas Julia Karl Klara Lars Laura Leon Lina Luca Maria Marta Max Mila Nina "
    "Olga Oskar Paula Petra Ralf Rosa Sara Sven Tina Viktor"
)
_LAST = (
    "Adler Albers Bauer Beck Berger Brandt Conrad Dietz Ebert Engel Fischer Frank Fuchs Graf Gross Haas Hahn Hansen "
    "Huber Jung Kaiser Keller Koch Kraus Lang Lorenz Mayer Meyer Moser Otto Peters Pohl Richter Roth Sauer Schulz "
    "Vogel Wagner Weber Wolf"
)
TYPES = {"col_1": pa.string(), "col_2": pa.string(), "amount": pa.int32()}


def _misspelt(number: int, name: str) -> str:
    """Return a name unchanged, or with two letters swapped, one missing or one doubled."""
    place = 1 + number % (len(name) - 2)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    return (name, before + after[:1] + letter + after[1:], before + after, before + letter + letter + after)[number % 4]


COL_1 = [f"{first} {last}" for last in _LAST.split() for first in _FIRST.split()]
COL_2 = [_misspelt(number, name) for number, name in enumerate(COL_1[::4])]

Codes = tuple[np.ndarray, np.ndarray, np.ndarray]


def codes_of(number: int, rows: int, seed: int) -> Iterator[Codes]:
    """Yield the rows of file `number` (from 0) in chunks: indexes in COL_1, indexes in COL_2, amounts; all int64."""
    source = seeded.source(seed, number)
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        words, amounts = source.random_raw(count), source.random_raw(count) % _LARGEST_AMOUNT
        first, second = (_skewed(words >> np.uint64(shift), len(names)) for shift, names in ((0, COL_1), (32, COL_2)))
        yield first, second, amounts.astype(np.int64)


def _skewed(words: np.ndarray, limit: int) -> np.ndarray:
    """Return numbers below `limit`, small ones more often: products of two uniform ones from the words' low 32 bits."""
    low, high = words & np.uint64(0xFFFF), words >> np.uint64(16) & np.uint64(0xFFFF)
    return (low * high * np.uint64(limit) >> np.uint64(32)).astype(np.int64)


def table_of(codes: Codes) -> pa.Table:
    """Return a chunk of rows as a table of TYPES, its names as dictionaries."""
    first, second, amounts = codes
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), pa.array(names))
        for places, names in ((first, COL_1), (second, COL_2))
    ]
    return pa.table([*columns, pa.array(amounts.astype(np.int32))], names=list(TYPES))
