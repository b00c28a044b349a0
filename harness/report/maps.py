"""The maps of winners among a suite's pictures as tables of texts: for whoever hears or copies them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.report.ranks import UNSURE
from harness.report.text_tables import TextTable
from harness.results.row import Row
from harness.suites.suite import Suite

if TYPE_CHECKING:
    from harness.report.pictures.winners import WinnersMap


def tables(suite: Suite, rows: Sequence[Row]) -> list[TextTable]:
    """Return a table for each map of winners among the pictures of a suite that has rows."""
    wanted = [picture for picture in suite.pictures if picture.form == "winners"]
    if not wanted:
        return []
    from harness.report.pictures.winners import map_of  # with it comes matplotlib, which takes a second

    found = [(picture.title, map_of(picture, rows)) for picture in wanted]
    return [_table(title, one) for title, one in found if one.cells]


def _table(title: str, found: WinnersMap) -> TextTable:
    rows = tuple(
        (name, *(f"{cell.name}: {cell.figure}".removesuffix(": ") if cell else "" for cell in line))
        for name, line in zip(found.lines, found.cells, strict=True)
    )
    best = frozenset(
        (number, place)
        for number, line in enumerate(found.cells)
        for place, cell in enumerate(line, 1)
        if cell and cell.shown
    )
    notes = ["the fastest transport of each cell, and its median; set off: it is shown to be faster than all others"]
    if any(cell and cell.alone for line in found.cells for cell in line):
        notes.append("alone: no other transport there is exact, so that nothing shows how fast it is")
    if any(cell and (cell.unsure or cell.absent) for line in found.cells for cell in line):
        notes.append(f"{UNSURE} fewer than 3 runs, or the fastest of a cell beside has no figure there")
    return TextTable(
        title, ("", *found.columns), rows, tuple(notes), wide=frozenset(range(len(found.columns) + 1)), best=best
    )
