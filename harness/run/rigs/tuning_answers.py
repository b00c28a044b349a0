"""Checks of the tuning suite's results and files against the generator's known rows.

A client other than the writer reads the rows back. Polars reads files. Only DuckDB reads a database file, and it
passes the rows to Polars.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.check import row_sums
from harness.datasets.benchmark_input import InputFiles
from harness.model import Case, Scalar, Value

_SQL_TYPES = {"col_1": "VARCHAR", "col_2": "VARCHAR", "amount": "INTEGER"}
TRIAD = [3.5]  # 2 + 3 * 0.5 everywhere
_TOLERANCE = 1e-9  # relative tolerance of a sum of millions of floats in any order


@dataclass(frozen=True)
class Done:
    """A finished run: its case and data (None for a job without), its answer, and its output.

    `made` is its output: the database, the file, or the Parquet files, fetched from their destination.
    """

    case: Case
    data: InputFiles | None
    answer: Scalar
    arguments: dict[str, Value]
    made: list[Path]
    folder: Path

    @property
    def rows(self) -> int:
        return self.data.rows if self.data else 0


def differences(done: Done) -> list[str]:
    """Return the faults in an answer and its output; an empty list if all is right."""
    return CHECKS[done.case.transport.function.__name__](done)


def _top(done: Done) -> list[str]:
    assert done.data
    return _groups(done.data.answers.top, done.answer)


def _every_top(done: Done) -> list[str]:
    assert done.data
    queries = int(done.case.parameters["queries"])
    if not isinstance(done.answer, list) or len(done.answer) != queries:
        return [f"expected the answers of {queries} queries, found {done.answer!r:.100}"]
    return [line for answer in done.answer for line in _groups(done.data.answers.top, answer)]


def _groups(expected: list[list[Scalar]], found: Scalar) -> list[str]:
    if found == expected:
        return []
    if not isinstance(found, list) or len(found) != len(expected):
        return [f"expected the {len(expected)} largest groups, found {found!r:.100}"]
    place = next(place for place, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1])
    return [f"largest group {place + 1}: expected {expected[place]}, found {found[place]}"]


def _similarity(done: Done) -> list[str]:
    assert done.data
    expected = done.data.answers.similarity_sum
    if isinstance(done.answer, float) and math.isclose(done.answer, expected, rel_tol=_TOLERANCE):
        return []
    return [f"sum of similarities: expected {expected!r}, found {done.answer!r}"]


def _written(done: Done) -> list[str]:
    size = done.arguments["size"]
    found = [path.stat().st_size for path in done.made]
    return [] if done.answer == size and found == [size] else [f"expected one file of {size} bytes, found {found}"]


def _rows(done: Done) -> list[str]:
    """Compare the reported number of rows and all rows of the written Parquet files."""
    if done.answer != done.rows:
        return [f"expected {done.rows} rows said to be written, found {done.answer!r:.100}"]
    if not done.made:
        return ["expected Parquet files, found none"]
    return row_sums.differences(_expected(done), row_sums.by_polars([str(path) for path in done.made], _SQL_TYPES, ""))


def _database(done: Done) -> list[str]:
    """Compare all rows of the table in the database file, which must be the only file."""
    import duckdb
    import pyarrow.parquet as pq

    names = [path.name for path in done.made]
    if names != ["made.duckdb"]:
        return [f"expected made.duckdb alone, found {', '.join(names) or 'nothing'}"]
    copied = done.folder / "copied.parquet"
    with duckdb.connect(str(done.made[0]), read_only=True) as connection:
        reader = connection.sql("SELECT col_1, col_2, amount FROM benchmark_input").to_arrow_reader(100_000)
        with pq.ParquetWriter(copied, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    found = row_sums.by_polars([str(copied)], _SQL_TYPES, "")
    copied.unlink()
    if done.answer != done.rows:
        return [f"expected {done.rows} rows said to be created, found {done.answer!r:.100}"]
    return row_sums.differences(_expected(done), found)


def _expected(done: Done) -> row_sums.RowSums:
    assert done.data
    return _sums_of(tuple(str(path) for path in done.data.paths), done.data.bytes)


@cache
def _sums_of(files: tuple[str, ...], size: int) -> row_sums.RowSums:
    """Return the sums of files that do not change; they are read once per suite run."""
    return row_sums.by_polars(files, _SQL_TYPES, "")


CHECKS: dict[str, Callable[[Done], list[str]]] = {
    "group_by": _top,
    "bandwidth_of_group_by": _top,
    "download": _top,
    "side_by_side": _every_top,
    "in_a_row": _every_top,
    "jaro_winkler": _similarity,
    "triad": lambda done: [] if done.answer == TRIAD else [f"expected {TRIAD} everywhere, found {done.answer!r:.100}"],
    "sequential_write": _written,
    "create_table": _database,
    "create_table_with_wal": _database,
    "copy_to_s3": _rows,
    "upload": _rows,
}
