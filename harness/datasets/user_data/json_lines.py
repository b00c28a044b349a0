"""A file of JSON lines as a frame: polars reads it, and Python's json checks the values."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import polars as pl

from harness.check.logical_types import Dtype
from harness.datasets.user_data import nested
from harness.datasets.user_data.arrow_frames import OF_POLARS, quietly
from harness.datasets.user_data.compared_cells import ROWS, WHOLE
from harness.model import Facts, LabError, Scalar

_STRIDE = 6  # floats are written in up to 23 digits and points
_WINDOWS = 4
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
        raise LabError(f"{where}: not valid JSON lines: {str(error).partition(chr(10))[0]}") from None
    return frame, compare(frame, raw, where)


def compare(frame: pl.DataFrame, raw: bytes, where: str) -> str:
    """Return how much of a frame was compared with its lines. Raises LabError with line and column."""
    starts = _starts(raw)
    if len(starts) != frame.height:
        raise LabError(f"{where}: {len(starts):,} lines with values and {frame.height:,} rows; write one object a line")
    size = min(ROWS, WHOLE // frame.width)
    whole = frame.height <= size or not _as_counted(frame, raw)
    rows = np.arange(frame.height)
    if not whole:
        sample = np.linspace(0, frame.height - 1, size // 4, dtype=int)
        rows = np.union1d(sample, np.array(_unsure(frame, raw, starts), dtype=int))
    ends = [*starts[1:].tolist(), len(raw)]
    picked = frame if whole else frame[rows]
    made = [
        dict(zip(frame.columns, values, strict=True)) for values in zip(*map(pl.Series.to_list, picked), strict=True)
    ]
    lines = [raw[starts[row] : ends[row]] for row in rows.tolist()]
    comma, colon = (b", ", b": ") if b'": ' in lines[0] else (b",", b":")
    with suppress(TypeError):  # to write all of them is far cheaper than to parse each line
        marks = comma.decode(), colon.decode()
        text = json.dumps(made, ensure_ascii=any(b"\\u" in line for line in lines), separators=marks).encode()
        if text == b"[" + comma.join(map(bytes.rstrip, lines)) + b"]":
            made = []
    for row, one, line in zip(rows.tolist(), made, lines, strict=bool(made)):
        _require_same(one, line, row, where)
    if len(rows) == frame.height:
        return "every value"
    return f"{len(rows):,} of {frame.height:,} rows, the number of all names, strings and nulls, and all long numbers"


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


def _unsure(frame: pl.DataFrame, raw: bytes, starts: npt.NDArray[np.int64]) -> list[int]:
    """Return the rows with a number that a float may not hold: longer than a float is written, or of other digits.

    The first are found wherever they are, the others in an eighth of the lines, which polars writes again.
    """
    if not any(part.is_float() for column in frame for part in _types(column.dtype)):
        return []
    data, ends = np.frombuffer(raw, np.uint8), np.append(starts, len(raw))
    every = _in_numbers(data[::_STRIDE])  # of a longer run, four such places follow each other
    places = np.flatnonzero(every[:-3] & every[1:-2] & every[2:-1] & every[3:]) * _STRIDE
    for between in (3, 9, 15, *range(1, 3 * _STRIDE)):
        places = places[_in_numbers(data[places + between])]
    near = places[:, None] + np.arange(1 - _STRIDE, 4 * _STRIDE)
    long = _in_numbers(data[near.clip(0, len(data) - 1)])
    for shift in (1, 2, 4, 8, 8):  # runs of 24
        long = long[:, :-shift] & long[:, shift:]
    places = places[long.any(axis=1)]
    found = (np.searchsorted(starts, places, "right") - 1).tolist()
    size = max(frame.height // 8 // _WINDOWS, 1)
    for first in np.linspace(0, frame.height - size, _WINDOWS, dtype=int).tolist():
        lines, again = raw[starts[first] : ends[first + size]], frame.slice(first, size).write_ndjson().encode()
        if lines.rstrip() != again.rstrip() and _LONG.search(lines):
            of_lines = [np.add.reduceat(_is_digit(text), _starts(text), dtype=int) for text in (lines, again)]
            found += (first + np.flatnonzero(of_lines[0] != of_lines[1])).tolist()
    return found


def _in_numbers(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return data - ord(".") <= ord("9") - ord(".")


def _is_digit(text: bytes) -> npt.NDArray[np.bool_]:
    return np.frombuffer(text, np.uint8) - ord("0") <= 9


def _types(of: Dtype) -> Iterator[Dtype]:
    """Yield a type of polars and those in it, at any depth."""
    yield of
    inside = [field.dtype for field in of.fields] if isinstance(of, pl.Struct) else [getattr(of, "inner", None)]
    for part in inside:
        if part is not None:
            yield from _types(part)


def _starts(raw: bytes) -> npt.NDArray[np.int64]:
    """Return where the non-blank lines start."""
    data = np.frombuffer(raw, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(data == ord("\n")) + 1])
    ends = np.append(starts[1:], len(raw))
    filled = starts < len(raw)
    for line in np.flatnonzero(filled & (data[np.minimum(starts, len(raw) - 1)] != ord("{"))).tolist():
        filled[line] = bool(raw[starts[line] : ends[line]].strip())
    return starts[filled]


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
