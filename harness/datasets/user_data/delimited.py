"""A CSV file as columns of strings, exactly as written: pyarrow reads it, and every byte is accounted for.

The encoding is the byte order mark's, otherwise UTF-8. The separator is the one that gives every line as many fields as
the first. An empty cell is a null, a quoted empty cell an empty string. Blank lines are not rows. In a file of one
column, however, those before the end are nulls.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from harness.datasets.user_data.dialect import SEPARATORS, Cells, Dialect, refuse
from harness.datasets.user_data.first_look import opened, refuse_no_rows
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.places import Part
from harness.model import LabError

_QUOTE, _LINE_FEED = ord('"'), ord("\n")


def cells(part: Part, options: Options) -> Cells:
    """Return the cells of a CSV. Raises LabError with the line, the column and the fix."""
    where = part.where
    raw, dialect, names = opened(part.content(), part, options)
    if _oddly_quoted(raw, dialect) or raw.count(b"\r") != raw.count(b"\r\n"):
        dialect = _escaped(raw, dialect, where)
        table = _read(raw, dialect, names, where)
        _require_same(table, raw, dialect, where)
    else:
        table = _read(raw, dialect, names, where)
        _require_all_bytes(table, raw, dialect, where)
    if not table.num_rows:
        refuse_no_rows(dialect, where)
    return Cells(table, raw, dialect, where, tuple(_notes(table, raw, dialect, where)))


def _read(raw: bytes, dialect: Dialect, names: list[str], where: str) -> pa.Table:
    """Return the cells as a table of strings."""
    for block in (1 << 22, min(len(raw) + 1, (1 << 31) - 1)):
        try:
            table = arrow_csv.read_csv(pa.BufferReader(raw), *options_of_arrow(dialect, names, block))
            if table.column_names != names:
                raise LabError(f"{where}, line {dialect.skip_rows + 1}: two CSV readers find different column names")
            return table
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                refuse(raw, dialect, where, str(error))
    raise LabError(f"{where}: a line longer than 2 GB, which no reader takes; is a quote open?")


def options_of_arrow(
    dialect: Dialect, names: list[str], block: int
) -> tuple[arrow_csv.ReadOptions, arrow_csv.ParseOptions, arrow_csv.ConvertOptions]:
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


def _notes(table: pa.Table, raw: bytes, dialect: Dialect, where: str) -> Iterator[str]:
    first = dialect.skip_rows + 1
    if dialect.escape:
        yield f"{where}: quotes in fields are escaped by \\, and read so"
    which = "one column," if table.num_columns == 1 else "names of columns"
    inside = raw if table.num_columns == 1 else "".join(table.column_names).encode()
    others = [mark for mark in SEPARATORS if mark != dialect.separator or table.num_columns == 1]
    if found := next((mark for mark in others if mark.encode() in inside), ""):
        said = "\\t" if found == "\t" else found
        yield f'{where}: {which} with "{said}" in it; if that separates columns, give --separator "{said}"'
    if dialect.encoding == "iso8859-1" and (controls := re.search(b"\xc2[\x80-\x9f]", raw)):
        line = raw.count(b"\n", 0, controls.start()) + first
        yield f"{where}, line {line}: a control character of latin-1; if it is a quotation mark, give --encoding cp1252"
    if all(_looks_like_value(name) for name in table.column_names):
        yield f"{where}, line {first}: taken for the names of columns, but it looks like a row; put names before it"
    nulls = table[0].is_null()
    for column in table.columns[1:]:
        if not pc.any(nulls).as_py():
            break
        nulls = pc.and_(nulls, column.is_null())
    if not dialect.blank_is_null and (blank := _blank_lines(table, raw)):
        yield f"{where}: {blank:,} blank line{'s are not rows' if blank > 1 else ' is not a row'}"
    rows = _total(nulls)
    if rows:
        said = f"row {pc.index(nulls, True).as_py()}"
        yield f"{where}: {rows:,} row{'s' if rows > 1 else ''} of nothing but nulls, the first is {said}"


def _blank_lines(table: pa.Table, raw: bytes) -> int:
    lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
    if b'"' in raw:
        lines -= _count([name.encode() for name in table.column_names], table, b"\n")
    return max(lines - table.num_rows - 1, 0)


def _looks_like_value(name: str) -> bool:
    return name.strip().lstrip("-").replace(".", "", 1).replace("-", "").isdigit()


def _oddly_quoted(raw: bytes, dialect: Dialect) -> bool:
    """Return whether a quote is neither at the edge of a field nor doubled in one."""
    if b'"' not in raw:
        return False
    data = np.frombuffer(raw, np.uint8)
    places = np.flatnonzero(data == _QUOTE)
    edges = np.array([ord(dialect.separator), _LINE_FEED, ord("\r"), _QUOTE], np.uint8)
    opening, closing = places[::2], places[1::2]
    before, after = data[opening[opening > 0] - 1], data[closing[closing < len(data) - 1] + 1]
    if len(places) % 2 or not np.isin(before, edges).all() or not np.isin(after, edges).all():
        return True
    doubled = opening[(opening > 0) & (data[opening - 1] == _QUOTE)]  # a quote that reopens a field just closed
    return not np.isin(doubled - 1, closing, assume_unique=True).all()


def _escaped(raw: bytes, dialect: Dialect, where: str) -> Dialect:
    """Return a dialect that handles quotes that are not at the edges of fields. Raises LabError if none does."""
    by_backslash = b'\\"' in raw and not re.search(rb'\\[^"\\]', raw)
    if by_backslash and not _oddly_quoted(re.sub(rb"\\.", b"xx", raw), dialect):
        return replace(dialect, escape="\\")
    try:
        widths = {len(record) for record in dialect.reader(io.StringIO(raw.decode(), newline=""))}
    except csv.Error:
        widths = set()
    if not widths or not widths <= {dialect.width, 0}:
        refuse(raw, dialect, where, "a field with a quote in it that is not doubled")
    return dialect


def _require_same(table: pa.Table, raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError if Python's reader finds other cells than pyarrow's in any row."""
    reader, records = dialect.reader(io.StringIO(raw.decode(), newline="")), []
    try:
        records = [record or [""] for record in reader if record or dialect.blank_is_null][1:]
    except csv.Error as error:
        refuse(raw, dialect, where, str(error))
    columns = [column.to_pylist() for column in table.columns]
    found = [[cell or "" for cell in row] for row in zip(*columns, strict=True)]
    if found != records:
        row = next(
            (row for row, pair in enumerate(zip(found, records, strict=False)) if pair[0] != pair[1]), len(found)
        )
        raise LabError(f"{where}, row {row}: two readers of CSV read it differently; double the quotes in fields")


def _require_all_bytes(table: pa.Table, raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError if cells, separators, line ends and quotes do not add up to all bytes of a file."""
    quotes = raw.count(b'"')
    names = [name.encode() for name in table.column_names]
    inside = sum(map(len, names)) + sum(_total(pc.binary_length(column)) for column in table.columns)
    lines = raw.count(b"\n") + raw.count(b"\r")
    if quotes:
        lines -= sum(_count(names, table, mark) for mark in (b"\n", b"\r"))
        quotes -= _count(names, table, b'"')
    separators = (table.num_rows + 1) * (table.num_columns - 1)
    if inside + separators + lines + quotes != len(raw):
        refuse(raw, dialect, where, "not all of its bytes are in the cells that were read; it is not a regular CSV")


def _total(numbers: pa.Array) -> int:
    """Return the sum of an Arrow column."""
    return int(pc.sum(numbers).as_py() or 0)


def _count(names: list[bytes], table: pa.Table, mark: bytes) -> int:
    """Return how often a character is in the names and the cells of a table of strings."""
    return sum(name.count(mark) for name in names) + sum(
        _total(pc.count_substring(column, mark.decode())) for column in table.columns
    )
