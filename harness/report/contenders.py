"""Which transports a run leaves out unless it is asked for all: those that the reference run shows to be no contenders.

In each cell (a system, operation and frame) the fastest is set against every other transport beyond the article. A
contender's values came back exact, and its interval is not wholly above FACTOR times the upper end of the interval of
the fastest or, of one that is not declared to lose anything, of the fastest such. The leanest and the usual transport
are contenders too, and so is one of which the reference run knows nothing: because it is younger, or because the lab of
that run had no means to run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model import Origin, Status
from harness.report.answers import Leaders, answers, competing, is_exact
from harness.report.summary import Summary
from harness.results.row import Row
from harness.suites.suite import AnswersWanted

FACTOR = 1.25


@dataclass(frozen=True)
class NoContender:
    """A transport that is no contender: how its values came back or how it ended, and where its interval begins.

    Up to `limit_seconds` it would be one; both are None where its values are not exact.
    """

    transport: str
    values: str
    low_seconds: float | None
    limit_seconds: float | None


def left_out(wanted: AnswersWanted, rows: Iterable[Row], summaries: Sequence[Summary]) -> list[NoContender]:
    """Return the transports beyond the article that are no contenders by these results, in the order of their ids."""
    cells = competing(wanted, summaries)
    found = []
    for one in answers(wanted, rows, summaries):
        kept = _kept(one)
        cases = cells[one.frame, one.system, one.operation]
        found += [_left_out(one, case) for case in cases if case.transport not in kept and not _contends(one, case)]
    return sorted(found, key=lambda case: case.transport)


def _kept(one: Leaders) -> set[str]:
    """Return the transports that stand in an answer; of several usual ones the first."""
    beside = [one.whole, *one.usual[:1], one.leanest]
    return {found.case.transport for found in beside if found}


def _contends(one: Leaders, case: Summary) -> bool:
    if case.origin != Origin.BEYOND or Status.UNAVAILABLE in case.status:
        return True
    limit = _limit(one, case)
    return limit is not None and _low(case) <= limit


def _limit(one: Leaders, case: Summary) -> float | None:
    """Return up to where the interval of a contender may begin; None of a case that is not exact."""
    if not is_exact(case) or one.fastest is None:
        return None
    whole = one.whole.case if one.whole and not case.lossy else one.fastest
    return FACTOR * max(_high(one.fastest), _high(whole))


def _left_out(one: Leaders, case: Summary) -> NoContender:
    limit = _limit(one, case)
    values = case.fidelity.partition(":")[0] if case.status == Status.OK else case.status
    return NoContender(case.transport, values, None if limit is None else _low(case), limit)


def _low(case: Summary) -> float:
    return case.interval[0] if case.interval else case.took


def _high(case: Summary) -> float:
    return case.interval[1] if case.interval else case.took
