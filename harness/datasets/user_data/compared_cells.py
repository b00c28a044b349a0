"""Compare a CSV's converted values with its bytes, on a path independent of the reader.

Python's CSV reader parses the file again and converts its cells to Python's numbers, dates and times. For a large file
this covers windows across the file, and each column's smallest, largest and longest values. Rows and nulls of every
column are counted in the whole file.
"""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.compute as pc

from harness.check.logical_types import Dtype
from harness.datasets.user_data.dialect import Cells
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.steps import Call
from harness.model import LabError, Scalar

WHOLE = 8_000  # up to this many cells, all are compared: of more that would cost a fifth of the time of reading them
_SAMPLE = 4_000  # cells compared beyond that
_WINDOWS = 8
_1970 = dt.datetime(1970, 1, 1)
_EPOCH = _1970.toordinal()
_DAY = 86_400 * 1_000_000_000
_ISO = re.compile(
    r"(?:(\d{4})[-/](\d\d)[-/](\d\d))?[T ]?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
_TRUE, _FALSE = {"true", "t", "1", "yes"}, {"false", "f", "0", "no"}
_Made = Callable[[str, Scalar], bool]


def require_same(cells: Cells, frame: pl.DataFrame, steps: Mapping[str, Sequence[Call]], options: Options) -> str:
    """Return how much of a frame was compared with its file. Raises LabError with line and column."""
    holds = {name: _rule(frame[name].dtype, steps.get(name, ()), name in options.schema) for name in frame.columns}
    starts = _starts(cells)
    rows = frame.height
    if starts is None or rows * frame.width <= WHOLE:
        records = cells.dialect.reader(io.StringIO(cells.raw.decode(), newline=""))
        _require_rows(cells, frame, holds, 0, _rows(records, cells)[1:], options)
        return "every value"
    if len(starts) != rows + 1:
        raise LabError(
            f"{cells.where}: {len(starts) - 1:,} lines with values and {rows:,} rows; it is not a regular CSV"
        )
    size = max(_SAMPLE // frame.width // _WINDOWS, 1)
    for first in np.linspace(0, rows - size, _WINDOWS, dtype=int).tolist():
        last = first + size + 1
        piece = cells.raw[starts[first + 1] : starts[last] if last < len(starts) else len(cells.raw)]
        records = cells.dialect.reader(io.StringIO(piece.decode(), newline=""))
        _require_rows(cells, frame, holds, first, _rows(records, cells), options)
    _require_ends(cells, frame, holds, options)
    compared = f"{size * _WINDOWS:,} of {rows:,} rows"
    return f"{compared}, and of every column the nulls, the smallest, the largest and the longest"


def _starts(cells: Cells) -> npt.NDArray[np.int64] | None:
    """Return where the non-blank lines start; None if quotes or line ends are unusual."""
    raw, dialect = cells.raw, cells.dialect
    if dialect.escape or raw.count(b"\r") != raw.count(b"\r\n"):
        return None
    data = np.frombuffer(raw, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if b'"' in raw:
        ends = ends[np.searchsorted(np.flatnonzero(data == ord('"')), ends) % 2 == 0]
    starts = np.concatenate([[0], ends + 1])
    starts = starts[starts < len(raw)]
    if dialect.blank_is_null:
        return starts
    first = data[starts]
    blank = (first == ord("\n")) | (first == ord("\r"))
    return starts[~blank]


def _rows(records: Iterator[list[str]], cells: Cells) -> list[list[str]]:
    return [record or [""] for record in records if record or cells.dialect.blank_is_null]


def _require_rows(
    cells: Cells, frame: pl.DataFrame, holds: dict[str, _Made], first: int, records: list[list[str]], options: Options
) -> None:
    """Raise LabError if rows of a frame from `first` on differ from the records."""
    piece = frame.slice(first, len(records))
    if piece.height != len(records) or (first == 0 and len(records) > frame.height):
        raise LabError(f"{cells.where}: {len(records):,} lines with values and {piece.height:,} rows")
    for place, name in enumerate(piece.columns):
        written = [record[place] for record in records]
        for row, (cell, value) in enumerate(zip(written, _values(piece[name]), strict=True)):
            if not _same(cell, value, holds[name], options):
                _refuse(cells, name, first + row, cell, frame)


def _require_ends(cells: Cells, frame: pl.DataFrame, holds: dict[str, _Made], options: Options) -> None:
    """Raise LabError if a column's nulls are not the empty cells, or its extremes are not the written ones."""
    for place, name in enumerate(frame.columns):
        column, written = frame[name], cells.table[place]
        lengths = pl.Series(pl.from_arrow(pc.binary_length(written)))
        empty = lengths.null_count() + (0 if column.dtype == pl.String else int((lengths == 0).sum()))
        if not options.null_values and column.null_count() != empty:
            raise LabError(f'{cells.where}, column "{name}": {empty:,} empty cells and {column.null_count():,} nulls')
        ends = {lengths.arg_max()}
        if column.dtype != pl.String:
            ordered = column.to_physical()
            ends |= {ordered.arg_min(), ordered.arg_max()}
        for row in ends - {None}:
            cell = written[row].as_py() or ""
            if not _same(cell, _values(column.slice(row, 1))[0], holds[name], options):  # type: ignore[arg-type]
                _refuse(cells, name, int(row), cell, frame)  # type: ignore[arg-type]


def _refuse(cells: Cells, name: str, row: int, cell: str, frame: pl.DataFrame) -> None:
    made = frame[name].cast(pl.String)[row]
    raise LabError(
        f'{cells.where}, line {cells.line(row)}, column "{name}": {cell[:40]!r} would become {made}; '
        f'--schema "{name}=string" keeps it as it is written'
    )


def _values(column: pl.Series) -> list[Scalar]:
    """Return values as Python objects, times as numbers, because Python has no nanoseconds."""
    return (column.to_physical() if column.dtype.is_temporal() else column).to_list()


def _same(cell: str, value: Scalar, holds: _Made, options: Options) -> bool:
    null = cell == "" or cell in options.null_values
    if value is None or null:
        return null and (value is None or value == cell == "")
    if options.decimal == "," and isinstance(value, int | float | Decimal):
        cell = cell.replace(",", ".")
    try:
        return holds(cell, value)
    except (ValueError, ArithmeticError):
        return False


def _rule(dtype: pl.DataType, steps: Sequence[Call], asked: bool) -> _Made:
    """Return a function that decides whether a value of a type matches a cell."""
    if dtype == pl.String:
        return lambda cell, value: cell == value
    if dtype.is_integer():
        return lambda cell, value: int(cell) == value
    if dtype.is_float():
        return (lambda cell, value: _number(float(cell), value)) if asked else _float
    if dtype.is_decimal():
        return lambda cell, value: Decimal(cell.strip()) == value
    if dtype == pl.Boolean:
        return lambda cell, value: cell.lower() in (_TRUE if value else _FALSE)
    return _temporal(dtype, next((str(one.arguments[0]) for one in steps if one.method.startswith("str.to_")), ""))


def _number(number: float, value: float) -> bool:
    return number == value or (number != number and value != value)


def _float(cell: str, value: float) -> bool:
    if cell == repr(value):
        return True
    cell = cell.strip()
    return _number(float(cell), value) if cell[-1:] in "nNf" else Decimal(cell) == Decimal(repr(value))


def _temporal(dtype: Dtype, written: str) -> _Made:
    unit = {pl.Date: _DAY, pl.Time: 1}.get(dtype.base_type()) or _UNITS[dtype.time_unit]
    return lambda cell, value: value * unit == (_iso(cell) if _of_iso(written) else _as_written(cell, written))


def _of_iso(written: str) -> bool:
    return written.startswith(("%Y-%m-%d", "%Y/%m/%d")) or written == "%H:%M:%S%.f"


def _iso(cell: str) -> int:
    """Return the nanoseconds since 1970, or since midnight, of an ISO 8601 cell."""
    if cell[4:5] == "-" and len(cell) <= 26:  # of a longer one Python may cut off nanoseconds
        with suppress(ValueError, OverflowError):
            return _since(dt.datetime.fromisoformat(cell))
    if not (found := _ISO.fullmatch(cell)):
        raise ValueError(cell)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = dt.date(int(year), int(month), int(day)).toordinal() - _EPOCH if year else 0
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    if zone and zone != "Z":
        offset = zone[1:].replace(":", "").ljust(4, "0")
        seconds -= (int(offset[:2]) * 3600 + int(offset[2:]) * 60) * (-1 if zone[0] == "-" else 1)
    return days * _DAY + seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _as_written(cell: str, written: str) -> int:
    """Return the nanoseconds since 1970 of a cell in the format that the user gave, or the column showed."""
    written = written.replace("%.f", ".%f" if "." in cell.rpartition(":")[2] else "").replace("%#z", "%z")
    with suppress(ValueError):
        return _since(dt.datetime.strptime(cell, written))
    raise ValueError(cell)


def _since(made: dt.datetime) -> int:
    """Return the nanoseconds from 1970 to a timestamp, in UTC if it has a zone."""
    since = (made.astimezone(dt.UTC).replace(tzinfo=None) if made.tzinfo else made) - _1970
    return (since.days * 86_400 + since.seconds) * 1_000_000_000 + since.microseconds * 1_000
