"""The charts that are tables: the outcome of each case, and the fastest transport of each cell. Pure.

An axis of a map of winners is a column of runs.csv, a parameter, several of them joined by ` + `, or `direction`. In a
cell compete the transports of one direction at one combination of parameters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from operator import attrgetter
from typing import Any

from harness.model import NOT_HERE, LabError, Status
from harness.report.crossings import not_slower
from harness.report.figures import PARAMETER, SUM, described, in_order, natural, quantity, route, significant, with_unit
from harness.report.marks import chosen, figure, value
from harness.report.summary import UNSURE, Summary, competes, direction_order, in_words, is_exact, summarise
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import Picture, Suite
from harness.systems import SYSTEMS


class Verdict(Enum):
    """The mark of a cell and its meaning: the worst of a case's runs, the later here the worse."""

    UNTRIED = ("", "not tried")
    RIGHT = ("✓", "right: every row once, every value as it was")
    GAVE_UP = ("–", "gave up, or was ended")
    WRONG = ("✗", "wrong: rows too many or missing, and nobody was told")

    @property
    def mark(self) -> str:
        """The mark, which tells as much as the colour."""
        return self.value[0]

    @property
    def meaning(self) -> str:
        """Its meaning for a case."""
        return self.value[1]


_BY_SEVERITY = list(Verdict)


@dataclass(frozen=True)
class Ending:
    """How one run ended: its verdict, in few words, and its distance from the right result."""

    verdict: Verdict
    text: str
    away: float = 0.0

    @property
    def place(self) -> tuple[int, float, str]:
        """A key by which the worst comes last."""
        return _BY_SEVERITY.index(self.verdict), self.away, self.text


@dataclass(frozen=True)
class OutcomeCell:
    """One cell: the verdict on a case, its text, and the full sentence that it shows on hover."""

    verdict: Verdict
    text: str
    says: str

    @property
    def marked(self) -> str:
        """The text with its mark, for output without colour."""
        return f"{self.verdict.mark} {self.text}".strip()


@dataclass(frozen=True)
class OutcomeLine:
    """One line: a transport, the difference from its other lines, and its cells; None where nothing was run."""

    name: str
    cells: tuple[OutcomeCell | None, ...]


@dataclass(frozen=True)
class Outcomes:
    """A whole grid: the parameter that varies by column, its values, and the lines."""

    parameter: str
    values: tuple[str, ...]
    lines: tuple[OutcomeLine, ...]

    @property
    def heads(self) -> tuple[str, ...]:
        """The columns for people: `512 MB memory`, `kill before`."""
        return tuple(described(self.parameter, one) for one in self.values)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdicts that are among the cells, in the order of the class."""
        found = {cell.verdict for line in self.lines for cell in line.cells if cell}
        return [one for one in Verdict if one in found]


def outcomes(picture: Picture, rows: Sequence[Row]) -> Outcomes:
    """Return the grid of a picture: transports by the values of its x, those of a single process first.

    Raises LabError if the picture names an unknown column.
    """
    about = chosen(picture, rows)
    parameter = picture.x.removeprefix(PARAMETER)
    found = {value(row, picture.x) for row in about} - {""}
    wanted = (picture.where or {}).get(picture.x) or sorted(found, key=natural)
    values = tuple(one for one in wanted if one in found)
    lines: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    aside = {parameter, "rows"} if picture.x == "dataset" else {parameter}  # a dataset has its own rows
    for row in sorted(about, key=_line_order):
        rest = {name: text for name, text in row.parameters.items() if name not in aside}
        lines[row.transport, *(described(*one) for one in rest.items())][value(row, picture.x)].append(row)
    names = _line_names(lines)
    return Outcomes(
        parameter,
        values,
        tuple(
            OutcomeLine(
                names[key], tuple(_outcome(picture, runs) if (runs := cells.get(one)) else None for one in values)
            )
            for key, cells in lines.items()
        ),
    )


def _line_order(row: Row) -> tuple[Any, ...]:
    system = SYSTEMS[row.system].place if row.system in SYSTEMS else len(SYSTEMS)
    return bool(row.engine), system, row.operation, row.transport, in_order(row.parameters), row.pass_number


def _line_names(lines: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Name each line by its transport, and by the parameters that differ among the lines of that one."""
    keys = list(lines)
    several = Counter(transport for transport, *_ in keys)
    found = {}
    for transport, *rest in keys:
        others = [set(other[1:]) for other in keys if other[0] == transport]
        apart = [one for one in rest if not all(one in other for other in others)]
        found[transport, *rest] = f"{transport} [{', '.join(apart)}]" if several[transport] > 1 else transport
    return found


def _outcome(picture: Picture, runs: Sequence[Row]) -> OutcomeCell:
    """Return the cell of a case: the worst of its runs, and the number of such runs if not all ended so."""
    endings = [_ending(picture, row) for row in runs]
    worst = max(endings, key=attrgetter("place"))
    alike = sum(one.text == worst.text and one.verdict is worst.verdict for one in endings)
    more = f" ({alike} of {len(runs)} runs)" if alike < len(runs) else ""
    lines = [runs[0].transport, ": ".join(filter(None, (runs[0].experiment, runs[0].label)))]
    for row, one in zip(runs, endings, strict=True):
        said = f"pass {row.pass_number}: {row.status}, {one.text}"
        lines.append(": ".join(filter(None, (said, row.error))))
    return OutcomeCell(worst.verdict, worst.text + more, "\n".join(lines))


def _ending(picture: Picture, row: Row) -> Ending:
    """Judge one run by the rows that were found after it, or else by its status alone."""
    found, expected = row.details.get("found_rows"), row.details.get("expected_rows")
    if row.status in NOT_HERE:
        return Ending(Verdict.UNTRIED, str(row.status))
    if found is None or expected is None:
        return _by_status(picture, row)
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


def _by_status(picture: Picture, row: Row) -> Ending:
    if row.ok:
        measured = figure(row, picture.y)
        return Ending(
            Verdict.RIGHT, "ok" if measured is None else f"ok, {with_unit(measured, quantity(picture.y).unit)}"
        )
    return Ending(Verdict.WRONG if row.status is Status.MISMATCH else Verdict.GAVE_UP, str(row.status))


def outcome_tables(suite: Suite, rows: Sequence[Row]) -> list[Table]:
    """Return a table for each grid among the pictures of a suite that has rows."""
    return [_outcome_table(title, found) for title, found in _grids(suite, rows)]


def outcome_sentences(suite: Suite, rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each grid: how many transports are right in every cell, and which are wrong."""
    return [_sentence(title, found) for title, found in _grids(suite, rows)]


def _grids(suite: Suite, rows: Sequence[Row]) -> Iterator[tuple[str, Outcomes]]:
    for picture in suite.pictures:
        if picture.form == "grid" and (found := outcomes(picture, rows)).lines:
            yield picture.title, found


def _outcome_table(title: str, found: Outcomes) -> Table:
    return Table(
        title=title,
        head=("transport", *found.heads),
        rows=tuple((line.name, *(cell.marked if cell else "" for cell in line.cells)) for line in found.lines),
        notes=tuple(f"{one.mark} {one.meaning}" for one in found.verdicts if one.mark),
        wide=frozenset(range(len(found.heads) + 1)),
    )


def _sentence(title: str, found: Outcomes) -> str:
    verdicts = {line.name: {cell.verdict for cell in line.cells if cell} - {Verdict.UNTRIED} for line in found.lines}
    tried = {name: of_line for name, of_line in verdicts.items() if of_line}
    right = sum(of_line == {Verdict.RIGHT} for of_line in tried.values())
    parts = [f"{title}: {right} of {len(tried)} transports right"]
    for verdict, words in ((Verdict.WRONG, "rows too many or missing"), (Verdict.GAVE_UP, "gave up or ended")):
        if names := [name for name, of_line in tried.items() if verdict in of_line]:
            parts.append(f"{words}: {', '.join(names)}")
    return "; ".join(parts)


DIRECTION = "direction"
NO_WINNER = "none is exact"
_LISTED = 10  # transports that a cell names on hover
_Key = tuple[str, ...]


@dataclass(frozen=True)
class WinnerCell:
    """One cell: the fastest transport (None if none is exact), those not shown to be slower, and its full sentence.

    `unsure` says that the runs were too few, so that only the medians decide. `absent` are the fastest transports of
    neighbouring cells of the same direction that have no figure here; `ran` are all that have one. `alone` says that
    no other transport is exact: then nothing shows that this one is fast.
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
        """Whether the fastest is shown to be faster than every other transport."""
        return self.fastest is not None and not (self.alike or self.unsure or self.absent or self.alone)

    @property
    def name(self) -> str:
        """The fastest in two words."""
        return NO_WINNER if self.fastest is None else in_words(self.fastest)

    @property
    def figure(self) -> str:
        """Its median, and the number of transports that are not shown to be slower."""
        if self.fastest is None:
            return ""
        others = f", or {len(self.alike)} other{'s' if len(self.alike) > 1 else ''}" if self.alike else ""
        others += ", alone" if self.alone else ""
        return f"{with_unit(self.fastest.took, 's')}{others}{f' {UNSURE}' if self.unsure or self.absent else ''}"


@dataclass(frozen=True)
class WinnersMap:
    """A whole map: the names of its columns and lines, and the cells of each line; None where nothing was run."""

    columns: tuple[str, ...]
    lines: tuple[str, ...]
    cells: tuple[tuple[WinnerCell | None, ...], ...]


def map_of(picture: Picture, rows: Sequence[Row]) -> WinnersMap:
    """Return the map of a picture.

    Raises LabError if it names an unknown column. Raises LabError, too, if a cell would have transports of two
    directions, or one transport at two combinations of parameters.
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
            sorts[key], says[key] = _sorts(row, axis), _axis_name(row, axis)
    columns, lines = (sorted(one, key=one.__getitem__) for one in order)
    cells = [
        [_winner_cell(picture, found.get((x, y), []), f"{names[1][y]}, {names[0][x]}") for x in columns] for y in lines
    ]
    return WinnersMap(
        tuple(names[0][x] for x in columns), tuple(names[1][y] for y in lines), tuple(map(tuple, _with_gaps(cells)))
    )


def _with_gaps(cells: Sequence[Sequence[WinnerCell | None]]) -> Iterator[Iterator[WinnerCell | None]]:
    """Yield the lines of cells whose neighbours' winners have no figure there."""
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
    said = [f"no figure here, and the fastest next to it: {name}" for name in absent]
    return replace(cell, absent=tuple(absent), says="\n".join([cell.says, *said]))


def _winner_cell(picture: Picture, cases: Sequence[Summary], where: str) -> WinnerCell | None:
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
            f"picture {picture.name}: cases at {where} do not compete: {said}; "
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
        direction_order(row.system, row.operation, row.frame) if part == DIRECTION else natural(value(row, part))
        for part in _parts(axis)
    )


def _axis_name(row: Row, axis: str) -> str:
    return ", ".join(route(row) if part == DIRECTION else _described(part, value(row, part)) for part in _parts(axis))


def _described(column: str, said: str) -> str:
    """Write a value for people; words need no name, a number needs its name."""
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


def winner_tables(suite: Suite, rows: Sequence[Row]) -> list[Table]:
    """Return a table for each map of winners among the pictures of a suite that has rows."""
    found = [(picture, map_of(picture, rows)) for picture in suite.pictures if picture.form == "winners"]
    return [_winner_table(picture, one) for picture, one in found if one.cells]


def _winner_table(picture: Picture, found: WinnersMap) -> Table:
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
        notes.append(f"{UNSURE} too few runs, or the fastest of a neighbouring cell has no figure there")
    head = (picture.y.replace("parameter:", "").replace(" + ", ", "), *found.columns)
    return Table(picture.title, head, rows, tuple(notes), wide=frozenset(range(len(head))), best=best)
