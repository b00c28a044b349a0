"""runs.csv: one row per run, each on disk before the next run starts."""

import csv
import io
import os
import re
from pathlib import Path

from harness.model import LabError, Status, label
from harness.results.row import COLUMNS, NAMES, Row, impossible

_OTHER_COLUMNS = "the columns are not those of this version; see docs/reference/columns.md"
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # spreadsheets read such a start as a formula
_NUMBER = re.compile(r"[-+.0-9e]*|[+-]?(nan|inf)")  # as the lab writes them: Python also takes forms such as 1_0
_BEFORE_FORMULA = ("\t", "\r", "\n")
_PARSED = {column.name: column for column in COLUMNS}


class RunsFile:
    """The runs.csv of a run in progress; `then` is the end of its messages.

    Raises LabError if another process changed or replaced the file, or no row can be written.
    """

    def __init__(self, path: Path, then: str) -> None:
        self._path, self._then, self._left = path, then, identity(path)

    def require_same(self) -> None:
        """Raise LabError if the file was removed, replaced or changed: new rows would be lost."""
        found = identity(self._path)
        if found != self._left:
            how = (
                "removed" if found is None else "changed" if self._left and found[:2] == self._left[:2] else "replaced"
            )
            raise LabError(
                f"{self._path} was {how} while this run wrote to it; put the earlier file back, {self._then}"
            )

    def add(self, row: Row) -> None:
        """Add one row, see `append`."""
        self.require_same()
        try:
            append(self._path, row)
        except OSError as error:
            raise LabError(f"cannot write {self._path}: {error.strerror}; make room, {self._then}") from None
        self._left = identity(self._path)


def identity(path: Path) -> tuple[int, int, int] | None:
    """Return the identity of a file or folder and its size, to notice another one of its name; None without one."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size


def append(path: Path, *rows: Row) -> None:
    """Add rows and flush them to disk, with the header before the first row."""
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerows({column.name: as_text(getattr(row, column.field)) for column in COLUMNS} for row in rows)
        file.flush()
        os.fsync(file.fileno())


def as_text(value: object) -> str:
    """Return a value as the file stores it: nine digits, one line, empty if missing."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = (label(value) if isinstance(value, dict) else str(value)).replace("\r", " ").replace("\n", " ")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # half a surrogate pair cannot be encoded as UTF-8


def as_cell(value: object) -> str:
    """Return a value for tables that spreadsheets read, without formulas in non-numeric cells.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    text = as_text(value)
    if text == "=" or (not text.lstrip().startswith(_FORMULA) and text[:1] not in _BEFORE_FORMULA):
        return text  # alone it marks a tie
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def load(path: Path) -> list[Row]:
    """Read runs.csv back.

    Columns newer than the file have missing values, and transports get their current ids. Raises LabError for a
    missing, foreign, damaged or edited file.
    """
    rows, torn = load_interrupted(path)
    if torn is not None:
        raise LabError(
            f"{path}: the last line is incomplete, as after a killed run; "
            f'"lab run --resume {path.parent}" removes it and goes on'
        )
    return rows


def load_interrupted(path: Path) -> tuple[list[Row], int | None]:
    """Read the rows of a run that may have been killed while it wrote one.

    Returns them, and the offset of an incomplete last line. Writes nothing. Raises LabError like `load` for any other
    fault, even at the end of the file.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from None
    whole = content.rfind(b"\n") + 1
    torn = content[whole:]
    if b"\r" in torn:
        raise LabError(f"{path}: a line ends in CR instead of the lab's LF; convert the file")
    if not whole and not ",".join(NAMES).encode().startswith(torn):
        raise LabError(f"{path}: {_OTHER_COLUMNS}")
    return _rows(path, content[:whole]), whole if torn else None


def cut(path: Path, size: int) -> None:
    """Remove everything after this many bytes, in place."""
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())


def _rows(path: Path, content: bytes) -> list[Row]:
    found: dict[tuple[object, ...], int] = {}
    rows: list[Row] = []
    try:
        reader = csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True)
        if reader.fieldnames is None:  # killed, or the disk was full, before the first row
            return []
        if tuple(reader.fieldnames) != NAMES:
            raise LabError(f"{path}: {_OTHER_COLUMNS}")
        for line, cells in enumerate(reader, start=2):
            row = _parsed(path, line, cells)
            if row.status is not Status.AGAIN and (first := found.setdefault(row.key, line)) != line:
                raise LabError(f"{path}, line {line}: this run is in line {first} too; remove one of the two lines")
            rows.append(row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabError(f"cannot read {path}: {error}") from None
    return rows


def _parsed(path: Path, line: int, row: dict[str, str]) -> Row:
    if None in row or None in row.values():
        raise LabError(f"{path}, line {line}: not {len(row.keys() - {None})} columns; is the file damaged?")
    try:
        for name, text in row.items():
            if _PARSED[name].parse in (int, float) and not _NUMBER.fullmatch(text):
                raise ValueError(f"{name} is {text!r}, not a number")
        found = Row(**{_PARSED[name].field: _PARSED[name].parse(text) for name, text in row.items() if text})
    except (TypeError, ValueError) as error:
        raise LabError(f"{path}, line {line}: {error}; is the file damaged?") from None
    if wrong := impossible(found):
        raise LabError(f"{path}, line {line}: {wrong}; was the file edited?")
    return found
