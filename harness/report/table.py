"""The one table of reports: what a ranking, a grid or a comparison is made of, in no format yet."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_WIDTHS = ((22, "words"), (60, "text"), (math.inf, "prose"))  # by the characters of the longest cell
_NUMBER = re.compile(r"[×<]?(-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)")


@dataclass(frozen=True)
class Table:
    """A table: `rows` have one string for each of `head`.

    `wide` are the columns of words, all others hold numbers; `names` those of ids, which may be broken, but for one
    called `transport`; `best` are cells (row, column) to set off; `droppable` are groups of columns that may be left
    out, in this order, where there is no room; `notes` are lines to go below. `more` says more of some cells, where
    there is room; `sorts` are the numbers of those that round theirs; `quiet` are the rows of what has no figure.
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

    @property
    def contents(self) -> tuple[str, ...]:
        """What each column holds: `number`, `words`, or `text` and `prose`, which need some width to be read."""
        return tuple(self._words(place) if place in self.wide else "number" for place in range(len(self.head)))

    def _words(self, place: int) -> str:
        longest = max((len(row[place]) for row in self.rows), default=0)
        return next(content for most, content in _WIDTHS if longest <= most)

    def number(self, row: int, column: int) -> float | None:
        """Return the number that a cell of a column of numbers is sorted by: its own or what it begins with, if any."""
        found = None if column in self.wide else _NUMBER.match(self.rows[row][column])
        return self.sorts.get((row, column), float(found[1].replace(",", "")) if found else None)


@dataclass(frozen=True)
class Section:
    """A part of a report: its title, tables and sentences."""

    title: str
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sections:
    """The sections of a report, in the order of report.md."""

    answers: Section
    not_ok: Section
    shown: Section
    results: Section
    published: Section
