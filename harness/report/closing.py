"""What a run ends with on a terminal: its answers, on one screen. All tables are in the report."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, Group, RenderableType
from rich.padding import Padding

from harness.report import answer_tables, recommendation
from harness.report.answers import answers
from harness.report.page_tables import leaders
from harness.report.recommendation import Recommendation
from harness.report.sections import sentences
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.tables import Sentence, fits, printable, tables
from harness.results.row import Row
from harness.suites.suite import Suite

LINES = 40  # of one screen
_FEWER_ROLES = (
    answer_tables.ROLES,
    (answer_tables.FASTEST, answer_tables.WHOLE, answer_tables.USUAL),
    (answer_tables.FASTEST, answer_tables.USUAL),
)


@dataclass(frozen=True)
class Closing:
    """Tables for rich to print, and the sentences below them."""

    tables: list[Group]
    sentences: list[str]


def closing(
    suite: Suite,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    width: int,
    room: int = LINES,
    short: bool = False,
) -> Closing:
    """Return what a run ends with: as much as fits into `room` lines of `width` columns, and the answers in any case.

    The answers come with fewer roles and columns where there is little room. A suite that is not about frames has its
    fastest and leanest, and its conclusions. Where all tables fit, as of a few transports, they come first, unless a
    `short` one is asked for.
    """
    said = sentences(suite, rows, summaries)
    texts = list(_shapes(suite, rows, summaries))
    shapes = [printable(table, width) for table in [one for one in texts if fits(one, width)] or texts[-1:]]
    if not short:
        whole = [*tables(summaries, width, suite.published), *shapes[:1]]
        # A table has a title and a head, every case a row: hundreds of them need not be laid out to know.
        if 5 * len(whole) + len(summaries) <= room and _heights(whole, width) + lines(said, width) <= room:
            return Closing(whole, said)
    left = room - min(lines(said, width), room // 2)
    fitting = (shape for least in (left, room - 1) for shape in shapes if _heights([shape], width) <= least)
    kept = [next(fitting, None) or _shortened(texts[-1], width, left)] if texts else []
    return Closing(kept, _cut(said, width, room - _heights(kept, width), "report.md"))


def recommended(found: Recommendation, width: int, room: int = LINES) -> Closing:
    """Return the screen of a race: the answer, its table, and as much of what else there is to say as fits."""
    answer, pip, *more = recommendation.opening(found)
    title = Sentence(recommendation.title(found), "bold")
    opened: list[RenderableType] = [title, "", Sentence(answer, "bold")]
    opened += [Padding(Sentence(pip), (0, 0, 0, 5), expand=False), *map(Sentence, more)]
    table = Group(*opened, printable(recommendation.table(found), width))
    left = room - _heights([table], width)
    return Closing([table], _cut(recommendation.sentences(found), width, left, "report.md"))


def _shapes(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary]) -> Iterator[Table]:
    """Yield the answers in ever smaller shapes: fewer columns first, then fewer roles."""
    if suite.answers is None:
        if found := leaders(summaries):
            yield from _ever_smaller(found)
        return
    if not (found_answers := answers(suite.answers, rows, summaries)):
        return
    for roles in _FEWER_ROLES:
        for ids in (True, False):
            yield from _ever_smaller(answer_tables.in_one(found_answers, roles, ids))


def _ever_smaller(table: Table) -> Iterator[Table]:
    for count in range(len(table.droppable) + 1):
        yield _without(table, [place for group in table.droppable[:count] for place in group])


def _shortened(table: Table, width: int, room: int) -> Group:
    """Return the first rows of a table, as many as fit, and one at least."""
    count = len(table.rows)
    while True:
        title = f"{table.title}: {count} of {len(table.rows)} lines, all are in report.md"
        shown = printable(replace(table, title=title, rows=table.rows[:count]), width)
        if count == 1 or _heights([shown], width) <= room:
            return shown
        count -= 1


def _without(table: Table, places: Sequence[int]) -> Table:
    """Return a table without some of its columns, which is not to lose others."""
    kept = [place for place in range(len(table.head)) if place not in places]
    return replace(
        table,
        head=tuple(table.head[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in table.rows),
        wide=frozenset(new for new, place in enumerate(kept) if place in table.wide),
        names=frozenset(new for new, place in enumerate(kept) if place in table.names),
        droppable=(),
    )


def _heights(tables: Sequence[RenderableType], width: int) -> int:
    console = Console(width=width, file=io.StringIO())
    return sum(len(console.render_lines(table, pad=False)) for table in tables)


def lines(sentences: Sequence[str], width: int) -> int:
    """Return how many lines of a terminal some sentences take."""
    return _heights([Sentence(text) for text in sentences], width)


def _cut(sentences: Sequence[str], width: int, room: int, file: str) -> list[str]:
    """Return as many sentences as fit, and how many are left out."""
    if lines(sentences, width) <= max(room, 0):
        return list(sentences)
    fit = max((count for count in range(len(sentences)) if lines(sentences[:count], width) < room), default=0)
    return [*sentences[:fit], f"what else this run shows, in {len(sentences) - fit} sentences: {file}"]
