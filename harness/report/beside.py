"""The author's figures at the author's sizes beside ours at the size nearest to them, as multiples of one transport.

Machines and sizes differ, so that seconds and bytes of the two sides cannot be compared; how many times more than the
first transport of the author's list another one needs can.
"""

import math
from collections.abc import Callable, Iterable, Sequence

from harness.model import Status
from harness.report.cells import as_printed, gigabytes, megabytes, significant, times
from harness.report.details import DETAILS, author_rows
from harness.report.points import described
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.text_tables import samples, titled
from harness.suites.suite import PublishedFigure

_HEAD = ("transport", "parameters")
_FIGURES = ("data GB", "peak MB", "seconds")  # of the author's side, then of ours


def beside(summaries: Sequence[Summary], published: Iterable[PublishedFigure]) -> list[Table]:
    """Return a table for each experiment of the run that has author's figures at a number of bytes, or of details."""
    found = []
    known = list(published)
    for experiment in dict.fromkeys(summary.experiment for summary in summaries):
        cases = [case for case in summaries if case.experiment == experiment]
        figures = [figure for figure in known if figure.experiment in (None, experiment)]
        if sized := [figure for figure in figures if figure.bytes is not None]:
            found.append(_table(experiment, cases, sized))
        if rows := author_rows(cases, figures):
            found.append(_details(experiment, cases, rows))
    return found


def _details(experiment: str, cases: list[Summary], rows: list[tuple[str, ...]]) -> Table:
    return Table(
        title=f"{titled(experiment)}: {DETAILS}, the author's and ours",
        head=("transport", "what", "author's", "here"),
        rows=tuple(rows),
        notes=(f"here: medians of {samples(cases)}, one for each point; machines and amounts of data differ",),
        wide=frozenset({0, 1}),
    )


def _table(experiment: str, cases: list[Summary], figures: list[PublishedFigure]) -> Table:
    first = figures[0].description
    rows = [_row(figure, first, cases, figures) for figure in figures]
    head = (*_HEAD, *(f"author's\n{name}" for name in _FIGURES), *(f"here\n{name}" for name in _FIGURES))
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]  # what nobody says has no column
    return Table(
        title=f"{titled(experiment)}: the author's figures, and ours at the nearest size there is",
        head=tuple(head[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        notes=(
            f"× is the multiple of {first} on the same side: machines and sizes differ, so compare these; here: the "
            f"median of seconds and the largest peak of {samples(cases)}, the author's: means",
        ),
        wide=frozenset({0, 1} if 1 in kept else {0}),
    )


def _row(figure: PublishedFigure, first: str, cases: list[Summary], figures: list[PublishedFigure]) -> tuple[str, ...]:
    same = (figure.bytes, figure.parameters)
    their_first = next((f for f in figures if f.description == first and (f.bytes, f.parameters) == same), None)
    label = _nearest(figure, cases)
    ours, our_first = (_case(cases, description, label) for description in (figure.description, first))
    return (
        figure.description,
        ", ".join(described(*part) for part in figure.parameters.items()),
        as_printed(None if figure.bytes is None else figure.bytes / 1e9),
        _multiple(figure.peak_rss_bytes, their_first.peak_rss_bytes if their_first else None, _printed_megabytes),
        _multiple(figure.mean_seconds, their_first.mean_seconds if their_first else None, as_printed),
        *_ours(ours, our_first),
    )


def _ours(ours: Summary | None, first: Summary | None) -> tuple[str, str, str]:
    if ours is None:
        return "", "", "not run"
    if not ours.n:
        return gigabytes(ours.bytes), "", str(ours.status)
    peak, median = (first.peak_rss_bytes, first.median_seconds) if first else (None, None)
    mark = "" if ours.status == Status.OK else "*"
    return (
        gigabytes(ours.bytes),
        _multiple(ours.peak_rss_bytes, peak, megabytes),
        _multiple(ours.median_seconds, median, significant) + mark,
    )


def _nearest(figure: PublishedFigure, cases: list[Summary]) -> str | None:
    """Return the label of the point whose bytes are nearest to the author's by their ratio; None where none is known.

    Of two that are equally near the larger one counts: it says more about sizes that were not run.
    """
    asked = figure.parameters.items()
    known = [(case.bytes, case.label) for case in cases if case.bytes and asked <= case.parameters.items()]
    if not known or not figure.bytes:
        return None
    wanted = math.log(figure.bytes)
    return min(known, key=lambda one: (abs(math.log(one[0]) - wanted), -one[0]))[1]


def _case(cases: list[Summary], description: str, label: str | None) -> Summary | None:
    return next((c for c in cases if c.published_row == description and c.label == label), None)


def _multiple(value: float | None, of: float | None, text: Callable[[float], str]) -> str:
    return "" if value is None else f"{text(value)} {times(value / of if of else None)}".rstrip()


def _printed_megabytes(value: float) -> str:
    return as_printed(value / 1e6)
