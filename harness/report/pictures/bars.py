"""Horizontal bars: one for each case, the best on top, with the range of its runs and the author's figure."""

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from harness.report import style
from harness.report.pictures import scales
from harness.report.pictures.cases import CaseMark, author_says, figures_of
from harness.report.pictures.marks import DIAMOND, PUBLISHED, published_saying, saying
from harness.report.pictures.quantities import Quantity, quantity, text
from harness.report.pictures.sheet import Entry, Sheet, sheet, width
from harness.report.style import Look
from harness.suites.suite import Picture, PublishedFigure

_LABEL = 46  # characters of a transport's name in one line


class _OfIdentifiers(textwrap.TextWrapper):
    """Breaks lines at spaces, and after a dot or underscore."""

    wordsep_simple_re = re.compile(r"(\s+)|(?<=[._])(?=\w)")


_BETWEEN, _LINE = 0.14, 0.125  # inches for each bar: between two, and for each line of the longest label
_GAP = 0.12  # inches between the axes and what is written beside them


def bars(
    picture: Picture,
    second: str,
    cases: Sequence[CaseMark],
    published: Sequence[PublishedFigure],
    looks: dict[str, Look],
) -> Sheet:
    """Draw one bar for each case; a case without a figure keeps its place at the bottom and says why.

    With `log` there is no bar, whose length would mean nothing, but a dot.
    """
    what = quantity(picture.y)
    ordered = sorted(cases, key=lambda case: _place(case, what))
    authors = [_author(case, what, published) for case in ordered]
    labels = [in_even_lines(label) for label in _labels(ordered)]
    values = [_value(case, what) for case in ordered]
    head = picture.statistic.split()[0]  # "median" or "mean"
    drawn = sheet(
        picture.title,
        second,
        _legend(ordered, looks, any(author is not None for author in authors)),
        left=max(width(label, style.SMALL) for label in labels) + 0.15 + _GAP,
        right=max(width(value, style.SMALL) for value in (*values, head)) + 0.15 + _GAP,
        height=len(ordered) * (_BETWEEN + _LINE * max(label.count("\n") + 1 for label in labels)) + 0.1,
    )
    _axes(drawn, what, picture, ordered, authors)
    _beside(drawn, ordered, labels, values, head)
    for place, (case, author) in enumerate(zip(ordered, authors, strict=True)):
        says = saying(case, [(case.y, what)], picture.statistic)
        _bar(drawn, place, case, says, picture.log, looks[case.colour])
        if author is not None:
            (mark,) = drawn.axes.plot([author], [place], zorder=4, clip_on=False, **DIAMOND)
            drawn.says(published_saying(case.name, "", author, what), mark, published=True)
    return drawn


def _place(case: CaseMark, what: Quantity) -> tuple[bool, float, str, str]:
    middle = case.y.middle if case.y else 0.0
    return case.y is None, -middle if what.more_is_better else middle, case.name, case.label


def _labels(cases: Sequence[CaseMark]) -> list[str]:
    """Name each case by its transport, and by its conditions too where a transport stands there under several.

    The system that all identifiers begin with is left out: the title says it.
    """
    systems = {case.transport.partition(".")[0] for case in cases}
    prefix = f"{systems.pop()}." if len(systems) == 1 else ""
    names = [case.name.removeprefix(prefix) for case in cases]
    return [
        f"{name} [{case.experiment}: {case.label}]" if names.count(name) > 1 else name
        for name, case in zip(names, cases, strict=True)
    ]


def in_even_lines(label: str) -> str:
    """Break a label into as few lines as it needs, of about the same length."""
    lines = len(_wrapped(label, _LABEL))
    least = math.ceil(len(label) / max(lines, 1))
    tries = (_wrapped(label, longest) for longest in range(max(least, 1), _LABEL + 1))
    return "\n".join(next((found for found in tries if len(found) <= lines), [label]))


def _wrapped(label: str, longest: int) -> list[str]:
    words = " " in label.partition(" [")[0]  # as an author names a transport
    wrapper = textwrap.TextWrapper if words else _OfIdentifiers
    return wrapper(longest, break_on_hyphens=False).wrap(label)


def _value(case: CaseMark, what: Quantity) -> str:
    """Return the figure that stands beside a bar; the unit of counts stands at the axis only."""
    if case.y is None:
        return case.outcome
    figure = text(case.y.middle, what.unit).removesuffix(what.unit if "/" in what.unit else "").strip()
    return f"{figure} ({case.failed})" if case.failed else figure


def _author(case: CaseMark, what: Quantity, published: Sequence[PublishedFigure]) -> float | None:
    found = [
        author_says(figure, what.column)
        for figure in figures_of(case, published)
        if figure.rows in (None, case.rows) and figure.bytes is None
    ]
    return found[0] if found else None


def _legend(cases: Sequence[CaseMark], looks: dict[str, Look], authors: bool) -> list[Entry]:
    with_bars = {case.colour for case in cases if case.y}
    entries = [
        Entry(Patch(facecolor=look.colour, hatch=look.hatch, linewidth=0), value or "none")
        for value, look in looks.items()
        if value in with_bars
    ]
    return [*entries, Entry(Line2D([], [], **DIAMOND), PUBLISHED)] if authors else entries


def _bar(drawn: Sheet, place: int, case: CaseMark, says: str, log: bool, look: Look) -> None:
    if case.y is None:
        return
    if log:
        (bar,) = drawn.axes.plot([case.y.middle], [place], "o", color=look.colour, markersize=8, zorder=2)
    else:
        (bar,) = drawn.axes.barh(
            [place], [case.y.middle], height=0.68, color=look.colour, hatch=look.hatch, linewidth=0
        )
    drawn.says(says, bar)
    if case.y.n > 1:
        reach = (case.y.low, case.y.high)
        # White below black: it is seen on a dark bar, too.
        drawn.axes.plot(reach, [place, place], color="white", linewidth=2.6)
        (whisker,) = drawn.axes.plot(
            reach, [place, place], color=style.INK, linewidth=1.1, marker="|", markersize=6, clip_on=False
        )
        drawn.says(says, whisker)


def _axes(
    drawn: Sheet, what: Quantity, picture: Picture, cases: Sequence[CaseMark], authors: Sequence[float | None]
) -> None:
    axes = drawn.axes
    spreads = [case.y for case in cases if case.y]
    reached = [spread.high for spread in spreads] + [author for author in authors if author is not None]
    axes.set_ylim(len(cases) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    if picture.log:
        scales.logarithmic(axes, "x", [*reached, *(max(spread.low, 0.0) for spread in spreads)], what)
    else:
        scales.linear(axes, "x", reached, what)
    better = "more is better" if what.more_is_better else "less is better"
    axes.set_xlabel(f"{axes.get_xlabel()}: {better}")


def _beside(drawn: Sheet, cases: Sequence[CaseMark], labels: Sequence[str], values: Sequence[str], head: str) -> None:
    """Write the transports to the left of the axes and their figures to the right, where no mark can cover them."""
    axes = drawn.axes
    axes.set_yticks(range(len(cases)), labels, size=style.SMALL, linespacing=1.1)
    axes.tick_params(axis="y", length=0, pad=_GAP * 72)
    beside: dict[str, Any] = {"xytext": (_GAP * 72, 0), "textcoords": "offset points", "size": style.SMALL}
    axes.annotate(head, (1, 1), xycoords="axes fraction", va="bottom", color=style.QUIET, **beside)
    for place, (case, value, label) in enumerate(zip(cases, values, axes.get_yticklabels(), strict=True)):
        written = axes.annotate(value, (1, place), xycoords=("axes fraction", "data"), va="center", **beside)
        if case.y is None:
            label.set_color(style.QUIET)
            written.set(color=style.QUIET, style="italic")
            drawn.says(saying(case, (), ""), written)
