"""The type of a column of CSV: the narrowest that holds every cell exactly as it is written, else a string.

| every cell is | becomes |
|---|---|
| `true` or `false`, in any case | Boolean |
| a whole number without leading zeros or `+` | Int64; UInt64; Decimal(38, 0) |
| a number that Float64 gives back digit by digit | Float64 |
| a number of up to 38 digits | Decimal(38, s) |
| `2024-12-31`, `2024/12/31`; `31/12/2024` or `12/31/2024` where a day above 12 says which | Date |
| a timestamp of ISO 8601, all with a zone or all without | Datetime in microseconds, or in nanoseconds |
| `23:59:59`, with up to six decimals | Time |

Steps are data, so that the program that reads the file again does the very same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from itertools import islice
from typing import Any

import polars as pl

from harness.check.logical_types import INTEGERS, MOST_DIGITS, digits, plain, polars_dtype
from harness.datasets.own.options import Options

_PROBE = 40  # cells at each end of a column that say which types are worth a try
_SURE = 15  # digits that every float holds
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$|^(?:NaN|nan|-?inf)$"
_WHOLE = r"^(?:0|-?[1-9][0-9]*)$"
_PLAIN_NUMBER = r"^-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_HOUR = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ISO_DAY = rf"^{_DAY}$"
_ISO_DAY_SLASHES = r"^[0-9]{4}/[0-9]{2}/[0-9]{2}$"
_ISO = rf"^{_DAY}[T ]{_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?$"
_ISO_ZONE = rf"^{_DAY}[T ]{_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)$"
_DAY_MONTH = rf"^[0-9]{{1,2}}([/.-])[0-9]{{1,2}}[/.-][0-9]{{4}}(?: {_HOUR}(?::[0-5][0-9](?:\.[0-9]{{1,6}})?)?)?$"
_TIME = rf"^{_HOUR}:[0-5][0-9](?:\.[0-9]{{1,6}})?$"
_COMMA = r"^-?[0-9]{1,3}(?:\.?[0-9]{3})*,[0-9]+$"
_TRUE_FALSE = {"true": True, "false": False}
_BOOLEANS = {**_TRUE_FALSE, "t": True, "f": False, "1": True, "0": False, "yes": True, "no": False}
_STRICT = {"cast", "replace_strict", "str.to_date", "str.to_datetime", "str.to_time"}  # raise where a cell is none
_OF_TIME = re.compile("%[HIMSTRfpPzZ]|%[.#]")


@dataclass(frozen=True)
class Step:
    """A method of a polars Series that is called on a column, and how a program spells the call."""

    method: str
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)

    def __call__(self, column: Any) -> Any:
        """Return the column after the call."""
        return reduce(getattr, self.method.split("."), column)(*self.arguments, **self.keywords)

    def loosely(self, column: Any) -> Any:
        """Return the column after the call, with nulls where it would raise."""
        loose = {"default": None} if self.method == "replace_strict" else {"strict": False}
        return replace(self, keywords=self.keywords | loose)(column) if self.method in _STRICT else self(column)

    def __str__(self) -> str:
        """The call as a program spells it."""
        said = [_spelled(one) for one in self.arguments]
        return f".{self.method}({', '.join(said + [f'{name}={_spelled(one)}' for name, one in self.keywords.items()])})"


def _spelled(argument: Any) -> str:
    is_type = isinstance(argument, pl.DataType) or (isinstance(argument, type) and issubclass(argument, pl.DataType))
    return f"polars.{argument!r}" if is_type else repr(argument)


@dataclass(frozen=True)
class Typed:
    """A column of strings as one of values: by which steps, and what to tell the person.

    `misfit` is the first row with a cell of which a type that was asked for makes nothing.
    """

    column: pl.Series
    steps: tuple[Step, ...] = ()
    note: str = ""
    misfit: int | None = None


_Steps = tuple[Step, ...]


def typed(column: pl.Series, options: Options) -> Typed:
    """Return a column of strings as the narrowest type that holds every cell exactly as it is written."""
    cells = _filled(column)
    probe = set(cells.head(_PROBE)) | set(cells.tail(_PROBE))
    if probe and options.date_format and (steps := _formatted(cells, options.date_format)):
        return _made(column, steps)
    for looks, of_kind in _KINDS if probe else ():
        if all(re.search(looks, _as_number(cell, options)) for cell in probe) and (steps := of_kind(cells, options)):
            return _made(column, steps)
    return Typed(column, note=_note(cells, probe, options) if probe else "")


def asked(column: pl.Series, logical: str, options: Options) -> Typed:
    """Return a column of strings as the logical type that a person asks for; `misfit` is where that does not go."""
    if logical == "text":
        return Typed(column)
    cells = _filled(column)
    if not (steps := _asked(cells, logical, options)):
        odd = cells.filter(~cells.str.contains(_SHAPES.get(plain(logical), _PLAIN_NUMBER)))
        return Typed(column, misfit=_row(column, (odd if len(odd) else cells)[0])) if len(cells) else Typed(column)
    made = reduce(lambda values, step: step.loosely(values), steps, column)
    lost = (made.is_null() & column.is_not_null() & (column != "")).arg_true()
    return Typed(made, misfit=lost[0]) if len(lost) else _made(column, steps)


def applied(column: Any, steps: Iterable[Step]) -> Any:
    """Return a column after all steps."""
    return reduce(lambda made, step: step(made), steps, column)


def _filled(column: pl.Series) -> pl.Series:
    """Return the cells that are neither null nor empty."""
    cells = column.drop_nulls() if column.null_count() else column
    return cells.filter(cells != "") if (cells == "").any() else cells


def _row(column: pl.Series, cell: str) -> int:
    return int((column == cell).arg_true()[0])


def _made(column: pl.Series, steps: _Steps) -> Typed:
    """Return a column after steps; an empty cell in quotes is a null of whatever is no string."""
    if (column == "").any():
        steps = (Step("replace", ("", None)), *steps)
    return Typed(applied(column, steps), steps)


def _as_number(cell: str, options: Options) -> str:
    """Return a cell as numbers are looked at: without spaces around it, with a point."""
    cell = cell.strip(" ")
    return cell.replace(",", ".", 1) if options.decimal == "," and "." not in cell else cell


def _as_numbers(cells: pl.Series, options: Options) -> tuple[_Steps, pl.Series] | None:
    """Return the steps after which cells are written as numbers are, and the cells; None where they cannot be."""
    steps: _Steps = ()
    if (cells.str.starts_with(" ") | cells.str.ends_with(" ")).any():
        steps = (Step("str.strip_chars", (" ",)),)
    if options.decimal == ",":
        if cells.str.contains(".", literal=True).any():
            return None  # of thousands, or of another language
        steps = (*steps, Step("str.replace", (",", "."), {"literal": True}))
    return steps, applied(cells, steps)


def _boolean(cells: pl.Series, options: Options) -> _Steps:
    steps = (Step("str.to_lowercase"), Step("replace_strict", (_TRUE_FALSE,), _BOOLEAN))
    return _parsed(cells, steps)


_BOOLEAN = {"return_dtype": pl.Boolean}


def _whole(cells: pl.Series, options: Options) -> _Steps:
    before, cells = _as_numbers(cells, options) or ((), cells)
    for dtype in (pl.Int64, pl.UInt64, pl.Decimal(MOST_DIGITS, 0)):
        made = cells.cast(dtype, strict=False)
        if not made.null_count():
            return (*before, Step("cast", (dtype,))) if (made.cast(pl.String) == cells).all() else ()
    return ()


def _number(cells: pl.Series, options: Options) -> _Steps:
    if (numbers := _as_numbers(cells, options)) is None or not numbers[1].str.contains(_NUMBER).all():
        return ()
    before, cells = numbers
    floats = cells.cast(pl.Float64, strict=False)
    if not floats.null_count() and _exact(cells, floats):
        return (*before, Step("cast", (pl.Float64,)))
    scale = _scale(cells)
    return (*before, Step("cast", (pl.Decimal(MOST_DIGITS, scale),))) if scale is not None else ()


def _exact(cells: pl.Series, floats: pl.Series) -> bool:
    """Say whether floats, written with as few digits as tell them apart, are the numbers in the cells."""
    unsure = cells.str.len_bytes() > _SURE
    unsure |= cells.str.contains("[eEN]")
    unsure &= floats.cast(pl.String) != cells
    left = zip(cells.filter(unsure), floats.filter(unsure), strict=True)
    return all(cell in ("NaN", "nan", "inf", "-inf") or Decimal(cell) == Decimal(repr(made)) for cell, made in left)


def _scale(cells: pl.Series) -> int | None:
    """Return how many places decimals have that hold every number; None where 38 digits do not do."""
    if not cells.str.contains(_PLAIN_NUMBER).all():
        return None
    places, whole = cells.str.extract(r"\.([0-9]+)$").str.len_bytes(), cells.str.extract(r"^-?0*([0-9]*)")
    scale, most = int(places.max() or 0), int(whole.str.len_bytes().max() or 0)  # type: ignore[arg-type]
    return scale if scale + most <= MOST_DIGITS else None


def _date(cells: pl.Series, options: Options) -> _Steps:
    for looks, written in ((_ISO_DAY, "%Y-%m-%d"), (_ISO_DAY_SLASHES, "%Y/%m/%d")):
        if cells.str.contains(looks).all():
            return _parsed(cells, (Step("str.to_date", (written,)),))
    return ()


def _timestamp(cells: pl.Series, options: Options) -> _Steps:
    return _moments(cells, "") if cells.str.contains(_ISO).all() else ()


def _zoned(cells: pl.Series, options: Options) -> _Steps:
    return _moments(cells, "%#z") if cells.str.contains(_ISO_ZONE).all() else ()


def _moments(cells: pl.Series, zone: str) -> _Steps:
    """Return the steps for timestamps of ISO 8601, all with seconds or all without."""
    with_seconds = cells.str.contains(rf"[T ]{_HOUR}:")
    if with_seconds.any() and not with_seconds.all():
        return ()
    before: _Steps = ()
    if cells.str.contains("T", literal=True).any():
        before = (Step("str.replace", ("T", " "), {"literal": True}),)
    written = f"%Y-%m-%d %H:%M:%S%.f{zone}" if with_seconds.any() else f"%Y-%m-%d %H:%M{zone}"
    to = {unit: Step("str.to_datetime", (written,), {"time_unit": unit}) for unit in ("us", "ns")}
    steps = _parsed(cells, (*before, to["us"]))
    if not steps or not cells.str.contains(r"\.[0-9]{6}[0-9]*[1-9]").any():
        return steps
    fine, coarse = applied(cells, (*before, to["ns"])), applied(cells, steps)
    held = (fine.to_physical() // 1_000).eq_missing(coarse.to_physical()).all()
    return (*before, to["ns"]) if held else ()  # from 1677 to 2262


def _parsed(cells: pl.Series, steps: _Steps) -> _Steps:
    """Return steps that make something of every cell, and no year 0, which no database has; else none."""
    try:
        made = applied(cells, steps)
    except pl.exceptions.PolarsError:
        return ()
    if made.null_count() or (made.dtype in (pl.Date, pl.Datetime) and int(made.dt.year().min()) < 1):
        return ()
    return steps


def _time(cells: pl.Series, options: Options) -> _Steps:
    if not cells.str.contains(_TIME).all():
        return ()
    return _parsed(cells, (Step("str.to_time", ("%H:%M:%S%.f",)),))


def _day_month(cells: pl.Series, options: Options) -> _Steps:
    """Return the steps for days and months in the one order that every cell allows; none where both orders do."""
    orders = _orders(cells)
    if len(orders) == 2 and applied(cells, orders[0]).equals(applied(cells, orders[1])):
        return orders[0]
    return orders[0] if len(orders) == 1 else ()


def _orders(cells: pl.Series) -> list[_Steps]:
    mark = cells[0].lstrip("0123456789")[:1]
    mark = {"/": "/", ".": r"\.", "-": "-"}.get(mark, "/")
    looks = _DAY_MONTH.replace("([/.-])", mark).replace("[/.-]", mark)
    if not cells.str.contains(looks).all():
        return []
    mark = mark.lstrip("\\")
    parts = [f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y"]
    for time in ("", " %H:%M", " %H:%M:%S%.f"):
        method = "str.to_datetime" if time else "str.to_date"
        keywords = {"time_unit": "us"} if time else {}
        if found := [steps for part in parts if (steps := _parsed(cells, (Step(method, (part + time,), keywords),)))]:
            return found
    return []


def _formatted(cells: pl.Series, written: str) -> _Steps:
    """Return the steps for dates or timestamps in the form that a person gives."""
    return _parsed(cells, (_to_timestamp(written) if _OF_TIME.search(written) else _to_date(written),))


# Dates, times and numbers look like one thing each: what the ends of a column show is tried on all of it.
_KINDS: list[tuple[str, Callable[[pl.Series, Options], _Steps]]] = [
    (r"^(?i:true|false)$", _boolean),
    (_WHOLE, _whole),
    (_NUMBER, _number),
    (rf"{_ISO_DAY}|{_ISO_DAY_SLASHES}", _date),
    (_ISO, _timestamp),
    (_ISO_ZONE, _zoned),
    (_TIME, _time),
    (_DAY_MONTH, _day_month),
]


def _asked(cells: pl.Series, logical: str, options: Options) -> _Steps:
    """Return the steps to a type that a person asks for; none where no cell shows which."""
    if logical in INTEGERS or logical == "float64" or plain(logical) == "decimal":
        before = (_as_numbers(cells, options) or ((), cells))[0]
        return (*before, *_asked_number(applied(cells, before), logical))
    if logical == "boolean":
        return Step("str.to_lowercase"), Step("replace_strict", (_BOOLEANS,), _BOOLEAN)
    if options.date_format and logical != "time":
        return ((_to_date if logical == "date" else _to_timestamp)(options.date_format),)
    return next((steps for of_kind in _OF_ASKED[logical] if (steps := of_kind(cells, options))), ())


_SHAPES = {"date": _ISO_DAY, "timestamp": _ISO, "timestamp_tz": _ISO_ZONE, "time": _TIME}


def _to_date(written: str) -> Step:
    return Step("str.to_date", (written,))


def _to_timestamp(written: str) -> Step:
    return Step("str.to_datetime", (written,), {"time_unit": "us"})


_OF_ASKED: dict[str, list[Callable[[pl.Series, Options], _Steps]]] = {
    "date": [_date, _day_month],
    "timestamp": [_timestamp, _day_month],
    "timestamp_tz": [_zoned],
    "time": [_time],
}


def _asked_number(cells: pl.Series, logical: str) -> _Steps:
    if logical in INTEGERS or logical == "float64":
        return (Step("cast", (polars_dtype(logical),)),)
    scale = _scale(cells)
    if scale is None or (logical != "decimal" and scale > digits(logical)[1]):
        return ()
    dtype = pl.Decimal(MOST_DIGITS, scale) if logical == "decimal" else polars_dtype(logical)
    return (Step("cast", (dtype,)),)


def _note(cells: pl.Series, probe: set[str], options: Options) -> str:
    """Return what to tell of a column that stays one of strings, and looks as if it were none; empty otherwise."""
    name = cells.name
    if all(re.search(_DAY_MONTH, cell) for cell in probe) and len(_orders(cells)) == 2:
        return (
            f'column "{name}": {cells[0]} may be day and month or month and day, so it stays a string; give '
            f"--date-format %d/%m/%Y or %m/%d/%Y, as it is written"
        )
    if all(re.search(_COMMA, cell) for cell in probe) and cells.str.contains(_COMMA).all():
        return f'column "{name}": {cells[0]} stays a string; if its comma is a decimal point, give --decimal ,'
    if all(re.search(_NUMBER, cell) for cell in probe) and cells.str.contains(_NUMBER).all():
        more = next(islice((cell for cell in cells if len(cell) > _SURE), 1), cells[0])
        return (
            f'column "{name}": {more[:40]} has more digits than a float or 38 digits hold, so it stays a string; '
            f'--schema "{name}=float64" takes the nearest'
        )
    return ""
