"""What became of each case, next to what should have: the cells of a grid, as a table and as a sentence. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from typing import Any

from harness.model import Status
from harness.report.cases import chosen, figure, value
from harness.report.points import described, in_order, natural
from harness.report.quantities import PARAMETER, quantity, text
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import Picture, Suite
from harness.systems import SYSTEMS

_NOT_TRIED = (Status.UNAVAILABLE, Status.UNSUPPORTED)


class Verdict(Enum):
    """What a cell is marked with, and what that stands for: the worst of a case's runs, the later here the worse."""

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
        """What it says of a case."""
        return self.value[1]


_BY_SEVERITY = list(Verdict)


@dataclass(frozen=True)
class Ending:
    """How one run ended: its verdict, in few words, and how far it is from what it should be."""

    verdict: Verdict
    text: str
    away: float = 0.0

    @property
    def place(self) -> tuple[int, float, str]:
        """A key by which the worst comes last."""
        return _BY_SEVERITY.index(self.verdict), self.away, self.text


@dataclass(frozen=True)
class OutcomeCell:
    """One cell: the verdict on a case, its text, and what it says in full when it is pointed at."""

    verdict: Verdict
    text: str
    says: str

    @property
    def marked(self) -> str:
        """The text with its mark, for where there is no colour."""
        return f"{self.verdict.mark} {self.text}".strip()


@dataclass(frozen=True)
class OutcomeLine:
    """One line: a transport, with what tells it from its other lines, and its cells; None where nothing was run."""

    name: str
    cells: tuple[OutcomeCell | None, ...]


@dataclass(frozen=True)
class Outcomes:
    """A whole grid: the parameter that its columns are values of, those values, and its lines."""

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
    """Return the grid of a picture: transports by the values of its x, what one process does alone first.

    Raises LabError when the picture names a column that there is not.
    """
    about = chosen(picture, rows)
    parameter = picture.x.removeprefix(PARAMETER)
    found = {value(row, picture.x) for row in about} - {""}
    wanted = (picture.where or {}).get(picture.x) or sorted(found, key=natural)
    values = tuple(one for one in wanted if one in found)
    lines: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(about, key=_place):
        rest = {name: text for name, text in row.parameters.items() if name != parameter}
        lines[row.transport, *(described(*one) for one in rest.items())][value(row, picture.x)].append(row)
    names = _names(lines)
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


def _place(row: Row) -> tuple[Any, ...]:
    system = SYSTEMS[row.system].place if row.system in SYSTEMS else len(SYSTEMS)
    return bool(row.engine), system, row.operation, row.transport, in_order(row.parameters), row.pass_number


def _names(lines: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
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
    """Return the cell of a case: the worst of its runs, and of how many that is where they did not all end so."""
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
    if row.status in _NOT_TRIED:
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
        return Ending(Verdict.RIGHT, "ok" if measured is None else f"ok, {text(measured, quantity(picture.y).unit)}")
    return Ending(Verdict.WRONG if row.status is Status.MISMATCH else Verdict.GAVE_UP, str(row.status))


def tables(suite: Suite, rows: Sequence[Row]) -> list[Table]:
    """Return a table for each grid among the pictures of a suite that has rows."""
    return [_table(title, found) for title, found in _grids(suite, rows)]


def said(suite: Suite, rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each grid: how many transports are right wherever they were tried, and who is wrong."""
    return [_sentence(title, found) for title, found in _grids(suite, rows)]


def _grids(suite: Suite, rows: Sequence[Row]) -> Iterator[tuple[str, Outcomes]]:
    for picture in suite.pictures:
        if picture.form == "grid" and (found := outcomes(picture, rows)).lines:
            yield picture.title, found


def _table(title: str, found: Outcomes) -> Table:
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
