"""Scatter: one mark for each case at two of its figures, the ranges of both as thin bars."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.report import style
from harness.report.pictures import scales
from harness.report.pictures.cases import CaseMark, Spread, has_mark
from harness.report.pictures.marks import saying
from harness.report.pictures.quantities import Quantity, quantity
from harness.report.pictures.sheet import Entry, Sheet, sheet
from harness.report.style import Look
from harness.suites.suite import Picture, PublishedFigure

HEIGHT = 4.6  # inches of the axes
Ends = tuple[float, float] | None  # of a figure: its range or interval


def scatter(
    picture: Picture,
    second: str,
    cases: Sequence[CaseMark],
    published: Sequence[PublishedFigure],
    looks: dict[str, Look],
) -> Sheet:
    """Draw one mark for each case that has both figures; the author's figures have no place here."""
    across, up = quantity(picture.x), quantity(picture.y)
    drawable = [case for case in cases if has_mark(picture, case)]
    markers = dict(zip(sorted({case.dash for case in cases}), style.MARKERS * len(cases), strict=False))
    drawn = sheet(picture.title, second, _legend(picture, cases, drawable, looks, markers), 0.85, 0.3, HEIGHT)
    _scale(drawn.axes, "x", [case.x for case in drawable if case.x], across, picture.log)
    _scale(drawn.axes, "y", [case.y for case in drawable if case.y], up, picture.log)
    for case in drawable:
        marker = markers[case.dash] if picture.dash else looks[case.colour].marker
        assert case.x  # only cases with both figures are drawn
        assert case.y
        x, y = ((one.middle, (one.low, one.high)) for one in (case.x, case.y))
        mark(drawn, x, y, looks[case.colour], saying(case, [(case.x, across), (case.y, up)], picture.statistic), marker)
    return drawn


def _scale(axes: Axes, side: scales.Side, spreads: Sequence[Spread], what: Quantity, log: bool) -> None:
    if log:
        # A deviation may reach below zero; it then runs out of a logarithmic axis.
        ends = [end for spread in spreads for end in (spread.low, spread.middle, spread.high)]
        scales.logarithmic(axes, side, [end for end in ends if end >= 0], what)
    else:
        scales.linear(axes, side, [spread.high for spread in spreads], what)


def _legend(
    picture: Picture,
    cases: Sequence[CaseMark],
    drawable: Sequence[CaseMark],
    looks: dict[str, Look],
    markers: dict[str, str],
) -> list[Entry]:
    entries = []
    for colour, look in looks.items():
        own = [case for case in cases if case.colour == colour]
        if any(case in drawable for case in own):
            dot = Line2D([], [], color=look.colour, marker=look.marker, linestyle="none")
            entries.append(Entry(Patch(facecolor=look.colour) if picture.dash else dot, colour or "none"))
        elif own:
            outcomes = ", ".join(sorted({case.outcome for case in own if case.outcome})) or "no figure"
            entries.append(Entry(Line2D([], [], linestyle="none"), f"{colour or 'none'}: {outcomes}", quiet=True))
    if picture.dash:
        entries += [
            Entry(Line2D([], [], color=style.QUIET, marker=marker, linestyle="none"), name or "none")
            for name, marker in markers.items()
        ]
    return entries


def mark(
    drawn: Sheet, x: tuple[float, Ends], y: tuple[float, Ends], look: Look, says: str, marker: str | None = None
) -> None:
    """Draw a mark at two figures, and thin bars from end to end of both where they have ends."""
    thin: dict[str, Any] = {"color": look.colour, "linewidth": 0.9, "alpha": 0.7, "zorder": 2}
    (across, ends_across), (up, ends_up) = x, y
    if ends_across and ends_up:
        drawn.axes.plot(ends_across, [up] * 2, **thin)
        drawn.axes.plot([across] * 2, ends_up, **thin)
    (dot,) = drawn.axes.plot(
        [across],
        [up],
        linestyle="none",
        marker=marker or look.marker,
        color=look.colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
        markersize=7,
        zorder=3,
        clip_on=False,
    )
    drawn.says(says, dot)
