"""Ranks with ties: a place that few and uneven runs do not show is not given.

The rank of a case is 1 plus the number of other cases of its table that are shown to be faster: whose ratio to it has
an interval below 1, corrected for how many others there are (see `intervals`). A rank never rests on a chain of
neighbours that tie one by one. A case that scatters widely may share the rank of one with a smaller median.

A case of which nothing is known but its median has a place in plain order, not one that was shown, and it is marked.
Bounds and A/A controls have no rank: nobody is behind them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model import Operation, Origin
from harness.report.intervals import slower
from harness.report.summary import Summary

SHARED, UNSURE = "=", "?"
NOTES = {
    SHARED: "= shares its rank: as many others are shown to be faster, corrected for the size of the table",
    UNSURE: "? a place by the median alone: so few runs show no difference",
}


# The operation whose bounds a case is set against.
BOUNDED_BY: dict[str, Operation] = {
    Operation.WRITE: Operation.WRITE,
    Operation.READ: Operation.READ,
    Operation.LOAD: Operation.WRITE,
    Operation.UNLOAD: Operation.READ,
}
Place = tuple[str, str, str, str | int | None]


def is_bound(case: Summary) -> bool:
    """Say whether a case bounds the transports of its table; empty calls and copies are tables of their own."""
    return case.origin == Origin.LIMIT and case.operation in (Operation.WRITE, Operation.READ)


def bounded_at(case: Summary) -> Place:
    """Return where the bounds of a case stand: at its parameters, those of a load or an unload at its rows alone."""
    operation = BOUNDED_BY.get(case.operation, "")
    return case.experiment, case.system, operation, case.label if operation == case.operation else case.rows


def limits(cases: Iterable[Summary]) -> dict[Place, Summary]:
    """Return the fastest bound at every place that has one."""
    found: dict[Place, Summary] = {}
    for case in cases:
        if case.n and is_bound(case):
            for where in (case.label, case.rows):
                place = (case.experiment, case.system, case.operation, where)
                found[place] = min(case, found.get(place, case), key=lambda bound: bound.took)
    return found


def places(cases: Sequence[Summary]) -> list[tuple[int | None, str]]:
    """Return the rank and the mark (SHARED, UNSURE or none) of each summary of one table, in their order."""
    competing = [case for case in cases if case.n and case.origin != Origin.CONTROL and not is_bound(case)]
    among = max(len(competing) - 1, 1)
    ranks = {
        id(case): 1 + sum(other is not case and is_slower(case, other, among) for other in competing)
        for case in competing
    }
    shared = Counter(ranks.values())
    found: list[tuple[int | None, str]] = []
    for case in cases:
        rank = ranks.get(id(case))
        unsure = UNSURE if case.estimate is None else ""
        found.append((rank, "" if rank is None else unsure or (SHARED if shared[rank] > 1 else "")))
    return found


def shown(case: Summary) -> str:
    """Return a rank with its mark as text: `1`, `2=`, `3?`; `A/A` for a control, empty without an ok run."""
    if case.n and case.origin == Origin.CONTROL:
        return "A/A"
    return f"{case.rank}{case.tie or ''}" if case.rank else ""


def notes(cases: Sequence[Summary]) -> tuple[str, ...]:
    """Return a line for each mark that is among the ranks of these cases."""
    marks = {case.tie for case in cases}
    return tuple(note for mark, note in NOTES.items() if mark in marks)


def is_slower(case: Summary, other: Summary, among: int = 1) -> bool:
    """Say whether a case is shown to take longer than another one; by the medians where nothing else is known."""
    if case.estimate is None or other.estimate is None:
        return other.took < case.took
    return slower(case.estimate, other.estimate, among)
