"""One line about the machine of a run: its speed, the time that it lost, and the ranks that this could change.

The line compares a fixed job before and after the run with the machine's best. It gives the share of the calls that a
host or a CPU limit took. It counts the slow spells, in which consecutive runs took longer than their cases usually do.
No figure depends on it. The ranks that it could change are those that differ without the affected runs.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from harness.machine.calibration import slower
from harness.report.figures import listed, numbered
from harness.report.summary import Summary, summarise
from harness.results.folder import Facts
from harness.results.row import Row

Key = tuple[str, str, str, int]

# Of the time of a call, taken by the host or by a CPU limit. No published threshold is known; with 2 % a difference of
# 5 % between two transports is still mostly their own.
LOST_SHARE = 0.02
_TICK_SECONDS = 0.01  # /proc/stat counts in hundredths of a second (USER_HZ): this much may be rounding
SPELL, SLOWER = 8, 1.15  # the number of consecutive runs of a slow spell, and their factor over their cases
_NAMED = 5


def said(environment: Facts, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[str]:
    """Return the line, and one about the ranks that could differ; nothing without an ok run."""
    good = sorted((row for row in rows if row.ok), key=lambda row: (row.order, row.key))
    if not good:
        return []
    spells = slow_spells(good)
    found = [*_calibrated(environment.get("calibrations", ())), _lost(good), _spelled(spells, len(good))]
    disturbed = {row.key for spell in spells for row in spell} | {
        row.key for row in good if _lost_by(row) > LOST_SHARE * row.took
    }
    changed = could_change(rows, summaries, disturbed) if disturbed else []
    told = f"Without these runs the ranks of {listed(changed, _NAMED)} would differ." if changed else ""
    nothing = "Without these runs all ranks would be the same." if disturbed and not changed else ""
    return [f"The machine: {'; '.join(found)}.", *filter(None, (told, nothing))]


def slow_spells(good: Sequence[Row]) -> list[list[Row]]:
    """Return the runs of each slow spell, of ok runs in their order."""
    calls: dict[object, list[float]] = defaultdict(list)  # of a case in one run of the lab: each has its pace
    for row in good:
        calls[row.run_id, row.case].append(row.took)
    medians = {key: statistics.median(taken) for key, taken in calls.items()}
    ratios = [row.took / medians[row.run_id, row.case] for row in good]
    slow = {
        place
        for start in range(len(good) - SPELL + 1)
        if statistics.median(ratios[start : start + SPELL]) > SLOWER
        for place in range(start, start + SPELL)
    }
    spells: list[list[Row]] = []
    for place in sorted(slow):
        if place - 1 not in slow:
            spells.append([])
        spells[-1].append(good[place])
    return spells


def could_change(rows: Sequence[Row], summaries: Sequence[Summary], disturbed: Collection[Key]) -> list[str]:
    """Return the transports of cases whose rank differs without some runs, if they still have runs."""
    without = {
        (case.experiment, case.label, case.transport): case.rank
        for case in summarise([row for row in rows if row.key not in disturbed], ())
    }
    missing = object()
    return list(
        dict.fromkeys(
            case.transport
            for case in summaries
            if without.get((case.experiment, case.label, case.transport), missing) not in (case.rank, missing)
        )
    )


def _calibrated(calibrations: Sequence[dict[str, dict[str, float]]]) -> Iterator[str]:
    """Say how much slower than its best the machine was at most, at the start and the end of a run."""
    if not calibrations:
        yield "not calibrated"
        return
    every = [slower(one["now"], one["best"]) for one in calibrations]
    worst = {name: max(one.get(name, 1.0) for one in every) for name in every[0]}
    parts = ", ".join(f"{name} {times - 1:.0%}" for name, times in worst.items())
    yield f"slower than at its best, at most, in two seconds before and after: {parts}"


def _lost(good: Sequence[Row]) -> str:
    known = [row for row in good if row.steal_seconds is not None]
    if not known:
        return "what the host took is not known"
    total = sum(row.took for row in known)
    share = sum((row.steal_seconds or 0.0) + (row.throttled_seconds or 0.0) for row in known) / total
    return f"the host or a CPU limit took {share:.1%} of the calls"


def _spelled(spells: Sequence[Sequence[Row]], runs: int) -> str:
    many = sum(map(len, spells))
    return f"{numbered(len(spells), 'slow spell')} with {many} of {runs:,} runs" if spells else "no slow spell"


def _lost_by(row: Row) -> float:
    return max(row.steal_seconds or 0.0, row.throttled_seconds or 0.0) - _TICK_SECONDS
