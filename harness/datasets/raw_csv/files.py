"""The tree of `raw_csv` on disk: CSV files in folders, each with its intended rows; built or reused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.datasets import store
from harness.datasets.raw_csv.rows import columns_of, malformed_lines, name_of, rows_of, text_of
from harness.model import Facts, LabError

VERSION = 1
FILE_ROWS = 50_000  # 11 MB
_BYTES_A_ROW = 300  # upper bound: about 215 in CSV and 50 in Parquet


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
    return 0 if _manifest(_folder(datasets, rows, seed), FILE_ROWS) else most_bytes(rows)


def ensure(datasets: Path, rows: int, seed: int, say: Callable[[str], None], file_rows: int = FILE_ROWS) -> Tree:
    """Return the tree with this many well-formed rows; missing or changed files are built again.

    Raises LabError if the folder is not writable.
    """
    folder = _folder(datasets, rows, seed)
    known = _manifest(folder, file_rows)
    sizes = [min(file_rows, rows - first) for first in range(0, rows, file_rows)]
    try:
        for unfinished in folder.rglob("*.partial-*"):
            unfinished.unlink()
        missing = [number for number in range(len(sizes)) if not _intact(folder, number, known)]
        if missing:
            say(f"building {len(missing)} of {len(sizes)} files of raw_csv in {folder.name}/")
            (folder / "manifest.json").unlink(missing_ok=True)  # until all files exist again
            for number in missing:
                table = rows_of(number, sizes[number], seed, number * file_rows + 1)
                known[name_of(number)] = _write_both(folder, number, table)
            manifest = {"version": VERSION, "file_rows": file_rows, "files": known}
            with store.complete(folder / "manifest.json") as partial:
                partial.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot build raw_csv in {folder}: {error.strerror or error}") from None
    total = sum(facts["bytes"] for facts in known.values())
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


def _manifest(folder: Path, file_rows: int) -> Facts:
    """Return the known facts about the files; empty if the manifest is missing, damaged, or about other files."""
    found = store.manifest_at(folder / "manifest.json")
    known: Facts = found.get("files", {})
    return known if (found.get("version"), found.get("file_rows")) == (VERSION, file_rows) else {}


def _states(folder: Path, number: int) -> list[list[int] | None]:
    return [store.state(folder / "raw" / name_of(number)), store.state(_meant(folder, number))]


def _meant(folder: Path, number: int) -> Path:
    return folder / "meant" / f"{number:05}.parquet"


def _intact(folder: Path, number: int, known: Facts) -> bool:
    """Return whether both files of a number are unchanged."""
    return bool(known.get(name_of(number), {}).get("state") == _states(folder, number))


def _write_both(folder: Path, number: int, table: pa.Table) -> Facts:
    text = text_of(number, table)
    with store.complete(folder / "raw" / name_of(number)) as raw, store.complete(_meant(folder, number)) as meant:
        raw.write_bytes(text)
        pq.write_table(table, meant, compression="zstd")
    return {"bytes": len(text), "state": _states(folder, number)}
