"""Lines: a figure over size or a parameter, one line for each value of one column and, drawn otherwise, of another."""

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from harness.model import LabError
from harness.report import style
from harness.report.pictures import scales
from harness.report.pictures.bounds import Bound, draw_bound, entry
from harness.report.pictures.cases import CaseMark, author_says, figures_of, has_mark
from harness.report.pictures.changes import WinnerChange, between, draw_change
from harness.report.pictures.changes import entry as change_entry
from harness.report.pictures.inset import inset
from harness.report.pictures.marks import PUBLISHED, published_saying, saying
from harness.report.pictures.quantities import Quantity, parameter_or_quantity, quantity, text
from harness.report.pictures.sheet import Entry, Sheet, sheet, width
from harness.report.style import Look
from harness.suites.suite import Picture, PublishedFigure

_HEIGHT = 4.3  # inches of the axes
_LEFT, _RIGHT = 0.85, 0.3  # inches beside them, at least
_NAME = 0.4  # inches of the left ones for the name of the axis and the marks of its ticks
_BETWEEN = 0.12  # inches between the labels of categories


@dataclass(frozen=True)
class Mark:
    """One mark of a line: where it is, how far its range reaches, what it says; `low` is None without a range."""

    x: float
    y: float
    low: float | None
    high: float | None
    says: str


@dataclass(frozen=True)
class Line:
    """One line: its marks from left to right, its look, and whether it is the author's.

    `bent` says that between the marks it is as crossings take it to be: seconds straight over rows.
    """

    marks: tuple[Mark, ...]
    look: Look
    published: bool = False
    bent: bool = False

    @property
    def path(self) -> tuple[list[float], list[float]]:
        """The points it is drawn through."""
        if not self.bent:
            return [mark.x for mark in self.marks], [mark.y for mark in self.marks]
        parts = [between((one.x, one.y), (other.x, other.y)) for one, other in pairwise(self.marks)]
        return [x for xs, _ in parts for x in xs], [y for _, ys in parts for y in ys]


def lines(
    picture: Picture,
    second: str,
    cases: Sequence[CaseMark],
    published: Sequence[PublishedFigure],
    looks: dict[str, Look],
    bounds: Sequence[Bound] = (),
    changes: Sequence[WinnerChange] = (),
) -> Sheet:
    """Draw the cases of each line joined, the author's figures dotted, `bounds` dashed and `changes` as upright lines.

    Raises LabError where two cases would stand at one place of a line.
    """
    what, along = quantity(picture.y), parameter_or_quantity(picture.x)
    drawable = [case for case in cases if has_mark(picture, case)]
    names = _categories(drawable)
    dashes: dict[str, Any] = dict(zip(sorted({case.dash for case in cases}), style.DASHES * len(cases), strict=False))
    found = []
    for (colour, dash), members in _members(drawable, picture).items():
        look = replace(looks[colour], dash=dashes[dash]) if picture.dash else looks[colour]
        marks = tuple(_mark(case, what, picture.statistic, names) for case in members)
        found.append(Line(marks, look, bent=picture.crossings))
        if theirs := _theirs(members, published, picture.x, what, along):
            found.append(Line(theirs, look, published=True))
    labels = _in_lines(names)
    legend = [*_legend(picture, cases, drawable, looks, dashes, found), *map(entry, bounds)]
    legend += [change_entry(changes)] if picture.crossings else []
    most = max((label.count("\n") + 1 for label in labels), default=1)
    limits = [y for bound in bounds for _, y in bound.points]
    left = _left([*limits, *(mark.y for line in found for mark in line.marks)], what) if picture.log else _LEFT
    drawn = sheet(picture.title, second, legend, left, _RIGHT, _HEIGHT, most)
    _scales(drawn.axes, found, what, along, picture.log, labels, limits)
    for line in found:
        _line(drawn, drawn.axes, line)
    for bound in bounds:
        draw_bound(drawn, bound)
    for change in changes:
        draw_change(drawn, change)
    if picture.inset and not (names or picture.log):
        _small_picture(drawn, found, what, along)
    return drawn


def _small_picture(drawn: Sheet, found: Sequence[Line], what: Quantity, along: Quantity) -> None:
    """Draw the same lines once more into a corner, on logarithmic axes."""
    axes = inset(drawn.axes, [[(mark.x, mark.y) for mark in line.marks] for line in found])
    _scales(axes, found, replace(what, name=""), replace(along, name=""), True, ())
    for line in found:
        _line(drawn, axes, line, small=True)


def _left(heights: Sequence[float], what: Quantity) -> float:
    """Return the inches left of a logarithmic axis: each of its ticks has a unit and is as long as a mark's text."""
    return max(_LEFT, _NAME + max((width(scales.tick(y, what), style.TEXT) for y in heights), default=0.0))


def _categories(cases: Sequence[CaseMark]) -> tuple[str, ...]:
    """Return the categories on the x axis, numbers first; none where every place is a number."""
    places = {case.place for case in cases}
    if all(isinstance(place, float) for place in places):
        return ()
    numbers = sorted(place for place in places if isinstance(place, float))
    return (*(f"{number:,.15g}" for number in numbers), *sorted(place for place in places if isinstance(place, str)))


def _x(case: CaseMark, names: Sequence[str]) -> float:
    if not names:
        return float(case.place or 0.0)
    return float(names.index(case.place if isinstance(case.place, str) else f"{case.place:,.15g}"))


def _members(cases: Sequence[CaseMark], picture: Picture) -> dict[tuple[str, str], list[CaseMark]]:
    """Return the cases of each line from left to right. Two at one place of a line are refused."""
    members: dict[tuple[str, str], list[CaseMark]] = defaultdict(list)
    taken: dict[tuple[str, str, object], CaseMark] = {}
    for case in cases:
        place = (case.colour, case.dash, case.place)
        if (other := taken.setdefault(place, case)) is not case:
            raise LabError(
                f"picture {picture.name}: expected one case for each place on a line, found two at the same "
                f"{picture.x}: {_case(other)} and {_case(case)}; set `where`, `colour` or `dash` to tell them apart"
            )
        members[case.colour, case.dash].append(case)
    # A set of cases has names or numbers as places; where it has both, they are all categories.
    return {
        key: sorted(members[key], key=lambda case: (isinstance(case.place, str), case.place)) for key in sorted(members)
    }


def _case(case: CaseMark) -> str:
    return f"{case.transport} [{case.experiment}: {case.label}]"


def _mark(case: CaseMark, what: Quantity, statistic: str, names: Sequence[str]) -> Mark:
    assert case.y  # only such cases are drawn
    low, high = (case.y.low, case.y.high) if case.y.n > 1 else (None, None)
    return Mark(_x(case, names), case.y.middle, low, high, saying(case, [(case.y, what)], statistic))


def _theirs(
    members: Sequence[CaseMark], published: Sequence[PublishedFigure], column: str, what: Quantity, along: Quantity
) -> tuple[Mark, ...]:
    """Return the author's figures for the transports of a line, between our first and our last case of it."""
    if column not in ("rows", "bytes"):
        return ()
    places = [float(case.place) for case in members if isinstance(case.place, float)]
    found = {}
    for case in members:
        for figure in figures_of(case, published):
            x, y = getattr(figure, column), author_says(figure, what.column)
            if x is not None and y is not None and min(places) <= x <= max(places):
                says = published_saying(figure.description, text(x, along.unit), y, what)
                found[x] = Mark(float(x), y, None, None, says)
    return tuple(found[x] for x in sorted(found))


def _legend(
    picture: Picture,
    cases: Sequence[CaseMark],
    drawable: Sequence[CaseMark],
    looks: dict[str, Look],
    dashes: dict[str, Any],
    found: Sequence[Line],
) -> list[Entry]:
    entries = []
    for colour, look in looks.items():
        own = [case for case in cases if case.colour == colour]
        name = colour or "none"
        if any(case in drawable for case in own):
            dash: Any = "-" if picture.dash else look.dash
            entries.append(Entry(Line2D([], [], color=look.colour, marker=look.marker, linestyle=dash), name))
        elif own:
            outcomes = ", ".join(sorted({case.outcome for case in own if case.outcome}))
            entries.append(Entry(Line2D([], [], linestyle="none"), f"{name}: {outcomes or 'no place'}", quiet=True))
    if picture.dash:
        entries += [Entry(Line2D([], [], color=style.QUIET, linestyle=dash), name) for name, dash in dashes.items()]
    if any(line.published for line in found):
        open_dots = Line2D([], [], color=style.QUIET, linestyle=style.DOTTED, marker="o", markerfacecolor="white")
        entries.append(Entry(open_dots, PUBLISHED))
    return entries


def _in_lines(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of categories, broken at spaces where they would reach into each other."""
    room = (style.WIDTH - _LEFT - _RIGHT) / max(len(names), 1) - _BETWEEN
    letters = max(6, int(room / width("n", style.TEXT)))
    return tuple(textwrap.fill(name, letters, break_long_words=False, break_on_hyphens=False) for name in names)


def _scales(
    axes: Axes,
    found: Sequence[Line],
    what: Quantity,
    along: Quantity,
    log: bool,
    names: Sequence[str],
    bounds: Sequence[float] = (),
) -> None:
    marks = [mark for line in found for mark in line.marks]
    places = sorted({mark.x for mark in marks})
    heights = [*bounds, *(mark.y for mark in marks)] + [mark.high for mark in marks if mark.high is not None]
    if log:
        # A deviation may reach below zero, where a logarithmic axis has nothing: it then runs out of the picture.
        lows = [mark.low for mark in marks if mark.low is not None and mark.low > 0]
        scales.logarithmic(axes, "y", [*heights, *lows], what)
    else:
        scales.linear(axes, "y", heights, what)
    if names:
        scales.categories(axes, names)
        axes.set_xlabel(along.name)
    elif log:
        scales.logarithmic(axes, "x", places, along, places)
    else:
        scales.linear(axes, "x", places, along)


def _line(drawn: Sheet, axes: Axes, line: Line, small: bool = False) -> None:
    look, size = line.look, 4.0 if small else 5.5
    dash = style.DOTTED if line.published else look.dash
    axes.plot(
        *line.path,
        color=look.colour,
        linestyle=dash,
        linewidth=1.1 if small or line.published else 1.6,
        zorder=2.5 if line.published else 3,
    )
    face = "white" if line.published else look.colour
    for mark in line.marks:
        if mark.low is not None and mark.high is not None and mark.high > mark.low:
            reach = axes.plot([mark.x] * 2, [mark.low, mark.high], color=look.colour, linewidth=1.0, marker="_")
            drawn.says(mark.says, *reach, published=line.published)
        (dot,) = axes.plot(
            [mark.x],
            [mark.y],
            linestyle="none",
            marker=look.marker,
            color=look.colour,
            markerfacecolor=face,
            markersize=size,
            zorder=4,
            clip_on=False,
        )
        drawn.says(mark.says, dot, published=line.published)
