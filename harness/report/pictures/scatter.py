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

_HEIGHT = 4.6  # inches of the axes


def scatter(
    picture: Picture,
    second: str,
    points: Sequence[CaseMark],
    published: Sequence[PublishedFigure],
    looks: dict[str, Look],
) -> Sheet:
    """Draw one mark for each point that has both figures; the author's figures have no place here."""
    across, up = quantity(picture.x), quantity(picture.y)
    drawable = [point for point in points if has_mark(picture, point)]
    markers = dict(zip(sorted({point.dash for point in points}), style.MARKERS * len(points), strict=False))
    drawn = sheet(picture.title, second, _legend(picture, points, drawable, looks, markers), 0.85, 0.3, _HEIGHT)
    _scale(drawn.axes, "x", [point.x for point in drawable if point.x], across, picture.log)
    _scale(drawn.axes, "y", [point.y for point in drawable if point.y], up, picture.log)
    for point in drawable:
        marker = markers[point.dash] if picture.dash else looks[point.colour].marker
        _mark(
            drawn,
            point,
            looks[point.colour],
            marker,
            saying(point, [(point.x, across), (point.y, up)], picture.statistic),
        )
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
    points: Sequence[CaseMark],
    drawable: Sequence[CaseMark],
    looks: dict[str, Look],
    markers: dict[str, str],
) -> list[Entry]:
    entries = []
    for colour, look in looks.items():
        own = [point for point in points if point.colour == colour]
        if any(point in drawable for point in own):
            dot = Line2D([], [], color=look.colour, marker=look.marker, linestyle="none")
            entries.append(Entry(Patch(facecolor=look.colour) if picture.dash else dot, colour or "none"))
        elif own:
            outcomes = ", ".join(sorted({point.outcome for point in own if point.outcome})) or "no figure"
            entries.append(Entry(Line2D([], [], linestyle="none"), f"{colour or 'none'}: {outcomes}", quiet=True))
    if picture.dash:
        entries += [
            Entry(Line2D([], [], color=style.QUIET, marker=marker, linestyle="none"), name or "none")
            for name, marker in markers.items()
        ]
    return entries


def _mark(drawn: Sheet, point: CaseMark, look: Look, marker: str, says: str) -> None:
    assert point.x  # only points with both figures are drawn
    assert point.y
    thin: dict[str, Any] = {"color": look.colour, "linewidth": 0.9, "alpha": 0.7, "zorder": 2}
    drawn.axes.plot([point.x.low, point.x.high], [point.y.middle] * 2, **thin)
    drawn.axes.plot([point.x.middle] * 2, [point.y.low, point.y.high], **thin)
    (dot,) = drawn.axes.plot(
        [point.x.middle],
        [point.y.middle],
        linestyle="none",
        marker=marker,
        color=look.colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
        markersize=7,
        zorder=3,
        clip_on=False,
    )
    drawn.says(says, dot)
