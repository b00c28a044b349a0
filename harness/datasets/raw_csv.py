"""`raw_csv`: a tree of CSV files as suppliers send them, with malformed lines and differing columns; built or reused.

The table is an invented web log. The published job (`elt`) gives its files' total bytes and rows: 212 bytes a row in
13.7 GB, 222 in 4.0 GB. It also gives its folders, and the options with which it reads them. Our files give work to
each of these options:

- `ignore_errors`: one line in 2,000 is malformed, alternately truncated or with a word instead of a number,
- `union_by_name`: of four files one has two more columns, and one lacks a column and has another order,
- `sample_size`: the first 1,000 lines of a file are well-formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from harness.datasets import manifest, seeded
from harness.model import Facts

VERSION = 1
FILE_ROWS = 50_000  # 11 MB
_BYTES_A_ROW = 300  # upper bound: about 215 in CSV and 50 in Parquet
_FIRST_MALFORMED = 1_000
_MALFORMED_EVERY = 2_000
_START = np.datetime64("2025-01-01T00:00:00", "s")
_DAYS = 365

# Present in every file without missing values, so a row without one of them is a malformed line.
MANDATORY = (
    "event_id",
    "occurred_at",
    "user_id",
    "session",
    "country",
    "path",
    "status",
    "duration_ms",
    "bytes_sent",
    "price",
    "agent",
    "note",
)
_WITH_DEVICE = (*MANDATORY[:5], "device", *MANDATORY[5:])
_WITH_CAMPAIGN = (*_WITH_DEVICE, "campaign", "variant")
_OTHER_ORDER = (*MANDATORY[6:11], *MANDATORY[:6], "note")
_COLUMN_SETS = (_WITH_DEVICE, _WITH_DEVICE, _WITH_CAMPAIGN, _OTHER_ORDER)
TYPES = {
    "event_id": pa.int64(),
    "occurred_at": pa.timestamp("us"),
    "user_id": pa.int64(),
    "session": pa.string(),
    "country": pa.string(),
    "device": pa.string(),
    "path": pa.string(),
    "status": pa.int64(),
    "duration_ms": pa.int64(),
    "bytes_sent": pa.int64(),
    "price": pa.float64(),
    "agent": pa.string(),
    "note": pa.string(),
    "campaign": pa.string(),
    "variant": pa.string(),
    "filename": pa.string(),
}
_COUNTRIES = [f"{first}{second}" for first in "ABCDEFGH" for second in "KLMNPR"]
_DEVICES = ["phone", "tablet", "desktop", "television", "watch"]
_STATUSES = [200, 200, 200, 201, 204, 301, 304, 404, 500]
_PATHS = [f"/catalogue/section-{n % 97:02}/article-{n:05}/reviews/page-{n % 11}" for n in range(20_000)]
_AGENTS = [f"Browser/{n % 40 + 90}.0 (System {n % 7}; rv:{n % 40 + 90}) Build/{n:04}" for n in range(500)]
_NOTES = ["fine", "as expected", "slow, but complete", 'said "hello", twice', "répété – ça va"]
_CAMPAIGNS = [f"campaign-{n:03}" for n in range(300)]
_VARIANTS = ["control", "treatment"]


@dataclass(frozen=True)
class Tree:
    """CSV files below `raw`, and their intended rows in Parquet files below `meant`; counts cover the whole tree."""

    folder: Path
    rows: int
    malformed: int
    bytes: int
    files: int
    seed: int

    @property
    def raw(self) -> Path:
        return self.folder / "raw"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all files together, and `filename`; a tree of few files lacks some."""
        return columns_of(min(self.files, 4))

    @property
    def meant(self) -> Path:
        return self.folder / "meant"


def most_bytes(rows: int) -> int:
    """Return an upper bound of a tree's disk space."""
    return rows * _BYTES_A_ROW


def needed_bytes(datasets: Path, rows: int, seed: int) -> int:
    """Return an upper bound of the disk space for building; 0 if the tree exists."""
    return 0 if manifest.read(_folder(datasets, rows, seed) / manifest.NAME, _of(FILE_ROWS)) else most_bytes(rows)


def ensure(datasets: Path, rows: int, seed: int, say: Callable[[str], None], file_rows: int = FILE_ROWS) -> Tree:
    """Return the tree with this many well-formed rows; missing or changed files are built again.

    Raises LabError if the folder is not writable.
    """
    folder = _folder(datasets, rows, seed)
    sizes = [min(file_rows, rows - first) for first in range(0, rows, file_rows)]
    files = [(folder / "raw" / name_of(place), folder / "meant" / f"{place:05}.parquet") for place in range(len(sizes))]

    def make(place: int) -> None:
        table = rows_of(place, sizes[place], seed, place * file_rows + 1)
        with manifest.complete(files[place][0]) as raw, manifest.complete(files[place][1]) as meant:
            raw.write_bytes(text_of(place, table))
            pq.write_table(table, meant, compression="zstd")

    known = manifest.ensure(folder, _of(file_rows), files, make, say)["files"]
    total = sum(known[raw.name]["bytes"] for raw, _ in files)
    return Tree(folder, rows, sum(map(malformed_lines, sizes)), total, len(sizes), seed)


def facts(tree: Tree) -> Facts:
    """Return the known facts about a tree as plain values, without its location."""
    return {
        "name": "raw_csv",
        "version": VERSION,
        "rows": tree.rows,
        "malformed_lines": tree.malformed,
        "files": tree.files,
        "bytes": tree.bytes,
        "seed": tree.seed,
    }


def _folder(datasets: Path, rows: int, seed: int) -> Path:
    return datasets / f"raw_csv-{rows}-{seed}"


def _of(file_rows: int) -> Facts:
    return {"name": "raw_csv", "version": VERSION, "file_rows": file_rows}


def name_of(number: int) -> str:
    """Return a file's path in the tree: site/year/month/file."""
    return str(
        PurePosixPath(("web", "app", "mail")[number % 3], "2025", f"{number % 12 + 1:02}", f"events-{number:05}.csv")
    )


def rows_of(number: int, rows: int, seed: int, first_id: int) -> pa.Table:
    """Return the well-formed rows of a file under all columns of the tree, with nulls for columns that it lacks.

    `number` counts the files from 0. `event_id` increases from `first_id`. `filename` is relative to the tree.
    """
    source = seeded.source(seed, number)

    def below(limit: int) -> np.ndarray:
        return (source.random_raw(rows) % limit).astype(np.int64)

    def one_of(values: list[str] | list[int]) -> pa.Array:
        return pa.array(values).take(pa.array(below(len(values))))

    columns = {
        "event_id": pa.array(np.arange(rows, dtype=np.int64) + first_id),
        "occurred_at": pa.array(_START + below(_DAYS * 86_400).astype("timedelta64[s]")).cast(pa.timestamp("us")),
        "user_id": pa.array(below(2_000_000_000)),
        "session": pc.binary_join_element_wise("s", pa.array(below(10**18)).cast(pa.string()), ""),
        "country": one_of(_COUNTRIES),
        "device": one_of(_DEVICES),
        "path": one_of(_PATHS),
        "status": one_of(_STATUSES),
        "duration_ms": pa.array(below(30_000)),
        "bytes_sent": pa.array(below(5_000_000)),
        "price": pa.array(below(100_000) / 100.0),
        "agent": one_of(_AGENTS),
        "note": one_of(_NOTES),
        "campaign": one_of(_CAMPAIGNS),
        "variant": one_of(_VARIANTS),
        "filename": pa.repeat(name_of(number), rows),
    }
    present = {*_COLUMN_SETS[number % len(_COLUMN_SETS)], "filename"}
    return pa.table(
        {name: columns[name] if name in present else pa.nulls(rows, arrow_type) for name, arrow_type in TYPES.items()},
        schema=pa.schema(list(TYPES.items())),
    )


def text_of(number: int, table: pa.Table) -> bytes:
    """Return a file's text: a header, the rows, and malformed lines among them."""
    names = _COLUMN_SETS[number % len(_COLUMN_SETS)]
    seconds = table.set_column(1, "occurred_at", table["occurred_at"].cast(pa.timestamp("s")))
    sink = pa.BufferOutputStream()
    csv.write_csv(seconds.select(names), sink, csv.WriteOptions(include_header=False, quoting_style="needed"))
    lines = sink.getvalue().to_pybytes().split(b"\n")[:-1]
    places = range(_FIRST_MALFORMED, len(lines), _MALFORMED_EVERY)
    for nth, place in reversed(list(enumerate(places))):  # from the end, because an insertion moves everything after it
        lines.insert(place, _malformed(nth, lines[place]))
    return b"\n".join([",".join(names).encode(), *lines, b""])


def _malformed(nth: int, line: bytes) -> bytes:
    """Return a line as left by an interrupted writer, or one with a word instead of a number."""
    fields = line.split(b",")
    if nth % 2 == 0:
        return b",".join(fields[:4])
    return b",".join([b"unknown", *fields[1:]])  # in every column set the first column is a number


def columns_of(files: int) -> tuple[str, ...]:
    """Return the columns of the first files of this number together, and `filename`, in the order of TYPES."""
    present = {name for number in range(files) for name in _COLUMN_SETS[number % len(_COLUMN_SETS)]}
    return tuple(name for name in TYPES if name in present or name == "filename")


def malformed_lines(rows: int) -> int:
    """Return the number of malformed lines among this many rows of a file."""
    return len(range(_FIRST_MALFORMED, rows, _MALFORMED_EVERY))
