"""Facts about a file of lineitem in a manifest next to it, and whether the file is still the same."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.datasets.lineitem.layout import PARTIAL, Layout
from harness.model import Facts, LabError

GENERATOR = 1  # increase it when the rows, the known answers or their encoding change, to rebuild older files


@dataclass(frozen=True)
class LineitemFile:
    """A file on disk. Rows, matches and content come from the generator's table, before the rows became Parquet.

    `matches` is the number of rows that the scan suite's query counts. `content_id` is a hexadecimal sum modulo 2^64,
    over all rows, of the first 8 bytes of the MD5 of the row as text. Files with the same rows have the same sum,
    whatever their layout. Several files together have the sums of their rows, matches and content_id.
    """

    layout: Layout
    path: str
    rows: int
    bytes: int
    matches: int
    content_id: str
    row_groups: int
    smallest_row_group: int
    largest_row_group: int
    duckdb_version: str  # the version that wrote it


_TYPES = {
    "generator": int,
    "layout": dict,
    "rows": int,
    "bytes": int,
    "matches": int,
    "content_id": str,
    "row_groups": int,
    "smallest_row_group": int,
    "largest_row_group": int,
    "duckdb_version": str,
    "mtime_ns": int,
    "file_hash": str,
}


def record(path: Path, layout: Layout, rows: int, matches: int, content: int) -> LineitemFile:
    """Write the manifest of a finished file and return its facts.

    Raises LabError if the file's footer has another number of rows than were generated for it.
    """
    import duckdb
    import pyarrow.parquet as pq

    footer = pq.read_metadata(path)
    if footer.num_rows != rows:
        raise LabError(f"{path} has {footer.num_rows} rows instead of {rows}; remove the file and try again")
    sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    stat = path.stat()
    facts = {
        "generator": GENERATOR,
        "layout": asdict(layout),
        "rows": rows,
        "bytes": stat.st_size,
        "matches": matches,
        "content_id": f"{content:016x}",
        "row_groups": len(sizes),
        "smallest_row_group": min(sizes, default=0),
        "largest_row_group": max(sizes, default=0),
        "duckdb_version": duckdb.__version__,
        "mtime_ns": stat.st_mtime_ns,
        "file_hash": _hash(path),
    }
    _write(manifest_of(path), facts)
    return _as_file(path, layout, facts)


def find(path: Path, layout: Layout) -> LineitemFile | None:
    """Return the facts about a file, or None if it must be built: missing, damaged, of an older generator.

    A file with the recorded size and modification time is trusted. With another time, the file is read and its hash
    decides.
    """
    facts = _read(manifest_of(path))
    if facts is None or facts["generator"] != GENERATOR or facts["layout"] != asdict(layout):
        return None
    try:
        stat = path.stat()
        if stat.st_size != facts["bytes"]:
            return None
        if stat.st_mtime_ns != facts["mtime_ns"]:
            if _hash(path) != facts["file_hash"]:
                return None
            with suppress(OSError):  # a read-only folder: then it is hashed again the next time
                _write(manifest_of(path), facts | {"mtime_ns": stat.st_mtime_ns})
    except FileNotFoundError:
        return None
    return _as_file(path, layout, facts)


def manifest_of(path: Path) -> Path:
    """Return the path of a file's manifest."""
    return path.with_suffix(".json")


def _as_file(path: Path, layout: Layout, facts: Facts) -> LineitemFile:
    of_file = facts.keys() - {"generator", "layout", "mtime_ns", "file_hash"}
    return LineitemFile(layout=layout, path=str(path), **{name: facts[name] for name in of_file})


def _read(path: Path) -> Facts | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(facts, dict) or {name: type(value) for name, value in facts.items()} != _TYPES:
        return None
    return facts


def _hash(path: Path) -> str:
    from harness.datasets.store import file_hash  # not at the top: every builder would import pyarrow with it

    return file_hash(path)


def _write(path: Path, facts: Facts) -> None:
    partial = path.with_name(path.name + PARTIAL)
    partial.write_text(json.dumps(facts, indent=2) + "\n")
    os.replace(partial, path)
