"""Figures, parameters and directions as people write them: a missing figure is an empty string, never 0."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.model import Fate, LabError, Operation
from harness.results.row import COLUMNS, NAMES, Row
from harness.suites.suite import Picture
from harness.systems import SYSTEMS

CHANGES, REFUSES = "†", "‡"
_MEANING = {CHANGES: "silently changes", REFUSES: "refuses"}


def loss_marks(lossy: Mapping[str, str]) -> str:
    """Return the marks of a transport's declared losses: a silent change and a refusal have different marks.

    A call that hangs or crashes hands nothing over either: it is marked as a refusal.
    """
    fates = set(lossy.values())
    return (CHANGES if Fate.CHANGED in fates else "") + (REFUSES if fates - {Fate.CHANGED} else "")


def marked(name: str, lossy: Mapping[str, str]) -> str:
    """Return the name of a transport with its marks."""
    return f"{name} {loss_marks(lossy)}".rstrip()


def legend(of: Iterable[Mapping[str, str]]) -> str:
    """Explain the marks of these transports; empty if none has a mark."""
    found = {mark for lossy in of for mark in loss_marks(lossy)}
    said = ", ".join(f"{mark} {meaning}" for mark, meaning in _MEANING.items() if mark in found)
    return said and f"{said} some kinds of values"


def apart(transport: str) -> str:
    """Return the end of an id, which tells a transport from its client's other ones in the same direction."""
    return transport.rpartition(".")[2].split("_", 2)[-1]


def spelled(transport: str, summary: str) -> str:
    """Return the call that people write, in the spelling of its transport's summary: `insert_df` of `write_pandas_df`.

    The function's name ends like the call. If its summary has no such word, that end is the name. A summary may name
    another transport, too, which is no call.
    """
    found = re.search(rf"\b(?!(?:read|write)_(?:pandas|polars)_)\w*{apart(transport)}\b", summary)
    return found[0] if found else apart(transport)


def short_name(transport: str, summary: str = "") -> str:
    """Return a transport's client and its call, for a known direction: `psycopg tuned`."""
    return f"{transport.split('.')[1]} {spelled(transport, summary)}"


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number to this many significant digits without an exponent: 0.0123, 1.23, 123, 12,345."""
    if value is None or value == 0:
        return "" if value is None else "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return format(value, f",.{max(0, decimals)}f")


def span(interval: tuple[float, float] | None, unit: float = 1.0, digits: int = 3) -> str:
    """Return the ends of an interval, `0.46-0.60`; empty without one."""
    return "-".join(significant(end * unit, digits) for end in interval or ())


def numbered(count: int, one: str, more: str = "") -> str:
    """Return a number of things: `1 case`, `2 cases`, `3 passes`."""
    return f"{count:,} {one if count == 1 else more or f'{one}s'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first of some names and how many more there are: `a, b and 4 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def as_printed(value: float | None) -> str:
    """Return an author's figure with its printed digits, up to six: 45, 1,300, 0.0332002."""
    return "" if value is None else format(value, ",.6g")


def times(value: float | None, digits: int = 2) -> str:
    """Return a ratio to two significant digits, as precise as few runs make it: ×0.58, ×1.3, ×13, ×130."""
    return "" if value is None else f"×{significant(value, digits)}"


def ranged(factors: Sequence[float]) -> str:
    """Return the smallest and the largest of some factors, `11× to 13×`; if both look the same, `11×`."""
    return " to ".join(dict.fromkeys(f"{significant(value, 2)}×" for value in (min(factors), max(factors))))


def megabytes(value: float | None) -> str:
    """Return bytes as MB (10^6) to three significant digits; below one it is "<1"."""
    return "<1" if value is not None and value < 1e6 else significant(None if value is None else value / 1e6)


def gigabytes(value: float | None) -> str:
    """Return bytes as GB (10^9) to three significant digits."""
    return significant(None if value is None else value / 1e9)


def volume(value: float) -> str:
    """Return a number of bytes with the unit that suits it: 1.72 GB, 210 MB."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{significant(value / size)} {unit}"
    return f"{value:,.0f} B"


def detail(name: str, value: float) -> str:
    """Return a further fact of a run with the unit that its name ends in: seconds, bytes, bytes per second."""
    if name.endswith("bytes_per_s"):
        return f"{volume(value)}/s"
    if name.endswith("bytes"):
        return volume(value)
    if name.endswith("seconds"):
        return f"{significant(value)} s"
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


_PARAMETER_UNITS = {"mbit_per_s": "Mbit/s", "_mb": "MB", "_ms": "ms"}  # of parameters, by how their names end


def detail_name(column: str) -> str:
    """Return the name of a further fact without its unit, which is at every figure."""
    if column.endswith("bytes_per_s"):
        return f"{column.removesuffix('bytes_per_s').replace('_', ' ').strip()} rate".strip()
    return column.removesuffix("_seconds").replace("_", " ").strip()


def in_order(parameters: Mapping[str, str]) -> tuple[tuple[str, float, str], ...]:
    """Return a key that sorts by parameters: see `natural`."""
    return tuple((name, *natural(value)) for name, value in parameters.items())


def natural(value: str) -> tuple[float, str]:
    """Return a key that sorts numbers by value, and before strings."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value


def is_number(text: str) -> bool:
    """Say whether a string is a finite number."""
    return math.isfinite(natural(text)[0])


def varying(every: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the names of the parameters that differ."""
    names = dict.fromkeys(name for parameters in every for name in parameters)
    return [name for name in names if len({parameters.get(name) for parameters in every}) > 1]


def in_common(every: Sequence[Mapping[str, str]], but: Collection[str] = ()) -> str:
    """Name the parameters that all share, `but` those given, for people; empty without any."""
    apart = {*varying(every), *but}
    return ", ".join(described(*one) for one in (every[0] if every else {}).items() if one[0] not in apart)


def described(name: str, value: str) -> str:
    """Write a parameter for people: `8 files`, `1 part per file`, `512 MB memory`, `10 ms rtt`, `page cache warm`."""
    words = name.replace("_", " ")
    for ending, unit in _PARAMETER_UNITS.items():
        if name.endswith(ending) and is_number(value):
            if unit == "Mbit/s" and not float(value):
                return "unlimited rate"
            return f"{float(value):,.15g} {unit} {words[: len(words) - len(ending)]}".strip()
    first, space, rest = words.partition(" ")
    if not (value.isdecimal() and (first.endswith("s") or words.endswith("s"))):
        return f"{words} {value}"
    if value == "1" and first.endswith("s"):
        return f"1 {first.removesuffix('s')}{space}{rest}"
    return f"{int(value):,} {words}"


PARAMETER = "parameter:"  # begins the name of a column that is one parameter of the label
DETAIL = "detail:"  # begins the name of a column that is one of the details
SUM = " + "  # between columns of one unit whose figures are added
_UNITS = {column.name: column.unit for column in COLUMNS if column.parse in (int, float) and column.unit}
_QUANTITIES = {
    "seconds": "time",
    "connect_seconds": "time to connect",
    "rows_per_s": "rate",
    "cpu_seconds": "CPU time",
    "cpu_user_seconds": "CPU time of the program",
    "cpu_system_seconds": "CPU time of the kernel",
    "peak_rss_bytes": "peak memory above the start",
    "peak_anon_bytes": "peak anonymous memory above the start",
    "peak_file_bytes": "peak file-backed memory above the start",
    "bytes": "data on disk",
    "rows": "rows",
}
_MORE_IS_BETTER = ("rows_per_s",)
# Largest first. Times above a second stay seconds, never kiloseconds.
_PREFIXES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B/s": ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "B": ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True)
class Quantity:
    """A column with figures: its name on an axis, its unit, and whether more of it is better."""

    column: str
    name: str
    unit: str
    more_is_better: bool


def quantity(column: str) -> Quantity:
    """Return the quantity of a column of runs.csv, or of a sum of some. Raises LabError for one without a unit."""
    if SUM in column:
        return _of_sum(column)
    if column.startswith(DETAIL):
        return _of_detail(column)
    if column not in _UNITS:
        raise LabError(f'column "{column}" has no unit; choose from: {", ".join(_UNITS)}')
    return Quantity(
        column, _QUANTITIES.get(column, column.replace("_", " ")), _UNITS[column], column in _MORE_IS_BETTER
    )


def _of_sum(column: str) -> Quantity:
    parts = [quantity(part) for part in column.split(SUM)]
    if len({part.unit for part in parts}) > 1:
        raise LabError(
            f'"{column}" adds several units: {", ".join(part.unit for part in parts)}; choose columns of one'
        )
    first, *others = parts
    of_workers = all(part.column.startswith(f"{DETAIL}workers_") for part in others)
    name = f"{first.name}, workers included" if of_workers else SUM.join(part.name for part in parts)
    return Quantity(column, name, first.unit, first.more_is_better)


def _of_detail(column: str) -> Quantity:
    """Return the quantity of a detail, by the unit at the end of its name; `parts` are counted and have no unit."""
    name = column.removeprefix(DETAIL)
    if name == "parts":
        return Quantity(column, name, "", False)
    for ending, unit in (("bytes_per_s", "B/s"), ("bytes", "B"), ("seconds", "s")):
        if name.endswith(ending):
            words = name.removesuffix("seconds").removesuffix("bytes_per_s").replace("_", " ").strip()
            rest = "rate" if unit == "B/s" else "time" if unit == "s" else ""
            return Quantity(column, f"{words} {rest}".strip(), unit, unit == "B/s")
    raise LabError(f'detail "{name}" has no unit; end its name in seconds, bytes or bytes_per_s')


def chosen(picture: Picture, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a picture is about. Raises LabError when it names an unknown column."""
    where = picture.where or {}
    return [row for row in rows if all(value(row, column) in wanted for column, wanted in where.items())]


def value(row: Row, column: str) -> str:
    """Return a column, or with `parameter:<name>` one parameter, as a printable string."""
    if column == "transport":
        return printable(row.published_row or row.transport)
    if column.startswith(PARAMETER):
        return printable(row.parameters.get(column.removeprefix(PARAMETER), ""))
    if column in NAMES:
        return printable(row.text(column))
    raise LabError(f'no column "{column}" for a picture; give one of runs.csv, or "{PARAMETER}<name>"')


def printable(words: str) -> str:
    """Return a string without the characters that no SVG can hold and no page can show; line ends stay."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in words)


def figure(row: Row, column: str) -> float | None:
    """Return a figure of a run; a sum of columns (see `quantities.SUM`) needs only the first of them."""
    if SUM in column:
        first, *others = (figure(row, part) for part in column.split(SUM))
        return None if first is None else first + sum(other or 0 for other in others)
    return row.details.get(column.removeprefix(DETAIL)) if column.startswith(DETAIL) else getattr(row, column)


def parameter_or_quantity(column: str) -> Quantity:
    """Return the quantity of an axis of conditions: a parameter, which has no unit, or a column with a unit."""
    if column.startswith(PARAMETER):
        return Quantity(column, column.removeprefix(PARAMETER).replace("_", " "), "", False)
    return quantity(column)


def with_unit(value: float, unit: str) -> str:
    """Return a figure with three digits and its unit: `344 ms`, `1.31 M rows/s`, `87 MB`."""
    rounded = float(f"{value:.3g}")
    known = _PREFIXES.get(unit, _COUNTS)
    factor, prefix = next((entry for entry in known if abs(rounded or 1.0) >= entry[0]), known[-1])
    scaled = rounded / factor
    digits = f"{scaled:,.0f}" if abs(scaled) >= 100 else f"{scaled:.3g}"
    return " ".join(part for part in (digits, prefix, "" if unit in _PREFIXES else unit) if part)


class Routed(Protocol):
    """The parameters that name the two ends of the data."""

    @property
    def system(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def frame(self) -> str: ...


def route(one: Routed) -> str:
    """Name the two ends of the data: `pandas to Postgres`."""
    system = TITLES.get(one.system, one.system)
    return " to ".join((one.frame, system) if one.operation == Operation.WRITE else (system, one.frame))


TITLES = {"parquet": "Parquet", "elt": "ELT"} | {name: system.title for name, system in SYSTEMS.items()}


def titled(experiment: str, system: str = "", operation: str = "") -> str:
    """Return the title of a group of cases without repeated words: `Growing file: Parquet scan`."""
    of_system = f"{TITLES.get(system, system.replace('_', ' '))} {operation}".strip()
    words = experiment.replace("_", " ")
    parts = [part for part in (words if words not in of_system else "", of_system) if part]
    return ": ".join(part[:1].upper() + part[1:] for part in parts)
