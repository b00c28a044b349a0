"""Which transports a run leaves out unless it is asked for all: those that the reference run shows to be no contenders.

In each cell (a system, operation and frame) the fastest is set against every other transport beyond the article. A
contender's values came back exact, and it is not shown to take more than FACTOR times as long as the fastest or, where
it is not declared to lose anything, as the fastest such. The leanest and the usual transport
are contenders too, and so is one of which the reference run knows nothing: because it is younger, or because the lab of
that run had no means to run it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import Origin, Status
from harness.report.answers import Leaders, answers, competing, is_exact
from harness.report.intervals import ratio
from harness.report.summary import Summary
from harness.suites.suite import AnswersWanted

FACTOR = 1.25


@dataclass(frozen=True)
class NoContender:
    """A transport that is no contender: how its values came back or how it ended, and how much slower it is at least.

    `at_least` is the lower end of the interval of how many times as long it takes; None where its values are not exact.
    """

    transport: str
    values: str
    at_least: float | None


def left_out(wanted: AnswersWanted, summaries: Sequence[Summary]) -> list[NoContender]:
    """Return the transports beyond the article that are no contenders by these results, in the order of their ids."""
    cells = competing(wanted, summaries)
    found: list[NoContender] = []
    for one in answers(wanted, summaries):
        kept = _kept(one)
        cases = cells[one.frame, one.system, one.operation]
        among = max(sum(map(is_exact, cases)) - 1, 1)
        for case in cases:
            at_least = _at_least(one, case, among)
            if case.transport not in kept and not _contends(case, at_least):
                values = case.fidelity.partition(":")[0] if case.status == Status.OK else case.status
                found.append(NoContender(case.transport, values, at_least))
    return sorted(found, key=lambda case: case.transport)


def _kept(one: Leaders) -> set[str]:
    """Return the transports that stand in an answer; of several usual ones the first."""
    beside = [one.whole, *one.usual[:1], one.leanest]
    return {found.case.transport for found in beside if found}


def _contends(case: Summary, at_least: float | None) -> bool:
    if case.origin != Origin.BEYOND or Status.UNAVAILABLE in case.status:
        return True
    return at_least is not None and at_least <= FACTOR


def _at_least(one: Leaders, case: Summary, among: int) -> float | None:
    """Return how many times as long as the fastest a case takes at least; None of one that is not exact."""
    if not is_exact(case) or one.fastest is None:
        return None
    best = one.whole.case if one.whole and not case.lossy else one.fastest
    if case.estimate is None or best.estimate is None:
        return case.took / best.took
    return ratio(case.estimate, best.estimate, among)[0]
