"""How to separate the cells of a CSV, and the refusal of a line that does not match the rest."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from harness.model import LabError, first_line

if TYPE_CHECKING:
    import pyarrow as pa


UTF8 = "utf-8"
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}

LOOKED_AT = 1 << 16  # bytes that determine the separator
LINES = 200


@dataclass(frozen=True)
class Dialect:
    """How to separate a file's cells: `escape` precedes a quote in a field unless quotes are doubled."""

    separator: str
    encoding: str = UTF8
    skip_rows: int = 0
    escape: str = ""
    width: int = 2

    @property
    def blank_is_null(self) -> bool:
        """Whether a blank line is a row: in a file of one column."""
        return self.width == 1

    def reader(self, text: Iterator[str] | io.TextIOBase) -> Any:
        """Return Python's reader of such a file, in strict mode."""
        csv.field_size_limit(sys.maxsize)
        return csv.reader(
            text,
            delimiter=self.separator,
            escapechar=self.escape or None,
            doublequote=not self.escape,
            strict=True,
        )


@dataclass(frozen=True)
class Cells:
    """A file's cells as strings, its bytes in UTF-8 without skipped ones, and notes for the user."""

    table: pa.Table
    raw: bytes
    dialect: Dialect
    where: str
    notes: tuple[str, ...]

    def line(self, row: int) -> int:
        """Return the line of the file in which a row ends."""
        reader = self.dialect.reader(io.StringIO(self.raw.decode(), newline=""))
        records = (
            record for number, record in enumerate(reader) if number == 0 or record or self.dialect.blank_is_null
        )
        next(islice(records, row + 1, None), None)
        return int(reader.line_num) + self.dialect.skip_rows


def separator_of(raw: bytes, preferred: str, decimal: str) -> str:
    """Return the separator that gives the first lines one width of two or more fields, or the commonest width.

    The decimal mark is one only if it also separates the column names.
    """
    start = raw[:LOOKED_AT].decode(errors="ignore")
    if len(raw) > LOOKED_AT:
        start = start[: start.rfind("\n") + 1] or start

    def measured(separator: str) -> tuple[bool, int, int, bool]:
        records = [record for record in islice(lenient(start, separator), LINES) if record]
        if separator == decimal and records and len(records[0]) == 1:
            return False, -1, 1, False
        widths = Counter(map(len, records))
        width, lines = max(widths.items(), key=lambda pair: (pair[0] > 1, pair[1])) if widths else (1, 0)
        many = width > 1 and lines > sum(widths.values()) // 2
        return many and len(widths) == 1, lines if many else 0, width if many else 1, separator == preferred

    return max(dict.fromkeys((preferred, *SEPARATORS)), key=measured)


def lenient(text: str, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        yield from reader
    except csv.Error:
        return


def refuse(raw: bytes, dialect: Dialect, where: str, said: str) -> None:
    """Raise LabError with the first line that is not regular, otherwise with what a reader said."""
    require_regular(raw, dialect, where)
    raise LabError(f"{where}: {first_line(said)}; give another --encoding or --separator")


def require_regular(raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError with the first line that does not match the first one, or has invalid quotes."""
    reader = dialect.reader(io.StringIO(raw.decode(), newline=""))
    try:
        for record in reader:
            if record and len(record) != dialect.width:  # a blank line is none, or a null of the only column
                _refuse_width(reader.line_num + dialect.skip_rows, record, reader, dialect, where)
    except csv.Error as error:
        raise LabError(
            f"{where}, line {reader.line_num + dialect.skip_rows}, column 1 or later: {error}: a quote in quotes must "
            "be doubled, and the last one closed"
        ) from None


def _refuse_width(line: int, record: list[str], reader: Any, dialect: Dialect, where: str) -> None:
    after = Counter(len(other) for other in islice(reader, LINES) if other)
    fields = f"{len(record)} field{'' if len(record) == 1 else 's'}"
    column = min(len(record), dialect.width) + 1
    first = dialect.skip_rows + 1
    said = f"{where}, line {line}, column {column}: {fields}, where line {first} has {dialect.width}"
    if line <= first + 50 and after[len(record)] > after[dialect.width]:
        alone = "; if the fields are one, give another --separator" if dialect.width == 1 else ""
        raise LabError(f"{said}; if the table begins there, give --skip-rows {line - 1}{alone}")
    more = f'quote fields with "{dialect.separator}" in them' if len(record) > dialect.width else "fill the line up"
    raise LabError(f"{said}; {more}, remove the line, or give another --separator")
