"""How long a run of a suite will take, judged by how long its cases took in an earlier one. Pure."""

import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import mean, median

from harness.model import Case
from harness.results.row import Row

_PAUSE = 120  # seconds: a longer gap between two rows is a run that was stopped and went on later


def seconds(cases: Sequence[Case], passes: int, earlier: Sequence[Row], time_limit: float = math.inf) -> float | None:
    """Return the seconds that so many passes over the cases take, or None when the earlier rows tell nothing.

    `earlier` are rows of one run in the order of runs.csv. The time of a run is the time until the next one started,
    with its worker, its verification and all; of a case with other rows only the call itself is taken to grow with
    them, up to the time limit in seconds.
    """
    timed = _timed(earlier)
    if not timed:
        return None
    by_case, by_transport = defaultdict(list), defaultdict(list)
    for row, taken in timed:
        by_case[row.transport, row.label].append(taken)
        by_transport[row.transport].append((row, taken))
    usual = median(taken for _, taken in timed)

    def of_one(case: Case) -> float:
        if same := by_case.get((case.transport.id, case.label)):
            return mean(same)
        others = by_transport.get(case.transport.id, [])
        scaled = sorted((_distance(case, row), _scaled(case, row, taken, time_limit)) for row, taken in others)
        nearest = [expected for distance, expected in scaled if distance == scaled[0][0]]
        return mean(nearest) if nearest else usual

    return passes * sum(map(of_one, cases))


def _timed(rows: Sequence[Row]) -> list[tuple[Row, float]]:
    starts = [datetime.fromisoformat(row.started_at) for row in rows]
    gaps = [(after - before).total_seconds() for before, after in pairwise(starts)]
    return [(row, gap) for row, gap in zip(rows, gaps, strict=False) if 0 <= gap < _PAUSE + (row.seconds or 0)]


def _distance(case: Case, row: Row) -> float:
    """How far a row is from the case in its number of rows: the logarithm of their ratio, 0 where there is none."""
    rows = case.parameters.get("rows")
    return abs(math.log(int(rows) / row.rows)) if rows and row.rows else 0.0


def _scaled(case: Case, row: Row, taken: float, time_limit: float) -> float:
    call, rows = row.seconds, case.parameters.get("rows")
    if not (call and rows and row.rows):
        return taken
    return max(taken - call, 0) + min(call * int(rows) / row.rows, time_limit)


def in_words(expected: float) -> str:
    """Return a time as a person says it: "less than a minute", "about 25 minutes", "about 3 hours"."""
    minutes = expected / 60
    if minutes < 1:
        return "less than a minute"
    if minutes < 90:
        whole = round(minutes) if minutes < 10 else 5 * round(minutes / 5)
        return f"about {whole} minute{'s' if whole > 1 else ''}"
    return f"about {round(minutes / 60)} hours"
