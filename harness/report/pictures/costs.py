"""Costs: one mark a transport at what a call costs and what each row adds, on logarithmic axes, with both intervals."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from harness.report import style
from harness.report.cells import significant, times
from harness.report.costs import Cost, costs
from harness.report.curves import directions
from harness.report.intervals import Interval
from harness.report.pictures import scales
from harness.report.pictures.cases import chosen
from harness.report.pictures.quantities import Quantity, text
from harness.report.pictures.scatter import HEIGHT, mark
from harness.report.pictures.sheet import Entry, Sheet, sheet
from harness.report.style import Look
from harness.report.summarising import summarise
from harness.results.row import Row
from harness.suites.suite import Picture

FIXED = Quantity("fixed", "fixed cost of a call", "s", False)
MARGINAL = Quantity("marginal", "marginal cost of a row", "s", False)
WHAT = "straight lines through the medians over the rows, bars: 95 % intervals of both costs"


def found_costs(picture: Picture, rows: Sequence[Row]) -> list[Cost]:
    """Return the costs of the transports that a picture is about."""
    about = chosen(picture, rows)
    return costs(directions(about, summarise(about, ()), {row.experiment for row in about}))


def draw_costs(picture: Picture, second: str, found: Sequence[Cost]) -> Sheet:
    """Draw one mark for each cost: left is a cheap call, below are cheap rows."""
    looks = style.looks(one.transport for one in found)
    legend = [_entry(name, look) for name, look in looks.items()]
    drawn = sheet(picture.title, second, legend, 0.95, 0.3, HEIGHT)
    for side, what, ends in (
        ("x", FIXED, [(one.fixed, one.fixed_interval) for one in found]),
        ("y", MARGINAL, [(one.marginal, one.marginal_interval) for one in found]),
    ):
        values = [value for middle, interval in ends for value in (middle, *(interval or ()))]
        scales.logarithmic(drawn.axes, "x" if side == "x" else "y", values, what)
    for one in found:
        x, y = (one.fixed, one.fixed_interval), (one.marginal, one.marginal_interval)
        mark(drawn, x, y, looks[one.transport], _says(one))
    return drawn


def _entry(name: str, look: Look) -> Entry:
    return Entry(Line2D([], [], color=look.colour, marker=look.marker, linestyle="none"), name)


def _says(one: Cost) -> str:
    lines = [
        one.transport,
        f"{FIXED.name}: {_with(one.fixed, one.fixed_interval)}",
        f"{MARGINAL.name}: {_with(one.marginal, one.marginal_interval)}",
        f"the line is off by {times(one.off)} at most, of {', '.join(f'{rows:,}' for rows in one.sizes)} rows",
    ]
    if one.half_rate_rows is not None:
        lines.append(f"half of the largest rate at {significant(float(f'{one.half_rate_rows:.2g}'))} rows")
    return "\n".join(lines)


def _with(value: float, interval: Interval | None) -> str:
    return text(value, "s") + ("" if interval is None else f" ({' to '.join(text(end, 's') for end in interval)})")
