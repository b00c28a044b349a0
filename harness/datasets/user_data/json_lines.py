"""A file of JSON lines as a frame: polars reads it, and Python's json checks the values."""

from __future__ import annotations

import io
import json
import re
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import polars as pl

from harness.datasets.user_data import nested
from harness.datasets.user_data.arrow_frames import OF_POLARS, quietly
from harness.datasets.user_data.first_look import require_objects, require_utf8
from harness.model import Facts, LabError, Scalar, first_line

_ROWS, _VALUES = 125, 2_000  # Python compares so many at most: more would take a fifth of the time of reading
_PIECE = 100_000  # rows that polars writes again at once, so that a large file is not in memory twice
_UNSURE = re.compile(rb"[0-9][0-9.]{15}|[0-9][eE][+-]?[0-9]|\\u[dD][89a-fA-F]")  # half a character, too


def read(raw: bytes, where: str) -> tuple[pl.DataFrame, str]:
    """Return the frame of JSON lines, and how much of it was compared. Raises LabError with line and column."""
    require_utf8(raw, where)
    try:
        with quietly():
            frame = pl.read_ndjson(io.BytesIO(raw), infer_schema_length=None)
    except OF_POLARS as error:
        require_objects(raw, where)
        raise LabError(f"{where}: not valid JSON lines: {first_line(error)}") from None
    return frame, compare(frame, raw, where)


def compare(frame: pl.DataFrame, raw: bytes, where: str) -> str:
    """Return how much of a frame was compared with its lines. Raises LabError with line and column.

    In a large file, Python compares a sample and each line that polars writes otherwise. Where those are too many, it
    compares only those of them that have a long number or an exponent, if names, strings and nulls are all there.
    """
    starts = _starts(raw)
    if len(starts) != frame.height:
        raise LabError(f"{where}: {len(starts):,} lines with values and {frame.height:,} rows; write one object a line")
    size, ends = max(min(_ROWS, _VALUES // max(frame.width, 1)), 1), np.append(starts[1:], len(raw))
    rows, others = np.arange(frame.height), ""
    if frame.height > size:
        unequal, others = _differing(frame, raw, starts), ", and the others as polars writes them again"
        if len(unequal) > _ROWS and _as_counted(frame, raw):
            unequal = [row for row in unequal if _UNSURE.search(raw[starts[row] : ends[row]])]
            others = ", the number of all names, strings and nulls, and all long numbers and exponents"
        rows = np.union1d(np.linspace(0, frame.height - 1, size, dtype=int), np.array(unequal, dtype=int))
    lines = [raw[start:end].rstrip() for start, end in zip(starts[rows].tolist(), ends[rows].tolist(), strict=True)]
    is_escaped, is_spaced = any(b"\\u" in line for line in lines), b'": ' in lines[0]
    encoder = json.JSONEncoder(ensure_ascii=is_escaped, separators=(", ", ": ") if is_spaced else (",", ":"))
    for row, line, made in zip(rows.tolist(), lines, frame[rows].rows(named=True), strict=True):
        if encoder.encode(made).encode() != line:  # which takes a fraction of the time
            _require_same(made, line, row, where)
    return "every value" if len(rows) == frame.height else f"{len(rows):,} of {frame.height:,} rows{others}"


def _differing(frame: pl.DataFrame, raw: bytes, starts: npt.NDArray[np.int64]) -> list[int]:
    """Return the rows whose lines polars writes otherwise, apart from white space."""
    found: list[int] = []
    raw = raw if raw.endswith(b"\n") else raw + b"\n"
    for first in range(0, frame.height, _PIECE):
        written = io.BytesIO()
        frame.slice(first, _PIECE).write_ndjson(written)
        if not raw.startswith(again := written.getvalue(), starts[first]):
            end = starts[first + _PIECE] if first + _PIECE < frame.height else len(raw)
            lines = zip(_lines(raw[starts[first] : end]), _lines(again), strict=True)
            found += [row for row, (one, other) in enumerate(lines, start=first) if one != other]
    return found


def _lines(text: bytes) -> list[bytes]:
    return [line for line in text.translate(None, b" \t\r").split(b"\n") if line]


def _as_counted(frame: pl.DataFrame, raw: bytes) -> bool:
    """Return whether a file has as many names and strings as its frame: no value of another type became a string.

    Where strings have escaped quotes after a backslash, or names other white space, the answer may be no all the same.
    """
    data, is_escaped = np.frombuffer(raw, np.uint8), b"\\" in raw
    marks = data == ord('"')
    names = np.count_nonzero(marks[:-1] & (data[1:] == ord(":"))) - (raw.count(b'\\":') if is_escaped else 0)
    nulls = sum(column.null_count() for column in frame)
    written = names + nulls - (raw.count(b"null") if nulls else 0)  # a null may be a name that is missing
    nested_columns = [column for column in frame if column.dtype.is_nested()]
    strings = sum(len(column) - column.null_count() for column in frame if column.dtype == pl.String)
    strings += sum(
        level.height for one in nested_columns for level in nested.leaves(one) if level["value"].dtype == pl.String
    )
    quotes = np.count_nonzero(marks) - (raw.count(b'\\"') if is_escaped else 0)
    return bool(quotes == 2 * (names + strings)) and bool(nested_columns or written == frame.height * frame.width)


def _starts(raw: bytes) -> npt.NDArray[np.int64]:
    """Return where the non-blank lines start."""
    data = np.frombuffer(raw, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
    ends = np.append(starts[1:], len(raw))
    filled = starts < len(raw)
    for line in np.flatnonzero(filled & (data[np.minimum(starts, len(raw) - 1)] != ord("{"))).tolist():
        filled[line] = bool(raw[starts[line] : ends[line]].strip())
    return starts[filled]


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
    told = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return told.encode(errors="backslashreplace").decode()[:40]


def _once(pairs: list[tuple[str, Scalar]]) -> Facts:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise LabError(f"a JSON object has a name twice: {', '.join(name for name, _ in pairs)}; rename one")
    return found


def _same(written: Scalar, made: Scalar) -> bool:
    if isinstance(written, dict):
        return isinstance(made, dict) and all(_same(written.get(name), made.get(name)) for name in {*written, *made})
    if isinstance(written, list):
        return isinstance(made, list) and len(written) == len(made) and all(map(_same, written, made))
    if isinstance(made, float) and isinstance(written, int | Decimal) and not isinstance(written, bool):
        return Decimal(written) == Decimal(repr(made))
    return bool(written == made) and isinstance(written, bool) == isinstance(made, bool)
