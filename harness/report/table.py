"""The one table of reports, before any format: rankings, grids and comparisons are such tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar


def ever_smaller(table: Table) -> list[Table]:
    """Return ever narrower versions of a table: each drops one more group of columns and has none left to drop."""
    found = []
    for count in range(len(table.droppable) + 1):
        dropped = {place for group in table.droppable[:count] for place in group}
        kept = {place: new for new, place in enumerate(sorted(set(range(len(table.head))) - dropped))}
        head, *rows = (tuple(line[place] for place in kept) for line in (table.head, *table.rows))
        wide, names = (frozenset(kept[place] for place in of if place in kept) for of in (table.wide, table.names))
        found.append(replace(table, head=head, rows=tuple(rows), wide=wide, names=names, droppable=()))
    return found


@dataclass(frozen=True)
class Chart:
    """A chart: a caption that explains its marks and their origin, its specification, and that drawn as SVG."""

    name: str
    title: str
    caption: str
    spec: Mapping[str, Any]
    svg: str

    @property
    def path(self) -> str:
        """Where it is in the folder of its report."""
        return f"pictures/{self.name}.svg"


_WIDTHS = ((22, "words"), (60, "text"), (math.inf, "prose"))  # by the characters of the longest cell
_NUMBER = re.compile(r"[×<]?(-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)")


@dataclass(frozen=True)
class Table:
    """A table: `rows` have one string for each of `head`.

    `wide` are the columns of words; every other column holds numbers. `names` are the columns of ids, which may be
    broken, except one called `transport`. `best` are cells (row, column) to set off. `droppable` are groups of columns
    that may be skipped, in this order, to save width. `notes` are lines below the table. `more` has more words for some
    cells if they fit. `sorts` are the exact numbers of rounded cells. `quiet` are the rows without a figure. A `minor`
    table explains how the results came about: only the page has it.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    wide: frozenset[int] = frozenset({0})
    best: frozenset[tuple[int, int]] = frozenset()
    droppable: tuple[tuple[int, ...], ...] = ()
    names: frozenset[int] = frozenset()
    more: Mapping[tuple[int, int], str] = field(default_factory=dict)
    sorts: Mapping[tuple[int, int], float] = field(default_factory=dict)
    quiet: frozenset[int] = frozenset()
    minor: bool = False

    @property
    def contents(self) -> tuple[str, ...]:
        """The content of each column: `number`, `words`, or `text` and `prose`, which need some width to be read."""
        return tuple(self._words(place) if place in self.wide else "number" for place in range(len(self.head)))

    def _words(self, place: int) -> str:
        longest = max((len(row[place]) for row in self.rows), default=0)
        return next(content for most, content in _WIDTHS if longest <= most)

    def number(self, row: int, column: int) -> float | None:
        """Return the number by which a cell is sorted: its exact one, or the number at its beginning, if any."""
        found = None if column in self.wide else _NUMBER.match(self.rows[row][column])
        return self.sorts.get((row, column), float(found[1].replace(",", "")) if found else None)


_Cell = TypeVar("_Cell")


@dataclass(frozen=True)
class Grid(Generic[_Cell]):
    """The names of the columns and lines of a table, and the cells of each line: None where nothing was run."""

    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cells: tuple[tuple[_Cell | None, ...], ...]

    def table(
        self,
        title: str,
        first: str,
        text: Callable[[_Cell], str],
        notes: tuple[str, ...] = (),
        best: Callable[[_Cell], bool] = lambda cell: False,
    ) -> Table:
        """Return it as a table, with what its lines are in its first column; cells that are `best` are set off."""
        lines = zip(self.lines, self.cells, strict=True)
        rows = tuple((name, *(text(cell) if cell else "" for cell in line)) for name, line in lines)
        head = (first, *self.columns)
        return Table(
            *(title, head, rows, notes),
            wide=frozenset(range(len(head))),
            best=frozenset((line, place + 1) for line, place, cell in self.every if best(cell)),
        )

    @property
    def every(self) -> list[tuple[int, int, _Cell]]:
        """Each cell with its line and its column."""
        return [(y, x, cell) for y, line in enumerate(self.cells) for x, cell in enumerate(line) if cell]


@dataclass(frozen=True)
class Section:
    """A part of a report: its name, title, tables, sentences and charts.

    The tables of a `folded` section are only in the page, where they open at a click.
    """

    name: str
    title: str
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    folded: bool = False
