"""Compare a CSV's converted values with its bytes, on a path independent of the reader.

Python's CSV reader parses the file again and converts its cells to Python's numbers, dates and times. For a large file
this covers windows across the file, and each column's smallest, largest and longest values. Rows and nulls of every
column are counted in the whole file.
"""

from __future__ import annotations

import datetime as dt
import io
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.compute as pc

from harness.check.logical_types import Dtype
from harness.datasets.user_data.cell_numbers import SURE
from harness.datasets.user_data.dialect import Cells
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.steps import Call
from harness.model import LabError, Scalar

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE = 6_000  # up to this many cells, all are compared: of more that would cost a fifth of the time of reading them
ROWS = 300  # and up to this many rows: reading takes a time per column even of a small file
_WINDOWS = 8
_1970 = dt.datetime(1970, 1, 1)
_EPOCH = _1970.toordinal()
_DAY = 86_400 * 1_000_000_000
_ISO = re.compile(
    r"(?:(\d{4})[-/](\d\d)[-/](\d\d))?[T ]?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000}
_TRUTHS = dict.fromkeys(("true", "t", "1", "yes"), True) | dict.fromkeys(("false", "f", "0", "no"), False)
_TWO = r"(\d{1,2})"
_DIGITS = {"%Y": r"(\d{4})"} | dict.fromkeys(("%m", "%d", "%H", "%M", "%S"), _TWO) | {"%.f": r"(?:\.(\d{1,6}))?"}


def require_same(cells: Cells, frame: pl.DataFrame, steps: Mapping[str, Sequence[Call]], options: Options) -> str:
    """Return how much of a frame was compared with its file. Raises LabError with line and column."""
    starts, rows = _starts(cells), frame.height
    whole = starts is None or (rows <= ROWS and rows * frame.width <= WHOLE)
    if starts is None or whole:
        records, places = _records(cells, cells.raw)[1:], np.arange(rows)
        compared = "every value"
    else:
        if len(starts) != rows + 1:
            raise LabError(
                f"{cells.where}: {len(starts) - 1:,} lines with values and {rows:,} rows; it is not a regular CSV"
            )
        size = max(min(ROWS, WHOLE // frame.width) // 3 // _WINDOWS, 1)  # a third of what is compared of a small file
        firsts = np.arange(_WINDOWS) * (rows - size) // (_WINDOWS - 1)
        ends = np.append(starts, len(cells.raw))
        windows = (cells.raw[ends[first + 1] : ends[first + size + 1]] for first in firsts.tolist())
        records, places = _records(cells, b"".join(windows)), (firsts[:, None] + np.arange(size)).ravel()
        said = f"{len(places):,} of {rows:,} rows"
        compared = f"{said}, and of every column the nulls, the smallest, the largest and the longest"
    if len(records) != len(places):
        raise LabError(f"{cells.where}: {len(records):,} lines with values and {len(places):,} rows")
    for place, (column, of_column) in enumerate(zip(frame, zip(*records, strict=True), strict=True)):
        also = [] if whole else _ends(cells, column, cells.table[place], options)
        written = [*of_column, *(cells.table[place][row].as_py() or "" for row in also)]
        picked = column if whole else column[np.append(places, also)]
        rule = _rule(column.dtype, steps.get(column.name, ()), column.name in options.schema)
        if (wrong := _different(written, picked, rule, options)) is not None:
            _refuse(cells, column, [*places.tolist(), *also][wrong], written[wrong])
    return compared


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


def _records(cells: Cells, piece: bytes) -> list[list[str]]:
    records = cells.dialect.reader(io.StringIO(piece.decode(), newline=""))
    return [record or [""] for record in records if record or cells.dialect.blank_is_null]


def _ends(cells: Cells, column: pl.Series, written: pa.ChunkedArray, options: Options) -> list[int]:
    """Return the rows of a column's extremes. Raises LabError if its nulls are not the empty cells."""
    nulls = written.null_count
    lengths = pc.binary_length(written.fill_null("") if nulls else written).to_numpy()
    empty = nulls if column.dtype == pl.String else len(lengths) - np.count_nonzero(lengths)
    if not options.null_values and column.null_count() != empty:
        raise LabError(
            f'{cells.where}, column "{column.name}": {empty:,} empty cells and {column.null_count():,} nulls'
        )
    ends: set[int | None] = {int(lengths.argmax())}
    if column.dtype != pl.String:
        ordered = column.to_physical() if column.dtype.is_decimal() else column
        ends |= {ordered.arg_min(), ordered.arg_max()}
    return [row for row in ends if row is not None]


def _different(written: Sequence[str], column: pl.Series, rule: _Rule, options: Options) -> int | None:
    """Return the first place where a column's value is not what is written; None without one."""
    is_comma = options.decimal == "," and column.dtype.is_numeric()
    cells = [cell.replace(",", ".") for cell in written] if is_comma else written
    if not options.null_values:
        pairs = zip(cells, rule.values(column), strict=True)
        known = [pair for pair in pairs if pair != ("", None)] if column.null_count() else [*pairs]
        with suppress(ValueError, ArithmeticError):
            if not known or rule.all(*map(list, zip(*known, strict=True))):
                return None
    pairs = zip(cells, _numbers(column), strict=True)
    return next((place for place, pair in enumerate(pairs) if not _same(*pair, rule.one, options)), None)


def _refuse(cells: Cells, column: pl.Series, row: int, cell: str) -> None:
    raise LabError(
        f'{cells.where}, line {cells.line(row)}, column "{column.name}": {cell[:40]!r} would become '
        f'{column.cast(pl.String)[row]}; --schema "{column.name}=string" keeps it as it is written'
    )


def _numbers(column: pl.Series) -> list[Scalar]:
    """Return values as Python objects, times as numbers, because Python has no nanoseconds."""
    return (column.to_physical() if column.dtype.is_temporal() else column).to_list()


def _same(cell: str, value: Scalar, holds: Callable[[str, Scalar], bool], options: Options) -> bool:
    null = cell == "" or cell in options.null_values
    if value is None or null:
        return null and (value is None or value == cell == "")
    try:
        return holds(cell, value)
    except (ValueError, ArithmeticError):
        return False


@dataclass(frozen=True)
class _Rule:
    """How to decide whether `one` value, as `_numbers` returns it, is its cell; and `all`, as `values` returns them.

    The second takes a fraction of the time, and may fail where the first does not.
    """

    one: Callable[[str, Scalar], bool]
    all: Callable[[list[str], list[Scalar]], bool]
    values: Callable[[pl.Series], list[Scalar]] = _numbers


def _read_by(parse: Callable[[str], Scalar]) -> _Rule:
    return _Rule(lambda cell, value: parse(cell) == value, lambda cells, values: list(map(parse, cells)) == values)


def _rule(dtype: pl.DataType, steps: Sequence[Call], asked: bool) -> _Rule:
    """Return how to decide whether values of a type match their cells."""
    if dtype == pl.String:
        return _Rule(str.__eq__, list.__eq__)
    if dtype.is_integer():
        return _read_by(int)
    if dtype.is_float():
        return _Rule(lambda cell, value: _number(float(cell), value), _near) if asked else _Rule(_float, _floats)
    if dtype.is_decimal():
        return _read_by(Decimal)
    if dtype == pl.Boolean:
        return _read_by(lambda cell: _TRUTHS.get(cell.lower()))
    return _temporal(dtype, next((str(one.arguments[0]) for one in steps if one.method.startswith("str.to_")), ""))


def _near(cells: list[str], values: list[Scalar]) -> bool:
    return list(map(float, cells)) == values


def _floats(cells: list[str], values: list[Scalar]) -> bool:
    return list(map(repr, values)) == cells or all(map(_float, cells, values))


def _number(number: float, value: float) -> bool:
    return number == value or (number != number and value != value)


def _float(cell: str, value: float) -> bool:
    if len(cell) <= SURE and "e" not in cell and "E" not in cell:
        return _number(float(cell), value)
    if cell == repr(value):
        return True
    cell = cell.strip()
    return _number(float(cell), value) if cell[-1:] in "nNf" else Decimal(cell) == Decimal(repr(value))


def _temporal(dtype: Dtype, written: str) -> _Rule:
    unit = {pl.Date: _DAY, pl.Time: 1}.get(dtype.base_type()) or _UNITS[dtype.time_unit]
    of_iso = written.startswith(("%Y-%m-%d", "%Y/%m/%d")) or written == "%H:%M:%S%.f"
    read = _iso if of_iso else _reader(written)
    rule = (
        _read_by(read)
        if unit == 1
        else _Rule(
            lambda cell, value: read(cell) == value * unit,
            lambda cells, values: list(map(read, cells)) == [value * unit for value in values],
        )
    )
    if of_iso and unit != 1:
        days = dtype == pl.Date
        return replace(rule, all=_days if days else _moments, values=lambda column: column.to_numpy().tolist())
    return rule


def _days(cells: list[str], values: list[Scalar]) -> bool:
    return [dt.date.fromisoformat(cell.replace("/", "-")) for cell in cells] == values


def _moments(cells: list[str], values: list[Scalar]) -> bool:
    if max(map(len, cells)) > 26 and any(cell[26:27].isdigit() for cell in cells):  # nanoseconds, which Python cuts off
        return False
    made = list(map(dt.datetime.fromisoformat, cells))
    return made == ([value.replace(tzinfo=dt.UTC) for value in values] if made[0].tzinfo else values)


def _iso(cell: str) -> int:
    """Return the nanoseconds since 1970, or since midnight, of an ISO 8601 cell."""
    cell = f"1970-01-01T{cell}" if cell[2:3] == ":" else cell
    fine = cell[26:29] if cell[20:].isdigit() else ""  # nanoseconds, which Python cuts off
    if cell[4:5] == "-" and len(cell) <= 26 + len(fine):
        with suppress(ValueError, OverflowError):
            return _since(dt.datetime.fromisoformat(cell[:26])) + int(fine.ljust(3, "0"))
    if not (found := _ISO.fullmatch(cell)):
        raise ValueError(cell)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = dt.date(int(year), int(month), int(day)).toordinal() - _EPOCH if year else 0
    seconds = int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
    if zone and zone != "Z":
        offset = zone[1:].replace(":", "").ljust(4, "0")
        seconds -= (int(offset[:2]) * 3600 + int(offset[2:]) * 60) * (-1 if zone[0] == "-" else 1)
    return days * _DAY + seconds * 1_000_000_000 + int((fraction or "").ljust(9, "0"))


def _reader(written: str) -> Callable[[str], int]:
    """Return a function of a cell in the format that the user gave, or the column showed: the nanoseconds since 1970.

    A format of digits alone is read by a pattern, because `strptime` takes four times as long.
    """
    parts = re.split("(%[^a-zA-Z]*[a-zA-Z])", written)
    found = parts[1::2]
    if not {"%Y", "%m", "%d"} <= {*found} <= _DIGITS.keys() or len({*found}) < len(found):
        return lambda cell: _as_written(cell, written)
    pattern = re.compile("".join(_DIGITS.get(part) or re.escape(part) for part in parts), re.ASCII)
    places = [found.index(part) if part in found else -1 for part in _DIGITS]

    def read(cell: str) -> int:
        if not (match := pattern.fullmatch(cell)):
            raise ValueError(cell)
        groups = (*match.groups("0"), "0")
        year, month, day, hour, minute, second = (int(groups[place]) for place in places[:-1])
        fraction = int(groups[places[-1]].ljust(6, "0"))
        return _since(dt.datetime(year, month, day, hour, minute, second, fraction))

    return read


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
