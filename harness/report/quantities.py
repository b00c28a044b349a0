"""What the columns of runs.csv are called on an axis, and their figures as text with SI prefixes."""

from dataclasses import dataclass

from harness.model import LabError
from harness.results.row import COLUMNS

PARAMETER = "parameter:"  # begins the name of a column that is one parameter of the label
DETAIL = "detail:"  # begins the name of a column that is one of the details
SUM = " + "  # between columns of one unit whose figures are added
_UNITS = {column.name: column.unit for column in COLUMNS if column.parse in (int, float) and column.unit}
_NAMES = {
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
# Largest first. Times above a second stay seconds: nobody reads a kilosecond.
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
    """Return what a column of runs.csv, or a sum of some, measures. Raises LabError for one without a unit."""
    if SUM in column:
        return _sum(column)
    if column.startswith(DETAIL):
        return _detail(column)
    if column not in _UNITS:
        raise LabError(f'expected a column with a unit ({", ".join(_UNITS)}), found "{column}"')
    return Quantity(column, _NAMES.get(column, column.replace("_", " ")), _UNITS[column], column in _MORE_IS_BETTER)


def _sum(column: str) -> Quantity:
    parts = [quantity(part) for part in column.split(SUM)]
    if len({part.unit for part in parts}) > 1:
        raise LabError(f'expected columns of one unit in "{column}", found {", ".join(part.unit for part in parts)}')
    first, *others = parts
    of_workers = all(part.column.startswith(f"{DETAIL}workers_") for part in others)
    name = f"{first.name}, workers included" if of_workers else SUM.join(part.name for part in parts)
    return Quantity(column, name, first.unit, first.more_is_better)


def _detail(column: str) -> Quantity:
    """Return what a detail measures, by the unit that its name ends in; `parts` are counted and have none."""
    name = column.removeprefix(DETAIL)
    if name == "parts":
        return Quantity(column, name, "", False)
    for ending, unit in (("bytes_per_s", "B/s"), ("bytes", "B"), ("seconds", "s")):
        if name.endswith(ending):
            words = name.removesuffix("seconds").removesuffix("bytes_per_s").replace("_", " ").strip()
            rest = "rate" if unit == "B/s" else "time" if unit == "s" else ""
            return Quantity(column, f"{words} {rest}".strip(), unit, unit == "B/s")
    raise LabError(f'expected a detail whose name ends in seconds, bytes or bytes_per_s, found "{name}"')


def parameter_or_quantity(column: str) -> Quantity:
    """Return what an axis of conditions shows: a parameter, which has no unit, or a column that has one."""
    if column.startswith(PARAMETER):
        return Quantity(column, column.removeprefix(PARAMETER).replace("_", " "), "", False)
    return quantity(column)


def text(value: float, unit: str) -> str:
    """Return a figure with three digits and its unit: `344 ms`, `1.31 M rows/s`, `87 MB`."""
    rounded = float(f"{value:.3g}")
    factor, prefix = _prefix(rounded, unit)
    return " ".join(part for part in (_digits(rounded / factor), prefix, _rest(unit)) if part)


def _prefix(value: float, unit: str) -> tuple[float, str]:
    known = _PREFIXES.get(unit, _COUNTS)
    if not value:
        return next(entry for entry in known if entry[0] == 1.0)
    return next((entry for entry in known if abs(value) >= entry[0]), known[-1])


def _rest(unit: str) -> str:
    return "" if unit in _PREFIXES else unit


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
