"""A CSV file as columns of strings, exactly as its cells are written: pyarrow reads it, every byte is accounted for.

The encoding is that of the byte order mark, else UTF-8; the separator is the one that gives every line as many fields
as the first. An empty cell is a null, one in quotes an empty string. Blank lines are no rows, but in a file of one
column, where all but those at the end are nulls.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from harness.datasets.own.options import Options
from harness.model import LabError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
_LOOKED_AT = 1 << 16  # bytes that say what the separator is
_LINES = 200
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UTF8 = "utf-8"
_QUOTE, _LINE_FEED = ord('"'), ord("\n")
_SHOWN = 40  # characters of a cell in a message
_PIECE = 1 << 24


@dataclass(frozen=True)
class Dialect:
    """How the cells of a file are told apart: `escape` is before a quote in a field where it is not doubled."""

    separator: str
    encoding: str = _UTF8
    skip_rows: int = 0
    escape: str = ""
    width: int = 2

    @property
    def blank_is_null(self) -> bool:
        """Whether a blank line is a row: where there is one column."""
        return self.width == 1

    def reader(self, text: Iterator[str] | io.TextIOBase) -> Any:
        """Return Python's reader of such a file, which is strict."""
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
    """The cells of a file as strings, its bytes in UTF-8 without what was skipped, and what to tell a person of it."""

    table: Any
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


def cells(raw: bytes, where: str, options: Options, preferred: str = ",") -> Cells:
    """Return the cells of a CSV. Raises LabError with the line, the column and what to do."""
    raw, encoding = _decoded(raw, where, options)
    raw = _without_lines(raw, options.skip_rows)
    if not raw.strip():
        raise LabError(f"{where} is empty{f' after {options.skip_rows} lines' if options.skip_rows else ''}")
    filled = raw.lstrip(b"\r\n")
    skipped = options.skip_rows + raw[: len(raw) - len(filled)].count(b"\n")
    dialect = Dialect(options.separator or _separator(filled, preferred), encoding, skipped)
    names = _names(filled, dialect, where)
    dialect = replace(dialect, width=len(names))
    raw = _ended(filled)
    if _oddly_quoted(raw, dialect) or raw.count(b"\r") != raw.count(b"\r\n"):
        dialect = _escaped(raw, dialect, where)
        table = _read(raw, dialect, where)
        _require_same(table, raw, dialect, where)
    else:
        table = _read(raw, dialect, where)
        _require_all_bytes(table, raw, dialect, where)
    if not table.num_rows:
        raise LabError(f"{where}: line 1 has names of columns, and no row comes after it")
    return Cells(table, raw, dialect, where, tuple(_notes(table, raw, dialect, where)))


def _decoded(raw: bytes, where: str, options: Options) -> tuple[bytes, str]:
    """Return the bytes of a file in UTF-8 without a byte order mark, and the encoding that it had."""
    mark = next((mark for mark in _MARKS if raw.startswith(mark)), b"")
    encoding = options.encoding or _MARKS.get(mark, _UTF8)
    known = codecs.lookup(encoding).name
    if mark and (_MARKS[mark].startswith(known) or known == "utf-8-sig"):
        raw, known = raw[len(mark) :], _MARKS[mark]
    if known == _UTF8:
        _require_utf8(raw, where, options)
        return raw, known
    try:
        return raw.decode(known).encode(), known
    except UnicodeError as error:
        line = raw[: getattr(error, "start", 0)].count(b"\n") + 1
        raise LabError(
            f"{where}, line {line}: bytes that are no {encoding}; give another --encoding, such as utf-8, cp1252 or "
            "utf-16"
        ) from None


def _require_utf8(raw: bytes, where: str, options: Options) -> None:
    decoder = codecs.getincrementaldecoder(_UTF8)()
    for start in range(0, max(len(raw), 1), _PIECE):
        piece = raw[start : start + _PIECE]
        try:
            decoder.decode(piece, start + _PIECE >= len(raw))
        except UnicodeDecodeError:
            _refuse_encoding(raw, where, options)
    if raw[:_LOOKED_AT].count(0) > len(raw[:_LOOKED_AT]) // 4:
        which = "utf-16-le" if raw[1:2] == b"\0" else "utf-16-be"
        raise LabError(f"{where}, line 1: every other byte is zero, as in UTF-16; give --encoding {which}")


def _refuse_encoding(raw: bytes, where: str, options: Options) -> None:
    """Raise LabError with the line and the column of the first bytes that are no UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        start = error.start
        of_line = raw.rfind(b"\n", 0, start) + 1
        line, before = raw.count(b"\n", 0, start) + 1, raw[of_line:start].decode()
        separator = options.separator or _separator(raw[:of_line] or raw[:start], ",")
        column = len(next(csv.reader([before], delimiter=separator), [""]))
        raise LabError(
            f"{where}, line {line}, column {column}: byte {raw[start]:#04x} is no UTF-8; say how the file is encoded, "
            "such as --encoding cp1252 or latin-1"
        ) from None


def _without_lines(raw: bytes, count: int) -> bytes:
    for _ in range(count):
        raw = raw[raw.find(b"\n") + 1 :] if b"\n" in raw else b""
    return raw


def _ended(raw: bytes) -> bytes:
    """Return the bytes of a file without blank lines at its end."""
    end = raw[len(raw.rstrip(b"\r\n")) :]
    return raw[: len(raw) - len(end)] + end[: 2 if end[:2] == b"\r\n" else 1] if len(end) > 1 else raw


def _separator(raw: bytes, preferred: str) -> str:
    """Return the separator that gives the first lines one width of two or more fields; else the commonest width."""
    start = raw[:_LOOKED_AT].decode(errors="ignore")
    if len(raw) > _LOOKED_AT:
        start = start[: start.rfind("\n") + 1] or start

    def measured(separator: str) -> tuple[bool, int, int, bool]:
        widths = Counter(len(record) for record in islice(_lenient(start, separator), _LINES) if record)
        width, lines = max(widths.items(), key=lambda pair: (pair[0] > 1, pair[1])) if widths else (1, 0)
        return width > 1 and len(widths) == 1, lines if width > 1 else 0, width, separator == preferred

    return max(dict.fromkeys((preferred, *SEPARATORS)), key=measured)


def _lenient(text: str, separator: str) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        yield from reader
    except csv.Error:
        return


def _names(raw: bytes, dialect: Dialect, where: str) -> list[str]:
    """Return the names of the columns. Raises LabError for one that is empty or there twice."""
    first = dialect.skip_rows + 1
    names = next(
        (record for record in _lenient(raw[: 1 << 20].decode(errors="ignore"), dialect.separator) if record), []
    )
    for place, name in enumerate(names, start=1):
        if not name.strip():
            hint = "pandas writes its index so: write the file with index=False, or name the column in line"
            last = "it ends in a separator: take that away, or name the column in line"
            raise LabError(
                f"{where}, line {first}, column {place}: a column without a name; "
                f"{last if place == len(names) > 1 else hint} {first}"
            )
        if name in names[: place - 1]:
            raise LabError(
                f'{where}, line {first}, column {place}: expected columns of different names, found "{name}" twice; '
                "rename one, or skip lines before the names with --skip-rows"
            )
    return names


def _read(raw: bytes, dialect: Dialect, where: str) -> Any:
    """Return the cells as a table of strings."""
    for block in (1 << 22, min(len(raw) + 1, (1 << 31) - 1)):
        try:
            names = _names(raw, dialect, where)
            table = arrow_csv.read_csv(pa.BufferReader(raw), *options_of_arrow(dialect, names, block))
            if table.column_names != names:
                raise LabError(f"{where}, line {dialect.skip_rows + 1}: two readers of CSV find other names of columns")
            return table
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                _refuse(raw, dialect, where, str(error))
    raise LabError(f"{where}: a line longer than 2 GB, which no reader takes; is a quote open?")


def options_of_arrow(dialect: Dialect, names: list[str], block: int) -> tuple[Any, Any, Any]:
    """Return pyarrow's options for reading all cells as strings."""
    return (
        arrow_csv.ReadOptions(block_size=block),
        arrow_csv.ParseOptions(
            delimiter=dialect.separator,
            newlines_in_values=True,
            ignore_empty_lines=not dialect.blank_is_null,
            escape_char=dialect.escape or False,
            double_quote=not dialect.escape,
        ),
        arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _refuse(raw: bytes, dialect: Dialect, where: str, said: str) -> None:
    """Raise LabError with the first line that does not go with the first one, or is not quoted as it must be."""
    reader = dialect.reader(io.StringIO(raw.decode(), newline=""))
    widths: list[int] = []
    try:
        for record in reader:
            widths.append(len(record))
            if len(record) != dialect.width and (record or dialect.blank_is_null):
                _refuse_width(reader.line_num + dialect.skip_rows, record, reader, dialect, where)
    except csv.Error as error:
        raise LabError(
            f"{where}, line {reader.line_num + dialect.skip_rows}, column 1 or later: {error}: a quote in quotes must "
            "be doubled, and the last one closed"
        ) from None
    raise LabError(f"{where}: {said.partition(chr(10))[0]}")


def _refuse_width(line: int, record: list[str], reader: Any, dialect: Dialect, where: str) -> None:
    after = Counter(len(other) for other in islice(reader, _LINES) if other)
    fields = f"{len(record)} field{'' if len(record) == 1 else 's'}"
    column = min(len(record), dialect.width) + 1
    first = dialect.skip_rows + 1
    said = f"{where}, line {line}, column {column}: {fields}, where line {first} has {dialect.width}"
    if line <= first + 50 and after[len(record)] > after[dialect.width]:
        raise LabError(f"{said}; if the table begins there, give --skip-rows {line - 1}")
    more = f'quote fields with "{dialect.separator}" in them' if len(record) > dialect.width else "fill the line up"
    raise LabError(f"{said}; {more}, take the line out, or give another --separator")


def _oddly_quoted(raw: bytes, dialect: Dialect) -> bool:
    """Say whether a quote is neither at the edge of a field nor doubled in one."""
    if b'"' not in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    places = np.flatnonzero(data == _QUOTE)
    edges = np.array([ord(dialect.separator), _LINE_FEED, ord("\r"), _QUOTE], np.uint8)
    opening, closing = places[::2], places[1::2]
    before, after = data[opening[opening > 0] - 1], data[closing[closing < len(data) - 1] + 1]
    if len(places) % 2 or not np.isin(before, edges).all() or not np.isin(after, edges).all():
        return True
    doubled = opening[(opening > 0) & (data[opening - 1] == _QUOTE)]  # a quote that reopens a field closed just before
    return not np.isin(doubled - 1, closing, assume_unique=True).all()


def _escaped(raw: bytes, dialect: Dialect, where: str) -> Dialect:
    """Return a dialect that reads quotes which are not at the edges of fields. Raises LabError for none."""
    text = raw.decode()
    for escape in ("", "\\"):
        tried = replace(dialect, escape=escape)
        try:
            widths = {len(record) for record in tried.reader(io.StringIO(text, newline=""))}
        except csv.Error:
            continue
        if widths <= {dialect.width, 0}:
            return tried
    _refuse(raw, dialect, where, "a field with a quote in it that is not doubled")
    return dialect


def _require_same(table: Any, raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError where Python's reader finds other cells than pyarrow's in any row."""
    reader = dialect.reader(io.StringIO(raw.decode(), newline=""))
    records = [record or [""] for record in reader if record or dialect.blank_is_null][1:]
    columns = [column.to_pylist() for column in table.columns]
    found = [[cell or "" for cell in row] for row in zip(*columns, strict=True)]
    if found != records:
        row = next(
            (row for row, pair in enumerate(zip(found, records, strict=False)) if pair[0] != pair[1]), len(found)
        )
        raise LabError(f"{where}, row {row}: two readers of CSV read it differently; double the quotes in fields")


def _require_all_bytes(table: Any, raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError where cells, separators, ends of lines and quotes are not all the bytes that a file has."""
    quotes = raw.count(b'"')
    names = [name.encode() for name in table.column_names]
    inside = sum(map(len, names)) + sum(_sum(pc.binary_length(column)) for column in table.columns)
    lines = raw.count(b"\n") + raw.count(b"\r")
    if quotes:
        lines -= sum(_count(names, table, mark) for mark in (b"\n", b"\r"))
        quotes -= _count(names, table, b'"')
    separators = (table.num_rows + 1) * (table.num_columns - 1)
    if inside + separators + lines + quotes != len(raw):
        _refuse(raw, dialect, where, "not all of its bytes are in the cells that were read; it is no regular CSV")


def _sum(numbers: Any) -> int:
    return int(pc.sum(numbers).as_py() or 0)


def _count(names: list[bytes], table: Any, mark: bytes) -> int:
    return sum(name.count(mark) for name in names) + sum(
        _sum(pc.count_substring(column, mark.decode())) for column in table.columns
    )


def _notes(table: Any, raw: bytes, dialect: Dialect, where: str) -> Iterator[str]:
    first = dialect.skip_rows + 1
    if dialect.escape:
        yield f"{where}: quotes in fields are escaped by \\, and read so"
    name = table.column_names[0]
    if table.num_columns == 1:
        cell = str(table[0][0].as_py() or "")
        if found := next((mark for mark in SEPARATORS if mark in name or mark in cell), ""):
            said = "\\t" if found == "\t" else found
            yield f'{where}: one column, with "{said}" in it; if that separates columns, give --separator "{said}"'
    if all(_looks_like_value(name) for name in table.column_names):
        yield f"{where}, line {first}: taken for the names of columns, but it looks like a row; put names before it"
    nulls = table[0].is_null()
    for column in table.columns[1:]:
        if not pc.any(nulls).as_py():
            break
        nulls = pc.and_(nulls, column.is_null())
    rows = _sum(nulls)
    if rows:
        said = f"row {pc.index(nulls, True).as_py()}"
        yield f"{where}: {rows:,} row{'s' if rows > 1 else ''} of nothing but nulls, the first is {said}"


def _looks_like_value(name: str) -> bool:
    return name.strip().lstrip("-").replace(".", "", 1).replace("-", "").isdigit()
