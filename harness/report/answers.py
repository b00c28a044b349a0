"""What a run answers: for each system, operation and frame the fastest transport, and what the usual one costs.

The fastest is the one with the smallest median of those whose values came back exact; bounds and A/A controls are no
transports. How many times as long another one takes is the ratio of the medians, with its interval (see `intervals`):
one that holds 1 shows no difference. The fastest is found in the same runs: intervals are corrected for how many it was
found among. `ties` says how many others are not shown to be slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from operator import attrgetter

from harness.model import Origin, Status
from harness.report.intervals import Interval, around, leaves_out_one, ratio
from harness.report.points import points
from harness.report.ranks import is_slower
from harness.report.summary import Summary
from harness.suites.suite import AnswersWanted

FRAMES = ("pandas", "polars")
EXACT = "exact"
_COMPETING = (Origin.PUBLISHED, Origin.BEYOND)


@dataclass(frozen=True)
class Rival:
    """A transport beside the fastest: how many times as long it takes, and the interval of that.

    Both are None where one of the two has no figures; the interval is None where nothing is known of the scatter, and
    of the fastest itself, too.
    """

    case: Summary
    factor: float | None
    interval: Interval | None

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return leaves_out_one(self.interval)


@dataclass(frozen=True)
class Leaders:
    """What a run says of one system, operation and frame.

    `fastest` is None where no transport is exact. `ties` is how many other exact ones are not shown to be slower.
    `whole` is the fastest that is not declared to lose any kind of values, where that is
    another one. `usual` are the usual ones, the one that the fastest is set against first. `leanest` is the exact one
    with the smallest peak of memory. How near the fastest comes to the fastest bound is its `share_of_limit`.
    """

    system: str
    operation: str
    frame: str
    rows: int | None
    fastest: Summary | None
    ties: int
    whole: Rival | None
    usual: tuple[Rival, ...]
    leanest: Rival | None


def answers(wanted: AnswersWanted, summaries: Sequence[Summary]) -> list[Leaders]:
    """Return an answer for every frame, system and operation that the experiment has transports for, in this order.

    Of an experiment with several amounts of data the largest counts.
    """
    return [_answer(cases, wanted.usual) for cases in competing(wanted, summaries).values()]


def competing(wanted: AnswersWanted, summaries: Sequence[Summary]) -> dict[tuple[str, str, str], list[Summary]]:
    """Return the transports that compete in each cell: frame by frame, by its frame, system and operation."""
    cells: dict[tuple[str, str, str], list[Summary]] = {}
    for frame in FRAMES:
        for case in summaries:
            if case.experiment == wanted.experiment and case.frame == frame and case.origin in _COMPETING:
                cells.setdefault((frame, case.system, case.operation), []).append(case)
    return {key: _at_the_largest(cases) for key, cases in cells.items()}


def _at_the_largest(cases: Sequence[Summary]) -> list[Summary]:
    largest = points(cases)[-1].label
    return [case for case in cases if case.label == largest]


def _answer(cases: Sequence[Summary], usual: Sequence[str]) -> Leaders:
    exact = sorted(filter(is_exact, cases), key=attrgetter("took"))
    fastest = exact[0] if exact else None
    whole = next((case for case in exact if not case.lossy), None)
    lean = min((case for case in exact if case.peak_rss_bytes is not None), key=_peak, default=None)
    among = max(len(exact) - 1, 1)
    return Leaders(
        cases[0].system,
        cases[0].operation,
        cases[0].frame,
        next((case.rows for case in cases if case.rows is not None), None),
        fastest,
        sum(not is_slower(case, fastest, among) for case in exact[1:]) if fastest else 0,
        _beside(whole, fastest, among) if whole and whole is not fastest else None,
        tuple(_beside(case, fastest, among) for case in usual_among(cases, usual)),
        _beside(lean, fastest, among) if lean else None,
    )


def usual_among(cases: Sequence[Summary], usual: Sequence[str]) -> list[Summary]:
    """Return the cases of usual transports, in the order of the ids and globs that name these, each once."""
    named = {case.transport: case for pattern in usual for case in cases if fnmatchcase(case.transport, pattern)}
    return list(named.values())


def is_exact(case: Summary) -> bool:
    """Say whether every run of a case was ok and every value came back exact."""
    return case.status == Status.OK and case.fidelity == EXACT


def _peak(case: Summary) -> int:
    return case.peak_rss_bytes or 0


def _beside(case: Summary, fastest: Summary | None, among: int) -> Rival:
    if not case.n or fastest is None:
        return Rival(case, None, None)
    factor = case.took / fastest.took
    if case is fastest or case.estimate is None or fastest.estimate is None:
        return Rival(case, factor, None)
    return Rival(case, factor, around(factor, ratio(case.estimate, fastest.estimate, among)))
