"""Where the fastest transport of a picture of lines over rows changes: upright lines with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from harness.model import LabError
from harness.report import style
from harness.report.crossing_tables import ends, many
from harness.report.crossings import Winners, winners
from harness.report.curves import directions
from harness.report.intervals import Interval
from harness.report.pictures.sheet import Entry, Sheet
from harness.report.summarising import summarise
from harness.results.row import Row
from harness.suites.suite import Picture

LEGEND = "the fastest exact transport changes here; shaded: the interval of that"
NONE = "no change of the fastest exact transport is shown between these rows"
_STEPS = 24  # points of a line between two marks
_SHADE = 0.35


@dataclass(frozen=True)
class WinnerChange:
    """A crossing that has an interval and lies within what was run; `name` stands beside it."""

    rows: float
    interval: Interval
    name: str
    says: str


def changes(picture: Picture, about: Sequence[Row]) -> list[WinnerChange]:
    """Return the changes of what a picture is about; none unless it asks.

    Raises LabError where that is more than one direction, whose transports do not compete.
    """
    if not picture.crossings:
        return []
    found = directions(about, summarise(about, ()), {row.experiment for row in about})
    if len(found) > 1:
        raise LabError(
            f"picture {picture.name}: expected one database, operation, frame and combination of parameters for its "
            f"crossings, found {len(found)}; set `where`"
        )
    won = winners(found[0]) if found else None
    return _changes(won) if won else []


def _changes(won: Winners) -> list[WinnerChange]:
    made = []
    for one in won.crossings:
        if one.interval and one.rows and not math.isinf(one.rows):
            sure = f"95 % interval: {ends(one.interval, won)}"
            doubt = "" if one.shown else "\nwhich the runs do not show"
            says = f"{one.before}\ngives way to {one.after}\nat {many(one.rows, won)} ({sure}){doubt}"
            made.append(WinnerChange(one.rows, one.interval, many(one.rows, won), says))
    return made


def entry(found: Sequence[WinnerChange]) -> Entry:
    """Return the line of the legend for changes, or that there are none."""
    if not found:
        return Entry(Line2D([], [], linestyle="none"), NONE, quiet=True)
    return Entry(Line2D([], [], color=style.INK, linestyle=style.DOTTED, linewidth=1.4), LEGEND)


def draw_change(drawn: Sheet, change: WinnerChange) -> None:
    """Draw a change into axes whose limits are set."""
    axes = drawn.axes
    low, high = axes.get_xlim()
    at = [min(max(end, low), high) for end in change.interval]  # open ends reach to the end of the picture
    shade = axes.axvspan(*at, color=style.LINES, alpha=_SHADE, zorder=1, linewidth=0)
    drawn.says(change.says, shade)
    line = axes.axvline(change.rows, color=style.INK, linestyle=style.DOTTED, linewidth=1.4, zorder=2.1)
    words = axes.text(
        change.rows,
        0.02,
        f" {change.name}",
        transform=axes.get_xaxis_transform(),
        size=style.SMALL,
        ha="left",
        va="bottom",
        color=style.INK,
    )
    drawn.says(change.says, line, words)


def between(one: tuple[float, float], other: tuple[float, float]) -> tuple[list[float], list[float]]:
    """Return the rows and rates from one mark to another, the seconds between them being straight over the rows.

    That is what crossings are found with: straight lines between marks on logarithmic axes would cross elsewhere.
    """
    (first, fast), (last, faster) = one, other
    rows = np.geomspace(first, last, _STEPS)
    seconds = np.interp(rows, [first, last], [first / fast, last / faster])
    return list(rows), list(rows / seconds)
