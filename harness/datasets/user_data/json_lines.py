"""A file of JSON lines as a frame: polars reads it, and Python's json checks the values."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal

import numpy as np
import polars as pl

from harness.datasets.user_data import nested
from harness.datasets.user_data.arrow_frames import OF_POLARS, quietly
from harness.model import Facts, LabError, Scalar, first_line

_WHOLE = 100_000  # up to this many values, all are compared
_LONG = re.compile(rb"[0-9][0-9.]{15}|[0-9][eE][+-]?[0-9]")  # numbers that a float may not represent


def read(raw: bytes, where: str) -> tuple[pl.DataFrame, str]:
    """Return the frame of JSON lines, and how much of it was compared. Raises LabError with line and column."""
    try:
        raw.decode()
        with quietly():
            frame = pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise LabError(f"{where}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8") from None
    except OF_POLARS as error:
        _require_json(raw, where)
        raise LabError(f"{where}: not valid JSON lines: {first_line(error)}") from None
    lines = _lines(raw)
    if len(lines) != frame.height:
        raise LabError(f"{where}: {len(lines):,} lines with values and {frame.height:,} rows; write one object a line")
    whole = frame.height * frame.width <= _WHOLE or _LONG.search(raw) is not None or not _as_counted(frame, raw)
    rows = range(frame.height) if whole else np.linspace(0, frame.height - 1, _WHOLE // frame.width // 4, dtype=int)
    for row in rows:
        _require_same(frame.row(int(row), named=True), raw[slice(*lines[int(row)])], int(row), where)
    return frame, "every value" if whole else f"{len(rows):,} of {frame.height:,} rows"


def _as_counted(frame: pl.DataFrame, raw: bytes) -> bool:
    """Return whether a file has as many names and strings as its frame: no value of another type became a string.

    Where strings have escaped quotes after a backslash, or names other white space, the answer may be no all the same.
    """
    names = raw.count(b'":') - raw.count(b'\\":')
    nulls = sum(column.null_count() for column in frame)
    written = names + nulls - raw.count(b"null")  # a null may be a name that is missing
    nested_columns = [column for column in frame if column.dtype.is_nested()]
    strings = sum(len(column) - column.null_count() for column in frame if column.dtype == pl.String)
    strings += sum(
        level.height for one in nested_columns for level in nested.leaves(one) if level["value"].dtype == pl.String
    )
    quotes = raw.count(b'"') - raw.count(b'\\"')
    return quotes == 2 * (names + strings) and bool(nested_columns or written == frame.height * frame.width)


def _lines(raw: bytes) -> list[tuple[int, int]]:
    """Return where the non-blank lines start and end."""
    ends = [*np.flatnonzero(np.frombuffer(raw, np.uint8) == ord("\n")).tolist(), len(raw)]
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if raw[start:end].strip()]


def _require_json(raw: bytes, where: str) -> None:
    """Raise LabError with the first line that is not a JSON object."""
    for number, line in enumerate(raw.splitlines(), start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError as error:
                raise LabError(f"{where}, line {number}: no JSON ({error}); write one object a line") from None
            if not isinstance(found, dict):
                raise LabError(f"{where}, line {number}: no object of JSON; write one object a line, {{...}}")


def _require_same(made: Facts, line: bytes, row: int, where: str) -> None:
    written = json.loads(line, parse_float=Decimal, object_pairs_hook=_once)
    for name in {*written, *made}:
        if not _same(written.get(name), made.get(name)):
            raise LabError(
                f'{where}, row {row}, column "{name}": {_told(written.get(name))} would become '
                f"{_told(made.get(name))}; write it as a string, in quotes"
            )


def _told(value: Scalar) -> str:
    """Return a value as JSON has it, with quotes around a string."""
    return (json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value))[:40]


def _once(pairs: list[tuple[str, Scalar]]) -> Facts:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise LabError(f"a name is twice in one object of JSON: {', '.join(name for name, _ in pairs)}; rename one")
    return found


def _same(written: Scalar, made: Scalar) -> bool:
    if isinstance(written, dict):
        return isinstance(made, dict) and all(_same(written.get(name), made.get(name)) for name in {*written, *made})
    if isinstance(written, list):
        return isinstance(made, list) and len(written) == len(made) and all(map(_same, written, made))
    if isinstance(made, float) and isinstance(written, int | Decimal) and not isinstance(written, bool):
        return Decimal(written) == Decimal(repr(made))
    return bool(written == made) and isinstance(written, bool) == isinstance(made, bool)
