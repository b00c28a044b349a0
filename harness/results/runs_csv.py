"""runs.csv: one row after the other, each on the disk before the next run starts."""

import csv
import os
from pathlib import Path
from typing import Any

from harness import renamed
from harness.model import LabError, label
from harness.results.row import COLUMNS, NAMES, Row

_ADDED = {"details", "engine", "lossy", "steal_seconds", "throttled_seconds"}  # what older files may lack
_PARSED = {column.name: column for column in COLUMNS}


def append(path: Path, row: Row) -> None:
    """Add one row and flush it to the disk, with the header before the first."""
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow({column.name: as_text(getattr(row, column.field)) for column in COLUMNS})
        file.flush()
        os.fsync(file.fileno())


def as_text(value: Any) -> str:
    """Return a value as it stands in a file: nine digits, one line, empty where there is none."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = (label(value) if isinstance(value, dict) else str(value)).replace("\r", " ").replace("\n", " ")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair has no UTF-8


def load(path: Path) -> list[Row]:
    """Read runs.csv back.

    What a column that is younger than the file would say is missing, and a transport has the id of today. Raises
    LabError: missing, foreign or damaged file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            if reader.fieldnames is None:  # killed, or the disk full, before the first row
                return []
            if tuple(reader.fieldnames) != tuple(n for n in NAMES if n in reader.fieldnames or n not in _ADDED):
                raise LabError(f"{path}: expected the columns of this version, found others; see docs/columns.md")
            return [_parsed(path, line, row) for line, row in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LabError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _parsed(path: Path, line: int, row: dict[str, str]) -> Row:
    if None in row or None in row.values():
        raise LabError(
            f"{path}, line {line}: expected {len(row.keys() - {None})} columns, found another number; "
            "is the file damaged?"
        )
    try:
        return Row(**{_PARSED[name].field: _PARSED[name].parse(text) for name, text in _today(row).items() if text})
    except (TypeError, ValueError) as error:
        raise LabError(f"{path}, line {line}: {error}; is the file damaged?") from None


def _today(row: dict[str, str]) -> dict[str, str]:
    """Return a row with the id and client that its transport has today."""
    now = renamed.current(row["transport"])
    return row if now == row["transport"] else row | {"transport": now, "client": now.split(".")[1]}


def drop_torn_line(path: Path) -> None:
    """Cut off a last line that was not written to its end, as a killed run may leave it."""
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        path.write_bytes(content[: content.rfind(b"\n") + 1])
