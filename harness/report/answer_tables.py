"""The answers of a run as tables of texts: what every report opens with, by frame, and what the terminal ends with."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from harness.model import Operation, Status
from harness.report import stability
from harness.report.answers import EXACT, Leaders, Rival, answers
from harness.report.cells import called as short
from harness.report.cells import legend, marked, megabytes, significant, times
from harness.report.intervals import Interval, called, leaves_out_one
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.text_tables import TITLES
from harness.results.row import Row
from harness.suites.suite import Suite

FASTEST, WHOLE, USUAL, ALSO, LEANEST = "fastest", "loses none", "usual", "also usual", "leanest"
ROLES = (FASTEST, WHOLE, USUAL, ALSO, LEANEST)
NO_DIFFERENCE = "no difference shown"
_TITLE = "the fastest transport whose values came back exact, and the usual one"
_HEAD = (
    "from, to",
    "which",
    "transport",
    "median s",
    "range",
    "times as long",
    "interval",
    "peak MB",
    "of limit",
    "values",
)
_RANGE = _HEAD.index("range")
_WIDE = frozenset({0, 1, 2, 6, 9})
_DROPPABLE = tuple((_HEAD.index(name),) for name in ("values", "of limit", "interval", "range", "peak MB"))
_EXPLAINED = "times as long: the ratio of the median to that of the fastest, with its bootstrap interval"
_LIMIT = "; of limit: how near to the fastest bound, what the server does alone"
_MARKED = "{}: these data have none of them"
_NONE_LOST = f"; {WHOLE}: the fastest exact one that is not known to lose any"
_CONVERTED = "converted: values came back in other dtypes, which is work left to you"


def opening(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[Table]:
    """Return the tables that a report opens with; none of a suite whose question is another one."""
    return by_frame(answers(suite.answers, rows, summaries)) if suite.answers else []


def by_frame(found: Sequence[Leaders]) -> list[Table]:
    """Return a table for each frame; what all of them need to be read stands below the last one."""
    frames = list(dict.fromkeys(one.frame for one in found))
    parts = [[one for one in found if one.frame == frame] for frame in frames]
    return [_table(part, f"{part[0].frame}: {_TITLE}", explained=part is parts[-1]) for part in parts]


def in_one(found: Sequence[Leaders], roles: Collection[str] = ROLES, ids: bool = True) -> Table:
    """Return one table of all answers, of transports in these roles only; without `ids` by their short names."""
    return _table(found, f"{_TITLE[:1].upper()}{_TITLE[1:]}", roles, ids=ids)


def _table(
    found: Sequence[Leaders],
    title: str,
    roles: Collection[str] = ROLES,
    explained: bool = True,
    ids: bool = True,
) -> Table:
    """Return a table of answers with a row for each transport and role; one in two roles has both in its row."""
    rows = [row for one in found for row in _rows(one, roles, ids)]
    shown = [beside.case for one in found for beside, _ in _in_roles(one, roles).values()]
    sizes = sorted({one.rows for one in found if one.rows is not None})
    interval = called(case.n for case in shown if case.n)
    return Table(
        title=title + (f": {sizes[-1]:,} rows" if sizes else ""),
        head=tuple(interval or name if place == _RANGE else name for place, name in enumerate(_HEAD)),
        rows=tuple(rows),
        notes=(*_notes(shown, roles), *stability.note(shown), *([_explained(shown)] if explained else [])),
        wide=_WIDE,
        droppable=_DROPPABLE,
    )


class Routed(Protocol):
    """What says where data come from and go to."""

    @property
    def system(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def frame(self) -> str: ...


def route(one: Routed) -> str:
    """Say where data come from and go to: `pandas to Postgres`."""
    system = TITLES.get(one.system, one.system)
    return " to ".join((one.frame, system) if one.operation == Operation.WRITE else (system, one.frame))


def factor(beside: Rival) -> tuple[str, str]:
    """Return how many times as long a transport takes as the fastest, and the interval of that or what it lacks."""
    return ("", "") if beside.factor is None else ratio(beside.factor, beside.interval)


def ratio(value: float, interval: Interval | None) -> tuple[str, str]:
    """Return how many times as long something takes, and the interval of that or what it lacks."""
    if interval is None:
        return times(value), "too few runs to tell"
    ends = "-".join(significant(end, 2) for end in interval)
    return times(value), ends if leaves_out_one(interval) else f"{ends}, {NO_DIFFERENCE}"


def _in_roles(one: Leaders, roles: Collection[str]) -> dict[str, tuple[Rival, list[str]]]:
    """Return by id the transports of an answer with their roles."""
    fastest = Rival(one.fastest, 1.0, None) if one.fastest else None
    played = [(FASTEST, fastest), (WHOLE, one.whole), *((USUAL, each) for each in one.usual[:1])]
    played += [*((ALSO, each) for each in one.usual[1:]), (LEANEST, one.leanest)]
    found: dict[str, tuple[Rival, list[str]]] = {}
    for role, beside in played:
        if beside and role in roles:
            found.setdefault(beside.case.transport, (beside, []))[1].append(role)
    return found


def _rows(one: Leaders, roles: Collection[str], ids: bool) -> Iterator[tuple[str, ...]]:
    if one.fastest is None:
        yield route(one), FASTEST, "no transport is exact", *[""] * (len(_HEAD) - 3)
    for beside, names in _in_roles(one, roles).values():
        case = beside.case
        interval = "-".join(significant(end) for end in case.interval or ())
        share = case.share_of_limit
        yield (
            route(one),
            ", ".join(names),
            marked(case.transport if ids else short(case.transport), case.lossy),  # `lab show` prints its id
            significant(case.median_seconds) + (stability.MARK if case.unstable else ""),
            interval,
            *(("", _ties(one)) if case is one.fastest else factor(beside)),
            megabytes(case.peak_rss_bytes),
            "" if share is None else f"{share:.0%}",
            case.fidelity.partition(":")[0] if case.status == Status.OK else case.status,
        )


def _ties(one: Leaders) -> str:
    """Say how many other exact transports may be as fast; the interval of a factor has no place in this row."""
    return f"{one.ties} not shown slower" if one.ties else ""


def _explained(cases: Sequence[Summary]) -> str:
    return _EXPLAINED + (_LIMIT if any(case.share_of_limit is not None for case in cases) else "")


def _notes(cases: Sequence[Summary], roles: Collection[str]) -> Iterator[str]:
    if said := legend(case.lossy for case in cases):
        yield _MARKED.format(said) + (_NONE_LOST if WHOLE in roles else "")
    if any(case.fidelity not in ("", EXACT) for case in cases):
        yield _CONVERTED
