"""The fastest bound of what a picture of lines is about, at as many rows: a dashed line that nobody passes."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.lines import Line2D

from harness.model import Origin
from harness.report import style
from harness.report.pictures.cases import figure
from harness.report.pictures.quantities import quantity, text
from harness.report.pictures.sheet import Entry, Sheet
from harness.report.ranks import BOUNDED_BY
from harness.results.row import Row, ok_rows
from harness.suites.suite import Picture

_DASHES: tuple[Any, ...] = ((0, (6, 3)), (0, (2, 2)), (0, (8, 2, 2, 2)))
_LOOK: dict[str, Any] = {"color": style.INK, "linewidth": 1.4}


@dataclass(frozen=True)
class Bound:
    """The bounds of one system: the fastest at each number of rows, as (rows, figure), and what each says.

    `along` tells that the axis is one of rows; else each is a line over the whole axis.
    """

    name: str
    dash: Any
    along: bool
    points: tuple[tuple[int, float], ...]
    says: tuple[str, ...]


def bounds(picture: Picture, about: Sequence[Row], rows: Sequence[Row]) -> list[Bound]:
    """Return the bounds among all rows for the chosen ones (`about`), by system; none unless the picture asks."""
    if not picture.limit:
        return []
    wanted = {(row.experiment, row.system, BOUNDED_BY.get(row.operation), row.rows) for row in about}
    cases: dict[tuple[str, str], dict[int, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    for row in ok_rows(rows):
        asked = (row.experiment, row.system, row.operation, row.rows) in wanted
        if asked and row.rows and row.origin == Origin.LIMIT and (found := figure(row, picture.y)) is not None:
            cases[row.system, row.operation][row.rows].setdefault(row.transport, []).append(found)
    return [_bound(picture, cases[key], _DASHES[place % len(_DASHES)]) for place, key in enumerate(sorted(cases))]


def _bound(picture: Picture, cases: dict[int, dict[str, list[float]]], dash: Any) -> Bound:
    what = quantity(picture.y)
    names, points, says = [], [], []
    for size, transports in sorted(cases.items()):
        medians = {name: statistics.median(figures) for name, figures in sorted(transports.items())}
        best = (max if what.more_is_better else min)(medians, key=medians.__getitem__)
        names.append(best)
        points.append((size, medians[best]))
        figures = f"median {what.name}: {text(medians[best], what.unit)} (n = {len(transports[best])})"
        says.append(f"bound: {best}\n{size:,} rows\n{figures}")
    name = f"bound: {', '.join(dict.fromkeys(names))}"
    return Bound(name, dash, picture.x == "rows", tuple(points), tuple(says))


def entry(bound: Bound) -> Entry:
    """Return the line of the legend for a bound."""
    return Entry(Line2D([], [], linestyle=bound.dash, **_LOOK), bound.name)


def draw_bound(drawn: Sheet, bound: Bound) -> None:
    """Draw a bound into axes whose limits are set."""
    if bound.along:
        drawn.axes.plot(*zip(*bound.points, strict=True), linestyle=bound.dash, zorder=2.2, **_LOOK)
    for (size, height), said in zip(bound.points, bound.says, strict=True):
        if bound.along:
            (mark,) = drawn.axes.plot([size], [height], marker="_", markersize=12, clip_on=False, **_LOOK)
        else:
            mark = drawn.axes.axhline(height, linestyle=bound.dash, zorder=2.2, **_LOOK)
        drawn.says(said, mark)
