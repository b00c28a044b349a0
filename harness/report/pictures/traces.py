"""Traces: how many cores runs kept busy over time, one line for each run of the last pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.lines import Line2D

from harness.report import style
from harness.report.pictures import scales
from harness.report.pictures.cases import chosen, value
from harness.report.pictures.quantities import Quantity
from harness.report.pictures.sheet import Entry, Sheet, sheet
from harness.report.points import in_order, natural
from harness.report.style import Look
from harness.results.folder import load_trace, trace_path
from harness.results.row import Row, ok_rows
from harness.suites.suite import Picture

_HEIGHT = 3.6  # inches of the axes
_TIME = Quantity("seconds", "time since the start of the call", "s", False)
_CORES = Quantity("cpu_cores_used", "CPU cores in use", "", True)


@dataclass(frozen=True)
class _Trace:
    """One run: the value of its colour's column, what it is, and its cores over time."""

    colour: str
    says: str
    series: list[tuple[float, float]]


def draw_traces(picture: Picture, rows: Sequence[Row], folder: Path) -> tuple[Sheet, str] | None:
    """Return the sheet and its caption from the traces of a run's folder; None where no chosen run has one."""
    good = ok_rows(chosen(picture, rows))
    last = max((row.pass_number for row in good), default=0)
    wanted = [row for row in good if row.pass_number == last]
    traces = _traces(picture, wanted, folder)
    if not traces:
        return None
    names = sorted({trace.colour for trace in traces}, key=natural)
    looks = style.looks(names)
    note = f"one run each of pass {last}; each point is the mean since the sample before it, some 50 ms earlier"
    drawn = sheet(picture.title, note, [_entry(name, looks[name]) for name in names], 0.85, 0.3, _HEIGHT)
    every = [point for trace in traces for point in trace.series]
    scales.linear(drawn.axes, "y", [cores for _, cores in every], _CORES)
    scales.linear(drawn.axes, "x", [seconds for seconds, _ in every], _TIME)
    for trace in traces:
        look = looks[trace.colour]
        line = drawn.axes.plot(*zip(*trace.series, strict=True), color=look.colour, linestyle=look.dash, linewidth=1.3)
        drawn.says(trace.says, *line)
    more = " Runs too short for two samples have no line." if len(traces) < len(wanted) else ""
    return drawn, f"CPU time of the worker process, sampled from outside; {note}.{more}"


def _traces(picture: Picture, rows: Sequence[Row], folder: Path) -> list[_Trace]:
    found = []
    for row in sorted(rows, key=lambda row: (row.transport, in_order(row.parameters))):
        if series := load_trace(trace_path(folder, row.order, row.transport)):
            says = "\n".join(part for part in (row.transport, row.label, f"{row.seconds:.3g} s") if part)
            found.append(_Trace(value(row, picture.colour), says, series))
    return found


def _entry(name: str, look: Look) -> Entry:
    return Entry(Line2D([], [], color=look.colour, linestyle=look.dash), name or "none")
