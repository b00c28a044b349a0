"""Which cases are not to be relied on, and why: they keep their figures and their place, and get a mark."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from harness.report.summary import Summary
from harness.results.row import Row

MARK = "!"
# Of the time of a call, taken by the host or by a CPU limit. No published threshold is known; with 2 % a difference of
# 5 % between two transports is still mostly their own.
LOST_SHARE = 0.02
# /proc/stat counts in hundredths of a second (USER_HZ): so much may be rounding.
_TICK_SECONDS = 0.01
# pyperf warns of an unstable benchmark from these on: pyperf/_cli.py, format_checks.
SPREAD = 0.10  # sample standard deviation, of the mean
OUTERMOST = 0.50  # distance of the smallest and the largest from the mean, of the mean
# hyperfine warns of a slow first run above this distance from the median in median absolute deviations, where 1.4826
# makes a standard deviation of one: src/outlier_detection.rs.
OUTLIER = 1.4826 * 10
_FEWEST = 3  # of two runs each is as far from their median as the other


def reasons(rows: Sequence[Row]) -> list[str]:
    """Return why the ok runs of one case are unstable: `steal`, `throttled`, `slow first pass`, `spread`."""
    seconds = [row.took for row in rows]
    found = {
        "steal": any(_lost(row, "steal_seconds") for row in rows),
        "throttled": any(_lost(row, "throttled_seconds") for row in rows),
        "slow first pass": _slow_first_pass(rows),
        "spread": _spread(seconds),
    }
    return [reason for reason, holds in found.items() if holds]


def note(cases: Sequence[Summary], names: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return a line with the reasons among these cases, or none: the most frequent alone, others with their cases.

    `names` are those of the points of a grid by their labels: then the points are named, too.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for case in cases:
        if case.unstable:
            places = found.setdefault(case.unstable, {}).setdefault(case.transport, [])
            places.append((names or {}).get(case.label, ""))
    if not found:
        return ()
    first, *others = sorted(found, key=lambda reasons: -sum(map(len, found[reasons].values())))
    named = [f"{reasons}: {', '.join(_at(*item) for item in found[reasons].items())}" for reasons in others]
    return (f"{MARK} unstable ({first}{''.join(f' | {text}' for text in named)})",)


def _at(transport: str, places: list[str]) -> str:
    named = "; ".join(filter(None, places))
    return f"{transport} at {named}" if named else transport


def _lost(row: Row, column: str) -> bool:
    lost = getattr(row, column)
    return lost is not None and lost - _TICK_SECONDS > LOST_SHARE * row.took


def _slow_first_pass(rows: Sequence[Row]) -> bool:
    first = next((row.took for row in rows if row.pass_number == 1), None)
    if first is None or len(rows) < _FEWEST:
        return False
    median = statistics.median(row.took for row in rows)
    deviation = statistics.median(abs(row.took - median) for row in rows)
    return first - median > OUTLIER * deviation


def _spread(seconds: Sequence[float]) -> bool:
    if len(seconds) < 2:
        return False
    mean = statistics.fmean(seconds)
    outermost = max(mean - min(seconds), max(seconds) - mean)
    return statistics.stdev(seconds) >= SPREAD * mean or outermost >= OUTERMOST * mean
