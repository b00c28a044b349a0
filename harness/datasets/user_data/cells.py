"""The type of a CSV column: the narrowest that holds every cell exactly as written, otherwise a string.

| every cell is | becomes |
|---|---|
| `true` or `false`, in any case | Boolean |
| an integer without leading zeros or `+` | Int64; UInt64; Decimal(38, 0) |
| a number that Float64 preserves digit by digit | Float64 |
| a number of up to 38 digits | Decimal(38, s) |
| `2024-12-31`, `2024/12/31`; `31/12/2024` or `12/31/2024` if a day above 12 shows which | Date |
| a timestamp of ISO 8601, all with a zone or all without | Datetime in microseconds, or in nanoseconds |
| `23:59:59`, with up to six decimals | Time |

Steps are data, so that the program that reads the file again does exactly the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import islice

import polars as pl

from harness.check.logical_types import INTEGERS, plain
from harness.datasets.user_data import cell_numbers, cell_times
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.steps import Call, Steps, applied

_PROBE = 40  # cells at each end of a column that show which types to try
_POINTS = r"^-?[0-9]{1,3}(?:\.?[0-9]{3})*(?:,[0-9]+)?$"
_COMMA = r"^-?[0-9]{1,3}(?:\.?[0-9]{3})*,[0-9]+$"
_TRUE_FALSE = {"true": True, "false": False}
_BOOLEANS = {**_TRUE_FALSE, "t": True, "f": False, "1": True, "0": False, "yes": True, "no": False}


@dataclass(frozen=True)
class Typed:
    """A column of strings converted to values: the steps, and notes for the user.

    `misfit` is the first row whose cell cannot be converted to the requested type.
    """

    column: pl.Series
    steps: tuple[Call, ...] = ()
    note: str = ""
    misfit: int | None = None


def typed(column: pl.Series, options: Options) -> Typed:
    """Return a column of strings as the narrowest type that holds every cell exactly as written."""
    cells = _filled(column)
    probe = set(cells.head(_PROBE)) | set(cells.tail(_PROBE))
    if probe and options.date_format and (steps := cell_times.formatted(cells, options.date_format)):
        return _made(column, steps)
    for looks, steps_of in _LOOKS if probe else ():
        looked_at = (cell_numbers.as_number(cell, options) for cell in probe)
        if all(re.search(looks, cell) for cell in looked_at) and (steps := steps_of(cells, options)):
            return _made(column, steps)
    return Typed(column, note=_note(cells, probe, options) if probe else "")


def asked(column: pl.Series, logical: str, options: Options) -> Typed:
    """Return a column of strings as the logical type that the user requested; `misfit` is the first failing row."""
    if logical == "text":
        return Typed(column)
    cells = _filled(column)
    if not (steps := _asked(cells, logical, options)):
        number = cell_numbers.PLAIN.replace(r"\.", ",") if options.decimal == "," else cell_numbers.PLAIN
        odd = cells.filter(~cells.str.contains(_SHAPES.get(plain(logical), number)))
        misfit = (column == (odd if len(odd) else cells)[0]).arg_true()[0] if len(cells) else None
        return Typed(column, misfit=misfit)
    made = reduce(lambda values, step: step.loosely(values), steps, column)
    lost = (made.is_null() & column.is_not_null() & (column != "")).arg_true()
    return Typed(made, misfit=lost[0]) if len(lost) else _made(column, steps)


def _filled(column: pl.Series) -> pl.Series:
    """Return the cells that are neither null nor empty."""
    cells = column.drop_nulls() if column.null_count() else column
    return cells.filter(cells != "") if (cells == "").any() else cells


def _made(column: pl.Series, steps: Steps) -> Typed:
    """Return a column after steps; a quoted empty cell is a null in every type but string."""
    if (column == "").any():
        steps = (Call("replace", ("", None)), *steps)
    return Typed(applied(column, steps), steps)


def _boolean(cells: pl.Series, options: Options) -> Steps:
    steps = (Call("str.to_lowercase"), Call("replace_strict", (_TRUE_FALSE,), _BOOLEAN))
    return cell_times.parsed(cells, steps)


_BOOLEAN = {"return_dtype": pl.Boolean}
# Dates, times and numbers each have one form: the form at the column's ends is tried on all of it.
_LOOKS: list[tuple[str, Callable[[pl.Series, Options], Steps]]] = [
    (r"^(?i:true|false)$", _boolean),
    (cell_numbers.WHOLE, cell_numbers.whole),
    (cell_numbers.NUMBER, cell_numbers.number),
    (rf"{cell_times.DAY}|{cell_times.DAY_SLASHES}", cell_times.date),
    (cell_times.TIMESTAMP, cell_times.timestamp),
    (cell_times.ZONED, cell_times.zoned),
    (cell_times.TIME, cell_times.time),
    (cell_times.DAY_MONTH, cell_times.day_month),
]
_OF_ASKED: dict[str, list[Callable[[pl.Series, Options], Steps]]] = {
    "date": [cell_times.date, cell_times.day_month],
    "timestamp": [cell_times.timestamp, cell_times.day_month],
    "timestamp_tz": [cell_times.zoned],
    "time": [cell_times.time],
}
_SHAPES = {
    "date": cell_times.DAY,
    "timestamp": cell_times.TIMESTAMP,
    "timestamp_tz": cell_times.ZONED,
    "time": cell_times.TIME,
}


def _asked(cells: pl.Series, logical: str, options: Options) -> Steps:
    """Return the steps to the type that the user requested; none if no cell shows them."""
    if logical in INTEGERS or logical == "float64" or plain(logical) == "decimal":
        if (numbers := cell_numbers.as_numbers(cells, options)) is None:
            return ()
        return (*numbers[0], *cell_numbers.asked(numbers[1], logical))
    if logical == "boolean":
        return Call("str.to_lowercase"), Call("replace_strict", (_BOOLEANS,), _BOOLEAN)
    if options.date_format and logical != "time":
        return cell_times.asked(cells, options.date_format, is_date=logical == "date")
    return next((steps for steps_of in _OF_ASKED[logical] if (steps := steps_of(cells, options))), ())


def _note(cells: pl.Series, probe: set[str], options: Options) -> str:
    """Return a note about a column that stays one of strings although it looks like another type; otherwise empty."""
    name = cells.name
    if all(re.search(cell_times.DAY_MONTH, cell) for cell in probe) and len(cell_times.orders(cells)) == 2:
        return (
            f'column "{name}": {cells[0]} may be day and month or month and day, so it stays a string; give '
            f"--date-format %d/%m/%Y or %m/%d/%Y, as it is written"
        )
    if options.decimal == "," and cells.str.contains(_POINTS).all():
        return f'column "{name}": {cells[0]} stays a string, because of its point; take the points out of numbers'
    if all(re.search(_COMMA, cell) for cell in probe) and cells.str.contains(_COMMA).all():
        return f'column "{name}": {cells[0]} stays a string; if its comma is a decimal point, give --decimal ,'
    if all(re.search(cell_numbers.NUMBER, cell) for cell in probe) and cells.str.contains(cell_numbers.NUMBER).all():
        more = next(islice((cell for cell in cells if len(cell) > cell_numbers.SURE), 1), cells[0])
        return (
            f'column "{name}": {more[:40]} has more digits than a float or 38 digits hold, so it stays a string; '
            f'--schema "{name}=float64" takes the nearest'
        )
    return ""
