"""A map of winners: which transport is the fastest in each cell of two axes, before anything is drawn. Pure.

An axis is a column of runs.csv, a parameter, several of them joined by ` + `, or `direction`. In a cell compete the
transports of one direction at one combination of parameters: who is the fastest of the exact ones, and who is not shown
to be slower than it, is told as in `crossings`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from harness.model import LabError
from harness.report.answer_tables import route
from harness.report.answers import is_exact
from harness.report.cases import chosen, value
from harness.report.cells import in_words, significant
from harness.report.crossings import not_slower
from harness.report.curves import competes, place
from harness.report.points import described, natural
from harness.report.quantities import PARAMETER, SUM, text
from harness.report.ranks import UNSURE
from harness.report.summarising import summarise
from harness.report.summary import Summary
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import Picture, Suite

DIRECTION = "direction"
NO_WINNER = "none is exact"
_LISTED = 10  # transports that a cell names when it is pointed at
_Key = tuple[str, ...]


@dataclass(frozen=True)
class WinnerCell:
    """One cell: the fastest transport (None where none is exact), who is not shown to be slower, what it says in full.

    `unsure` says that there were fewer than three runs: the median alone tells who is the fastest. `absent` are those
    who are the fastest in a cell beside it, of the same direction, and have no figure here; `ran` are all who have one.
    `alone` says that no other transport is exact: then nothing shows that this one is fast.
    """

    fastest: Summary | None
    alike: tuple[Summary, ...]
    unsure: bool
    says: str
    ran: frozenset[str]
    absent: tuple[str, ...] = ()
    alone: bool = False

    @property
    def shown(self) -> bool:
        """Whether the fastest is shown to be faster than all others."""
        return self.fastest is not None and not (self.alike or self.unsure or self.absent or self.alone)

    @property
    def name(self) -> str:
        """The fastest in two words."""
        return NO_WINNER if self.fastest is None else in_words(self.fastest)

    @property
    def figure(self) -> str:
        """Its median, and how many others are not shown to be slower."""
        if self.fastest is None:
            return ""
        others = f", or {len(self.alike)} other{'s' if len(self.alike) > 1 else ''}" if self.alike else ""
        others += ", alone" if self.alone else ""
        return f"{text(self.fastest.took, 's')}{others}{f' {UNSURE}' if self.unsure or self.absent else ''}"


@dataclass(frozen=True)
class WinnersMap:
    """A whole map: the names of its columns and lines, and the cells of each line; None where nothing was run."""

    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cells: tuple[tuple[WinnerCell | None, ...], ...]


def map_of(picture: Picture, rows: Sequence[Row]) -> WinnersMap:
    """Return the map of a picture.

    Raises LabError where it names a column that there is not, or where transports would meet in a cell that do not
    compete: of two directions, or one at two combinations of parameters.
    """
    about = chosen(picture, rows)
    first = {row.case: row for row in about}
    found: dict[tuple[_Key, _Key], list[Summary]] = defaultdict(list)
    order: tuple[dict[_Key, Any], dict[_Key, Any]] = ({}, {})
    names: tuple[dict[_Key, str], dict[_Key, str]] = ({}, {})
    for case in filter(competes, summarise(about, ())):
        row = first[case.experiment, case.transport, case.label]
        keys = (_key(row, picture.x), _key(row, picture.y))
        found[keys].append(case)
        for axis, key, sorts, says in zip((picture.x, picture.y), keys, order, names, strict=True):
            sorts[key], says[key] = _sorts(row, axis), _name(row, axis)
    columns, lines = (sorted(one, key=one.__getitem__) for one in order)
    cells = [[_cell(picture, found.get((x, y), []), f"{names[1][y]}, {names[0][x]}") for x in columns] for y in lines]
    return WinnersMap(
        tuple(names[0][x] for x in columns), tuple(names[1][y] for y in lines), tuple(map(tuple, _beside(cells)))
    )


def _beside(cells: Sequence[Sequence[WinnerCell | None]]) -> Iterator[Iterator[WinnerCell | None]]:
    """Yield the lines of cells that know of the winners beside them which have no figure there."""
    for y, line in enumerate(cells):
        yield (cell and _with_absent(cell, _neighbours(cells, x, y)) for x, cell in enumerate(line))


def _neighbours(cells: Sequence[Sequence[WinnerCell | None]], x: int, y: int) -> Iterator[Summary]:
    for across, down in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
        if 0 <= down < len(cells) and 0 <= across < len(cells[down]):
            cell = cells[down][across]
            if cell and cell.fastest:
                yield cell.fastest


def _with_absent(cell: WinnerCell, winners: Iterable[Summary]) -> WinnerCell:
    absent = sorted({one.transport for one in winners if cell.fastest and route(one) == route(cell.fastest)} - cell.ran)
    said = [f"no figure here, and the fastest beside: {name}" for name in absent]
    return replace(cell, absent=tuple(absent), says="\n".join([cell.says, *said]))


def _cell(picture: Picture, cases: Sequence[Summary], where: str) -> WinnerCell | None:
    if not cases:
        return None
    _require_a_contest(picture, cases, where)
    exact = sorted(filter(is_exact, cases), key=attrgetter("took", "transport"))
    lines = [where, *map(_listed, exact[:_LISTED])]
    if more := len(exact) - _LISTED:
        lines += [f"and {more} more"] if more > 0 else []
    if others := len(cases) - len(exact):
        lines.append(f"{others} not exact")
    leading = not_slower(exact)
    unsure = any(case.interval is None for case in leading)
    alike = tuple(case for case in leading if case is not exact[0])
    ran = frozenset(case.transport for case in cases)
    return WinnerCell(exact[0] if exact else None, alike, unsure, "\n".join(lines), ran, alone=len(exact) == 1)


def _require_a_contest(picture: Picture, cases: Sequence[Summary], where: str) -> None:
    routes = {(case.system, case.operation, case.frame) for case in cases}
    if len(routes) > 1 or len({case.transport for case in cases}) < len(cases):
        said = " and ".join(sorted({f"{route(case)} [{case.experiment}: {case.label}]" for case in cases})[:2])
        raise LabError(
            f"picture {picture.name}: expected cases that compete in each cell, found at {where}: {said}; "
            f"set `where`, or name in `x` or `y` what tells them apart"
        )


def _listed(case: Summary) -> str:
    reach = "-".join(significant(end) for end in case.interval or ())
    return f"{case.transport}: {significant(case.took)} s ({f'{reach}, ' if reach else ''}n = {case.n})"


def _parts(axis: str) -> list[str]:
    return axis.split(SUM)


def _key(row: Row, axis: str) -> _Key:
    return tuple(route(row) if part == DIRECTION else value(row, part) for part in _parts(axis))


def _sorts(row: Row, axis: str) -> tuple[Any, ...]:
    return tuple(
        place(row.system, row.operation, row.frame) if part == DIRECTION else natural(value(row, part))
        for part in _parts(axis)
    )


def _name(row: Row, axis: str) -> str:
    return ", ".join(route(row) if part == DIRECTION else _described(part, value(row, part)) for part in _parts(axis))


def _described(column: str, said: str) -> str:
    """Say a value as people do; words speak for themselves, a number needs its name."""
    number = natural(said)[1] == ""
    return described(column.removeprefix(PARAMETER), said) if number else said


def by_winner(found: WinnersMap) -> Mapping[str, int]:
    """Return the winners of a map by name, in the order of how many cells they win, most first."""
    counts: dict[str, int] = defaultdict(int)
    for line in found.cells:
        for cell in line:
            if cell and cell.fastest:
                counts[cell.name] += 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def tables(suite: Suite, rows: Sequence[Row]) -> list[Table]:
    """Return a table for each map of winners among the pictures of a suite that has rows."""
    found = [(picture.title, map_of(picture, rows)) for picture in suite.pictures if picture.form == "winners"]
    return [_table(title, one) for title, one in found if one.cells]


def _table(title: str, found: WinnersMap) -> Table:
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
    return Table(
        title, ("", *found.columns), rows, tuple(notes), wide=frozenset(range(len(found.columns) + 1)), best=best
    )
