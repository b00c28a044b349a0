"""Check that every byte of a CSV is in a cell, a separator, a line end or a quote; otherwise refuse the file."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from harness.datasets.user_data.dialect import Dialect, refuse
from harness.model import LabError

if TYPE_CHECKING:
    import pyarrow as pa


_QUOTE, _LINE_FEED = ord('"'), ord("\n")


def oddly_quoted(raw: bytes, dialect: Dialect) -> bool:
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


def escaped(raw: bytes, dialect: Dialect, where: str) -> Dialect:
    """Return a dialect that handles quotes that are not at the edges of fields. Raises LabError if none does."""
    by_backslash = b'\\"' in raw and not re.search(rb'\\[^"\\]', raw)
    if by_backslash and not oddly_quoted(re.sub(rb"\\.", b"xx", raw), dialect):
        return replace(dialect, escape="\\")
    try:
        widths = {len(record) for record in dialect.reader(io.StringIO(raw.decode(), newline=""))}
    except csv.Error:
        widths = set()
    if not widths or not widths <= {dialect.width, 0}:
        refuse(raw, dialect, where, "a field with a quote in it that is not doubled")
    return dialect


def require_same(table: pa.Table, raw: bytes, dialect: Dialect, where: str) -> None:
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


def require_all_bytes(table: pa.Table, raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError if cells, separators, line ends and quotes do not add up to all bytes of a file."""
    quotes = raw.count(b'"')
    names = [name.encode() for name in table.column_names]
    inside = sum(map(len, names)) + sum(total(pc.binary_length(column)) for column in table.columns)
    lines = raw.count(b"\n") + raw.count(b"\r")
    if quotes:
        lines -= sum(count(names, table, mark) for mark in (b"\n", b"\r"))
        quotes -= count(names, table, b'"')
    separators = (table.num_rows + 1) * (table.num_columns - 1)
    if inside + separators + lines + quotes != len(raw):
        refuse(raw, dialect, where, "not all of its bytes are in the cells that were read; it is not a regular CSV")


def total(numbers: pa.Array) -> int:
    """Return the sum of an Arrow column."""
    return int(pc.sum(numbers).as_py() or 0)


def count(names: list[bytes], table: pa.Table, mark: bytes) -> int:
    """Return how often a character is in the names and the cells of a table of strings."""
    return sum(name.count(mark) for name in names) + sum(
        total(pc.count_substring(column, mark.decode())) for column in table.columns
    )
