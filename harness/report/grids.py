"""The pictures that are tables: the outcome of each case, and the fastest transport of each cell. Pure.

An axis of a map of winners is a column of runs.csv, a parameter, several of them joined by ` + `, or `direction`. In a
cell compete the transports of one direction at one combination of parameters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any

from harness.model import NOT_HERE, LabError, Status
from harness.report.crossings import not_slower
from harness.report.figures import (
    PARAMETER,
    SUM,
    chosen,
    described,
    figure,
    in_order,
    natural,
    numbered,
    quantity,
    route,
    short_name,
    value,
    with_unit,
)
from harness.report.summary import UNSURE, Summary, competes, direction_order, is_exact, summarise
from harness.report.table import Grid, Table
from harness.results.row import Row
from harness.suites.suite import Picture, Suite
from harness.systems import SYSTEMS


class Verdict(Enum):
    """The mark of a cell and its meaning: the worst of a case's runs, the later here the worse."""

    UNTRIED = ("", "not tried")
    RIGHT = ("✓", "right: every row once, every value as it was")
    GAVE_UP = ("–", "gave up, or was ended")
    WRONG = ("✗", "wrong: rows too many or missing, without an error")

    def __init__(self, mark: str, meaning: str) -> None:
        self.mark, self.meaning = mark, meaning


_BY_SEVERITY = list(Verdict)
_SAID = {
    Verdict.WRONG: "rows too many or missing",
    Verdict.GAVE_UP: "gave up or ended",
    Verdict.UNTRIED: "not tried in all cells",
}


@dataclass(frozen=True)
class Ending:
    """How a run ended, or the worst of a case's: its verdict, in few words, and its distance from the right result."""

    verdict: Verdict
    text: str
    away: float = 0.0

    @property
    def marked(self) -> str:
        """The text with its mark."""
        return f"{self.verdict.mark} {self.text}".strip()


def outcomes(picture: Picture, rows: Sequence[Row]) -> Grid[Ending]:
    """Return the grid of a picture: transports by the values of its x, those of a single process first.

    Raises LabError if the picture names an unknown column.
    """
    about = chosen(picture, rows)
    parameter = picture.x.removeprefix(PARAMETER)
    found = {value(row, picture.x) for row in about} - {""}
    wanted = (picture.where or {}).get(picture.x) or sorted(found, key=natural)
    values = [one for one in wanted if one in found]
    lines: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    aside = {parameter, "rows"} if picture.x == "dataset" else {parameter}  # a dataset has its own rows
    for row in sorted(about, key=_line_order):
        rest = {name: text for name, text in row.parameters.items() if name not in aside}
        lines[row.transport, *(described(*one) for one in rest.items())][value(row, picture.x)].append(row)
    cells = (
        tuple(_outcome(picture, runs) if (runs := line.get(one)) else None for one in values) for line in lines.values()
    )
    columns = tuple(described(parameter, one) for one in values)
    return Grid(columns, tuple(_line_name(key, lines) for key in lines), tuple(cells))


def _line_order(row: Row) -> tuple[Any, ...]:
    system = SYSTEMS[row.system].place if row.system in SYSTEMS else len(SYSTEMS)
    return bool(row.engine), system, row.operation, row.transport, in_order(row.parameters), row.pass_number


def _line_name(key: tuple[str, ...], among: Iterable[tuple[str, ...]]) -> str:
    """Name a line by its transport, and by the parameters that differ among the lines of that one."""
    transport, *parameters = key
    others = [other for other in among if other[0] == transport]
    apart = [one for one in parameters if not all(one in other[1:] for other in others)]
    return f"{transport} [{', '.join(apart)}]" if len(others) > 1 else transport


def _outcome(picture: Picture, runs: Sequence[Row]) -> Ending:
    """Return the worst ending of a case's runs, and the number of such runs if not all ended so."""
    endings = [_ending(picture, row) for row in runs]
    worst = max(endings, key=lambda one: (_BY_SEVERITY.index(one.verdict), one.away, one.text))
    alike = sum(one.text == worst.text and one.verdict is worst.verdict for one in endings)
    return worst if alike == len(runs) else replace(worst, text=f"{worst.text} ({alike} of {len(runs)} runs)")


def _ending(picture: Picture, row: Row) -> Ending:
    """Judge one run by the rows that were found after it, or else by its status alone."""
    found, expected = row.details.get("found_rows"), row.details.get("expected_rows")
    # The rows of a load that fails are counted. Without a count, the lab or a server failed, not the load.
    lab_failed = "kill" in row.parameters and row.status is Status.ERROR and found is None
    if row.status in NOT_HERE or lab_failed:
        return Ending(Verdict.UNTRIED, str(row.status))
    if (found is None or expected is None) and not row.ok:
        return Ending(Verdict.WRONG if row.status is Status.MISMATCH else Verdict.GAVE_UP, str(row.status))
    if found is None or expected is None:
        measured = figure(row, picture.y)
        said = "ok" if measured is None else f"ok, {with_unit(measured, quantity(picture.y).unit)}"
        return Ending(Verdict.RIGHT, said)
    if row.ok and "kill" in row.parameters and not row.details.get("killed"):
        return Ending(Verdict.UNTRIED, "no worker was killed")
    more = found - expected
    if row.status not in (Status.OK, Status.MISMATCH):
        said = "gave up" if row.status is Status.ERROR else str(row.status)
        return Ending(Verdict.GAVE_UP, f"{said}, {found:,} left", found)
    counted = f"{found:,} of {expected:,}"
    if more:
        return Ending(Verdict.WRONG, f"{counted}: {abs(more):,} {'too many' if more > 0 else 'missing'}", abs(more))
    return Ending(Verdict.RIGHT, counted) if row.ok else Ending(Verdict.WRONG, f"{counted}, wrong values")


def outcome_tables(suite: Suite, rows: Sequence[Row]) -> Iterator[Table]:
    """Yield a table for each grid among the pictures of a suite that has rows."""
    for title, found in _grids(suite, rows):
        verdicts = {cell.verdict for _, _, cell in found.every}
        notes = tuple(f"{one.mark} {one.meaning}" for one in Verdict if one.mark and one in verdicts)
        yield found.table(title, "transport", lambda cell: cell.marked, notes)


def _grids(suite: Suite, rows: Sequence[Row]) -> Iterator[tuple[str, Grid[Ending]]]:
    for picture in suite.pictures:
        if picture.form == "grid" and (found := outcomes(picture, rows)).lines:
            yield picture.title, found


def outcome_sentences(suite: Suite, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each grid: how many transports are right in every cell, and which are wrong."""
    for title, found in _grids(suite, rows):
        every: dict[str, set[Verdict]] = defaultdict(set)
        for line, _, cell in found.every:
            every[found.lines[line]].add(cell.verdict)
        tried = {name: of for name, of in every.items() if of != {Verdict.UNTRIED}}
        parts = [f"{title}: {sum(of == {Verdict.RIGHT} for of in tried.values())} of {len(tried)} transports right"]
        for verdict, words in _SAID.items():
            if names := [name for name, of in tried.items() if verdict in of]:
                parts.append(f"{words}: {', '.join(names)}")
        yield "; ".join(parts)


DIRECTION = "direction"
NO_WINNER = "none is exact"


@dataclass(frozen=True)
class WinnerCell:
    """One cell: the fastest transport (None if none is exact), and those not shown to be slower.

    `unsure` says that the runs were too few, so that only the medians decide. `absent` are the fastest transports of
    neighbouring cells of the same direction that have no figure here. `alone` says that no other transport is exact:
    then nothing shows that this one is fast.
    """

    fastest: Summary | None
    alike: tuple[Summary, ...]
    unsure: bool
    absent: tuple[str, ...]
    alone: bool

    @property
    def shown(self) -> bool:
        """Whether the fastest is shown to be faster than every other transport."""
        return self.fastest is not None and not (self.alike or self.unsure or self.absent or self.alone)

    @property
    def text(self) -> str:
        """The fastest in two words, its median, and the number of transports that are not shown to be slower."""
        if self.fastest is None:
            return NO_WINNER
        others = f", or {numbered(len(self.alike), 'other')}" if self.alike else ""
        others += ", alone" if self.alone else ""
        mark = f" {UNSURE}" if self.unsure or self.absent else ""
        return f"{short_name(self.fastest.transport)}: {with_unit(self.fastest.took, 's')}{others}{mark}"


def map_of(picture: Picture, rows: Sequence[Row]) -> Grid[WinnerCell]:
    """Return the map of a picture.

    Raises LabError if it names an unknown column. Raises LabError, too, if a cell would have transports of two
    directions, or one transport at two combinations of parameters.
    """
    about = chosen(picture, rows)
    first = {row.case: row for row in about}
    found: dict[tuple[_Place, _Place], list[Summary]] = defaultdict(list)
    for case in filter(competes, summarise(about, ())):
        row = first[case.experiment, case.transport, case.label]
        found[_place(row, picture.x), _place(row, picture.y)].append(case)
    columns, lines = (sorted({place[axis] for place in found}) for axis in (0, 1))
    exact = {at: _exact(picture, cases, at) for at, cases in found.items()}

    def cell(x: int, y: int) -> WinnerCell | None:
        if (cases := found.get((columns[x], lines[y]))) is None:
            return None
        known = exact[columns[x], lines[y]]
        leading = known[0] if known else None
        absent: set[str] = set()
        for across, down in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
            there = 0 <= across < len(columns) and 0 <= down < len(lines)
            for winner in exact.get((columns[across], lines[down]), ())[:1] if there else ():
                if leading and route(winner) == route(leading):
                    absent |= {winner.transport} - {case.transport for case in cases}
        rivals = not_slower(known)
        unsure = any(case.interval is None for case in rivals)
        alike = tuple(case for case in rivals if case is not leading)
        return WinnerCell(leading, alike, unsure, tuple(sorted(absent)), alone=len(known) == 1)

    cells = tuple(tuple(cell(x, y) for x in range(len(columns))) for y in range(len(lines)))
    return Grid(tuple(map(_name, columns)), tuple(map(_name, lines)), cells)


_Place = tuple[tuple[Any, str], ...]  # on an axis: each of its parts as a key to sort by, and for people


def _place(row: Row, axis: str) -> _Place:
    """Return the place of a row on an axis; in words a number needs its name, other values do not."""
    found: list[tuple[Any, str]] = []
    for part in axis.split(SUM):
        if part == DIRECTION:
            found.append((direction_order(row.system, row.operation, row.frame), route(row)))
        else:
            said = value(row, part)
            order = natural(said)
            found.append((order, said if order[1] else described(part.removeprefix(PARAMETER), said)))
    return tuple(found)


def _name(place: _Place) -> str:
    return ", ".join(words for _, words in place)


def _exact(picture: Picture, cases: Sequence[Summary], at: tuple[_Place, _Place]) -> list[Summary]:
    """Return the exact ones of the cases of a cell, the fastest first. Raises LabError if they do not compete."""
    routes = {(case.system, case.operation, case.frame) for case in cases}
    if len(routes) > 1 or len({case.transport for case in cases}) < len(cases):
        said = " and ".join(sorted({f"{route(case)} [{case.experiment}: {case.label}]" for case in cases})[:2])
        raise LabError(
            f"picture {picture.name}: cases at {_name(at[1])}, {_name(at[0])} do not compete: {said}; "
            f"set `where`, or name in `x` or `y` what tells them apart"
        )
    return sorted(filter(is_exact, cases), key=attrgetter("took", "transport"))


def winner_tables(suite: Suite, rows: Sequence[Row]) -> Iterator[Table]:
    """Yield a table for each map of winners among the pictures of a suite that has rows."""
    for picture in suite.pictures:
        if picture.form == "winners" and (found := map_of(picture, rows)).cells:
            notes = [
                "the fastest transport of each cell, and its median; set off: it is shown to be faster than all others"
            ]
            if any(cell.alone for _, _, cell in found.every):
                notes.append("alone: no other transport there is exact, so that nothing shows how fast it is")
            if any(cell.unsure or cell.absent for _, _, cell in found.every):
                notes.append(f"{UNSURE} too few runs, or the fastest of a neighbouring cell has no figure there")
            first = picture.y.replace(PARAMETER, "").replace(SUM, ", ")
            yield found.table(picture.title, first, lambda cell: cell.text, tuple(notes), lambda cell: cell.shown)
