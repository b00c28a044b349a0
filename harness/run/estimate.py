"""How long a run of a suite will take, estimated from its cases' times in an earlier run. Pure."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from harness.machine.calibration import Rates, slower
from harness.model import Case, Operation, Origin, Run, Value
from harness.results.environment import made_on
from harness.results.folder import Facts, StoredRun
from harness.results.row import Row

_PAUSE = 120  # seconds: a longer gap between two rows is a pause of a run that was resumed later
_KNOWN = 0.5  # share of a run's transports that an earlier run must have
_DOUBT = 20.0  # seconds of runs after which half of a deviation is believed
_LEAST = 0.01  # minimum seconds of a run
# A write into a table with rows takes longer by this many times the server's own statement over those rows: they are
# loaded and vacuumed, the index cannot be rebuilt, and they are removed. From 11 pairs of runs on a busy machine.
_LOADS = 4.0

Key = tuple[str, str, str, int]  # identifies a run


@dataclass(frozen=True)
class Judge:
    """The earlier run for the estimate, with its name and machine in words."""

    run: StoredRun
    whose: str
    here: bool

    def slowdown(self, calibration: Facts) -> float:
        """Return how many times slower the machine is now than in that run: the median of the calibrated rates.

        An uncalibrated run of this machine counts as one at its best. Without any calibration the result is 1.
        """
        then = self._rates or ([calibration["best"]] if self.here and calibration else [])
        if not (then and calibration):
            return 1.0
        return median(median(slower(calibration["now"], rates).values()) for rates in then)

    def corrected(self, expected: float, calibration: Facts) -> str:
        """Return the estimate for the machine as it is now, and why; empty if its words stay the same."""
        times = self.slowdown(calibration)
        now = in_words(expected * times)
        if now == in_words(expected):
            return ""
        how = f"{times:.1f} times slower" if times > 1 else f"{1 / times:.1f} times faster"
        than = "at its best" if self.here and not self._rates else "the machine of that run was"
        return f"{now}, because this machine is now {how} than {than}"

    @property
    def _rates(self) -> list[Rates]:
        return [one["now"] for one in self.run.environment.get("calibrations", ())]


def judge(runs: Iterable[StoredRun], reference: Path, machine: Facts, cases: Sequence[Case]) -> Judge | None:
    """Return an ended run with at least half of these cases' transports for the estimate, or None.

    `runs` are newest first, with the one in the folder `reference` last. A run of this machine is preferred.
    """
    elsewhere = None
    for run in runs:
        is_reference = run.folder == reference
        if not (run.ended or is_reference) or _known(cases, run.rows) < _KNOWN:
            continue
        name = "the reference run" if is_reference else f"run {run.name}"
        if made_on(run.environment, machine):
            # A reference run came with the lab: its machine may have the name and the size of this one by chance.
            where = f"a machine like this one ({_cores(run)})" if is_reference else "this machine"
            return Judge(run, f"as {name} took on {where}", True)
        elsewhere = elsewhere or Judge(run, f"as {name} took on another machine ({_cores(run)})", False)
    return elsewhere


def _cores(run: StoredRun) -> str:
    machine = run.environment["machine"]
    return f"{machine['cores']} cores of {machine['cpu'] or machine['architecture']}"


def _known(cases: Sequence[Case], rows: Sequence[Row]) -> float:
    wanted, tried = {case.transport.id for case in cases}, {row.transport for row in rows}
    return len(wanted & tried) / len(wanted)


class Pace:
    """The time that the remaining runs take: each one's expected time, corrected by the finished runs."""

    def __init__(self, expected: Mapping[Key, float], doubt: float) -> None:
        self._expected, self._doubt = expected, doubt
        self._ahead, self._behind = sum(expected.values()), 0.0

    def done(self, key: Key) -> None:
        """Count a run as finished."""
        self._ahead -= self._expected[key]
        self._behind += self._expected[key]

    def left(self, elapsed: float) -> float:
        """Return the seconds until the end, given the seconds since the start; at least one run must be done.

        At first the expectation counts as correct.
        """
        return max(self._ahead, 0.0) * (elapsed + self._doubt) / (self._behind + self._doubt)


def pace(runs: Sequence[Run], earlier: Sequence[Row], time_limit: float = math.inf, slowdown: float = 1.0) -> Pace:
    """Return the pace of these runs, this many times slower than earlier rows; without any, all runs count the same."""
    of_each = _of_each([run.case for run in runs], earlier, time_limit)
    if of_each is None:
        return Pace({run.key: 1.0 for run in runs}, 0.0)
    return Pace({run.key: max(one, _LEAST) * slowdown for run, one in zip(runs, of_each, strict=True)}, _DOUBT)


def seconds(cases: Sequence[Case], passes: int, earlier: Sequence[Row], time_limit: float = math.inf) -> float | None:
    """Return the seconds for this many passes over the cases, or None if the earlier rows do not show it.

    `earlier` are rows of one run in the order of runs.csv. A run's time lasts until the next run's start, including its
    worker and verification. For a case with another number of rows, only the call itself is scaled, up to the time
    limit in seconds. The rows that a table has before a write are loaded as the server's bound would.
    """
    of_each = _of_each(cases, earlier, time_limit)
    return None if of_each is None else passes * sum(of_each)


def scaled(cases: Sequence[Case], earlier: Sequence[Row]) -> int:
    """Return the number of cases without an earlier row: their time is scaled from other cases."""
    known = {(row.transport, row.label) for row in earlier}
    return sum((case.transport.id, case.label) not in known for case in cases)


def _of_each(cases: Sequence[Case], earlier: Sequence[Row], time_limit: float) -> list[float] | None:
    timed = _timed(earlier)
    if not timed:
        return None
    by_case, by_transport = defaultdict(list), defaultdict(list)
    for row, taken in timed:
        by_case[row.transport, row.label].append(taken)
        by_transport[row.transport].append((row, taken))
    typical, loading = median(taken for _, taken in timed), _loading(earlier)

    def of_one(case: Case) -> float:
        if same := by_case.get((case.transport.id, case.label)):
            return mean(same)
        others = by_transport.get(case.transport.id, [])
        found = sorted((_distance(case, row), _scaled(case, row, taken, time_limit, loading)) for row, taken in others)
        nearest = [expected for distance, expected in found if distance == found[0][0]]
        return mean(nearest) if nearest else typical

    return [of_one(case) for case in cases]


def _timed(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    starts = [datetime.fromisoformat(row.started_at) for row in rows]
    gaps = [(after - before).total_seconds() for before, after in pairwise(starts)]
    return [(row, gap) for row, gap in zip(rows, gaps, strict=False) if 0 <= gap < _PAUSE + (row.seconds or 0)]


def _loading(rows: Sequence[Row]) -> dict[str, float]:
    """Return the seconds a row of each server's slowest bound of a write: that of rows in no order."""
    of_each = defaultdict(list)
    for row in rows:
        if row.origin == Origin.LIMIT and row.operation == Operation.WRITE and row.seconds and row.rows:
            of_each[row.system, row.transport].append(row.seconds / row.rows)
    slowest: dict[str, float] = defaultdict(float)
    for (system, _), seconds in of_each.items():
        slowest[system] = max(slowest[system], median(seconds))
    return slowest


def _distance(case: Case, row: Row) -> float:
    """The distance of a row from the case in numbers of rows: the logarithms of their ratios, 0 without rows."""
    rows = case.parameters.get("rows")
    of_table = abs(math.log((1 + _before(case.parameters)) / (1 + _before(row.parameters))))
    return of_table + (abs(math.log(int(rows) / row.rows)) if rows and row.rows else 0.0)


def _before(parameters: Mapping[str, Value]) -> int:
    return int(parameters.get("rows_before", 0))


def _scaled(case: Case, row: Row, taken: float, time_limit: float, loading: Mapping[str, float]) -> float:
    call, rows = row.seconds, case.parameters.get("rows")
    if not (call and rows and row.rows):
        return taken
    more = max(_before(case.parameters) - _before(row.parameters), 0)
    loads = _LOADS * more * loading.get(row.system, call / row.rows)
    return max(taken - call, 0) + min(call * int(rows) / row.rows, time_limit) + loads


def in_words(expected: float) -> str:
    """Return a duration in words: "less than a minute", "about 25 minutes", "about 3 hours"."""
    minutes = expected / 60
    if minutes < 1:
        return "less than a minute"
    if minutes < 90:
        whole = round(minutes) if minutes < 10 else 5 * round(minutes / 5)
        return f"about {whole} minute{'s' if whole > 1 else ''}"
    return f"about {round(minutes / 60)} hours"
