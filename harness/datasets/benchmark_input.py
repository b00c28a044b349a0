"""`benchmark_input`: the tuning suite's table in Parquet files, with known answers to its queries; built or reused.

The rows are two columns of names, the second misspelt, and a number. The published article gives the queries, the
number of rows (800 million) and files (100) and their bytes (3.9 GiB), but neither generator nor values. Ours has 2,000
names in `col_1` and 500 in `col_2`, so there are up to a million groups. Names early in the lists are more frequent, so
the largest groups are clear. Many pairs are similar, so that similarities of names are meaningful. With `amount`, a row
takes about as many bytes in Parquet as in the article.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.datasets import manifest, seeded
from harness.model import Facts, LabError, Scalar

# Jaro-Winkler similarity of every name of one list to every name of another, with numpy: a second opinion.
#
# After W. E. Winkler, "String Comparator Metrics and Enhanced Decision Rules in the Fellegi-Sunter Model of Record
# Linkage" (1990): Jaro's similarity. If it is above 0.7, each of at most four equal first letters adds a tenth of the
# difference to 1.

_BLOCK = 50  # names of the first list at a time: keeps the arrays small
_PREFIX, _WEIGHT, _FROM = 4, 0.1, 0.7


def jaro_winkler(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return the similarities, shape (len(left), len(right)), from 0 to 1. All names are ASCII and not empty."""
    blocks = [left[start : start + _BLOCK] for start in range(0, len(left), _BLOCK)]
    return np.concatenate([_block(block, right) for block in blocks])


def _letters(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the letters, shape (names, longest) padded with 0, and the lengths."""
    lengths = np.array([len(name) for name in names])
    padded = b"".join(name.encode("ascii").ljust(lengths.max(), b"\0") for name in names)
    return np.frombuffer(padded, np.uint8).reshape(len(names), lengths.max()), lengths


def _block(left: Sequence[str], right: Sequence[str]) -> np.ndarray:
    (one, one_lengths), (other, other_lengths) = _letters(left), _letters(right)
    lengths = np.broadcast_arrays(one_lengths[:, None], other_lengths[None, :])
    in_one, in_other = _matches(one, other, np.maximum(np.maximum(*lengths) // 2 - 1, 0))
    matches = in_one.sum(axis=2)
    moved = _in_order(one[:, None, :], in_one) != _in_order(other[None, :, :], in_other)
    swaps = moved.sum(axis=2) // 2
    some = np.maximum(matches, 1)  # avoids division by zero; without a match the result is still 0
    jaro = (matches / lengths[0] + matches / lengths[1] + (matches - swaps) / some) / 3 * (matches > 0)
    width = min(_PREFIX, one.shape[1], other.shape[1])
    equal = (one[:, None, :width] == other[None, :, :width]) & (one[:, None, :width] > 0)
    prefix = np.logical_and.accumulate(equal, axis=2).sum(axis=2)
    return np.where(jaro > _FROM, jaro + prefix * _WEIGHT * (1 - jaro), jaro)


def _matches(one: np.ndarray, other: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which letters of each pair match: each takes the first free equal letter within reach."""
    shape = len(one), len(other)
    in_one, in_other = np.zeros((*shape, one.shape[1]), bool), np.zeros((*shape, other.shape[1]), bool)
    for i in range(one.shape[1]):
        letter = one[:, i, None]
        for j in range(other.shape[1]):
            found = (letter == other[None, :, j]) & (letter > 0) & (abs(i - j) <= reach)
            found &= ~in_one[:, :, i] & ~in_other[:, :, j]
            in_one[:, :, i] |= found
            in_other[:, :, j] |= found
    return in_one, in_other


def _in_order(letters: np.ndarray, matched: np.ndarray) -> np.ndarray:
    """Return the matched letters of each pair first, in order, then 0; as wide as the longest name."""
    order = np.argsort(~matched, axis=2, kind="stable")
    front = np.take_along_axis(np.where(matched, letters, 0), order, axis=2)
    return np.pad(front, ((0, 0), (0, 0), (0, 64 - front.shape[2])))


VERSION = 1
TOP = 10
ROW_GROUP_ROWS = 122_880  # DuckDB's default
_BYTES_A_ROW = 7  # upper bound, without each file's names
_BYTES_A_FILE = 200_000
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


@dataclass(frozen=True)
class Answers:
    """The known answers, computed without a query engine from the generator.

    `top` are the largest groups as [col_1, col_2, count], larger ones first, equal ones ordered by name.
    """

    top: list[list[Scalar]]
    groups: int
    similarity_sum: float
    amount_sum: int


@dataclass(frozen=True)
class InputFiles:
    """The files of a table: their folder, total rows and bytes, and the answers."""

    folder: Path
    rows: int
    files: int
    bytes: int
    seed: int
    answers: Answers

    @property
    def paths(self) -> list[Path]:
        """The files in the order of their numbers."""
        return [self.folder / _name(number) for number in range(self.files)]

    @property
    def pattern(self) -> str:
        """The files as one glob."""
        return str(self.folder / "*.parquet")


def most_bytes(rows: int, files: int) -> int:
    """Return an upper bound of the files' disk space."""
    return rows * _BYTES_A_ROW + files * _BYTES_A_FILE


def needed_bytes(datasets: Path, rows: int, files: int, seed: int) -> int:
    """Return an upper bound of the disk space for building; 0 if the files exist."""
    known = manifest.read(_folder(datasets, rows, files, seed) / manifest.NAME, _of())
    return 0 if known else most_bytes(rows, files)


def ensure(datasets: Path, rows: int, files: int, seed: int, say: Callable[[str], None]) -> InputFiles:
    """Return the table in this many files of equal size; missing or changed files are built again.

    Raises LabError if there are more files than rows, or the folder is not writable.
    """
    if not 0 < files <= rows:
        raise LabError(f"benchmark_input: {rows} rows do not fill {files} files; choose at most one file a row")
    folder = _folder(datasets, rows, files, seed)
    sizes = [rows * (number + 1) // files - rows * number // files for number in range(files)]
    paths = [(folder / _name(number),) for number in range(files)]
    known = manifest.ensure(
        folder,
        _of(),
        paths,
        lambda number: _build(*paths[number], number, sizes[number], seed),
        say,
        lambda: {"answers": asdict(answers(sizes, seed))},
    )
    total = sum(file["bytes"] for file in known["files"].values())
    return InputFiles(folder, rows, files, total, seed, Answers(**known["answers"]))


def facts(files: InputFiles) -> Facts:
    """Return the known facts about the files as plain values, without their location."""
    known = {name: getattr(files, name) for name in ("rows", "files", "bytes", "seed")}
    return {"name": "benchmark_input", "version": VERSION, **known, **asdict(files.answers)}


def answers(sizes: list[int], seed: int) -> Answers:
    """Return the answers for files of this many rows, from the numbers that generate the rows."""
    counts = np.zeros(len(COL_1) * len(COL_2), np.int64)
    amount_sum = 0
    for number, rows in enumerate(sizes):
        for first, second, amounts in codes_of(number, rows, seed):
            counts += np.bincount(first * len(COL_2) + second, minlength=len(counts))
            amount_sum += int(amounts.sum())
    known = np.flatnonzero(counts)
    least = np.sort(counts[known])[-TOP:][0]
    candidates = [(-int(counts[place]), *_names(int(place))) for place in np.flatnonzero(counts >= least)]
    top = [[col_1, col_2, -count] for count, col_1, col_2 in sorted(candidates)[:TOP]]
    similarity = math.fsum(counts[known] * _similarities().reshape(-1)[known])
    return Answers(top, len(known), similarity, amount_sum)


@cache
def _similarities() -> np.ndarray:
    return jaro_winkler(COL_1, COL_2)


def _names(place: int) -> tuple[str, str]:
    first, second = divmod(place, len(COL_2))
    return COL_1[first], COL_2[second]


def _build(path: Path, number: int, rows: int, seed: int) -> None:
    tables = map(table_of, codes_of(number, rows, seed))
    first = next(tables)
    # Without the Arrow schema, so that readers see strings, as in other people's files.
    with manifest.complete(path) as partial, pq.ParquetWriter(partial, first.schema, store_schema=False) as writer:
        for table in (first, *tables):
            writer.write_table(table, ROW_GROUP_ROWS)


def _folder(datasets: Path, rows: int, files: int, seed: int) -> Path:
    return datasets / f"benchmark_input-{rows}-{files}-{seed}"


def _name(number: int) -> str:
    return f"part-{number:05}.parquet"


def _of() -> Facts:
    return {"name": "benchmark_input", "version": VERSION}


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
