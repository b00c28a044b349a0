"""The grids of a suite's pictures as tables of texts and as sentences: for whoever hears or copies them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.report.text_tables import TextTable
from harness.results.row import Row
from harness.suites.suite import Suite

if TYPE_CHECKING:
    from harness.report.pictures.outcomes import Outcomes


def tables(suite: Suite, rows: Sequence[Row]) -> list[TextTable]:
    """Return a table for each grid among the pictures of a suite that has rows."""
    return [_table(title, found) for title, found in _grids(suite, rows)]


def said(suite: Suite, rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each grid: how many transports are right wherever they were tried, and who is wrong."""
    return [_sentence(title, found) for title, found in _grids(suite, rows)]


def _grids(suite: Suite, rows: Sequence[Row]) -> Iterator[tuple[str, Outcomes]]:
    wanted = [picture for picture in suite.pictures if picture.form == "grid"]
    if not wanted:
        return
    from harness.report.pictures.outcomes import outcomes  # with it comes matplotlib, which takes a second

    for picture in wanted:
        if (found := outcomes(picture, rows)).lines:
            yield picture.title, found


def _table(title: str, found: Outcomes) -> TextTable:
    return TextTable(
        title=title,
        head=("transport", *found.heads),
        rows=tuple((line.name, *(cell.marked if cell else "" for cell in line.cells)) for line in found.lines),
        notes=tuple(f"{one.mark} {one.meaning}" for one in found.verdicts if one.mark),
        wide=frozenset(range(len(found.heads) + 1)),
    )


def _sentence(title: str, found: Outcomes) -> str:
    from harness.report.pictures.outcomes import Verdict

    verdicts = {line.name: {cell.verdict for cell in line.cells if cell} - {Verdict.UNTRIED} for line in found.lines}
    tried = {name: of_line for name, of_line in verdicts.items() if of_line}
    right = sum(of_line == {Verdict.RIGHT} for of_line in tried.values())
    parts = [f"{title}: {right} of {len(tried)} transports right"]
    for verdict, words in ((Verdict.WRONG, "rows too many or missing"), (Verdict.GAVE_UP, "gave up or ended")):
        if names := [name for name, of_line in tried.items() if verdict in of_line]:
            parts.append(f"{words}: {', '.join(names)}")
    return "; ".join(parts)
