"""Round trips that a transport waits for, counted by what longer ones cost: the slope of its time over the round trip.

What a client sends without waiting for an answer costs one round trip together, however many messages it is; what the
server does is the same at every point. So the slope is the number of answers that a call has to wait for one after the
other. It is that of Theil and Sen, the median of the slopes of all pairs of runs, with its 95 % interval (Sen,
"Estimates of the regression coefficient based on Kendall's tau", JASA 63, 1968): a run that the machine disturbed does
not move it. Only runs without a limit of the rate count, for bytes that wait for the link hide a round trip.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.report.cells import significant
from harness.report.intervals import CONFIDENCE
from harness.report.points import in_common, in_order
from harness.report.table import Table
from harness.results.row import Row

_FEWEST = 3  # different round trips: through two a line always goes
_MILLI = 1e3


@dataclass(frozen=True)
class Slope:
    """How many round trips: the slope, and the ends of its interval.

    `holds`: of so many runs it holds the true slope in 95 % of all cases; of fewer in less.
    """

    value: float
    low: float
    high: float
    holds: bool = True


@dataclass(frozen=True)
class Trips:
    """A transport at some rows: round trips of a call and of connecting (None where that is not told)."""

    experiment: str
    transport: str
    operation: str
    system: str
    parameters: dict[str, str]
    call: Slope
    connecting: Slope | None


def slope(pairs: Sequence[tuple[float, float]]) -> Slope:
    """Return how many round trips the seconds of some runs hold, each given as (seconds of a round trip, seconds)."""
    from scipy import stats  # not at the top: a second that a run without links need not wait

    found = stats.theilslopes([taken for _, taken in pairs], [trip for trip, _ in pairs], CONFIDENCE)
    return Slope(float(found.slope), float(found.low_slope), float(found.high_slope), _holds(trip for trip, _ in pairs))


def _holds(trips: Iterable[float]) -> bool:
    """Say whether as many runs can tell 95 %: chance puts them in order, up or down, in 2 of all their orders."""
    counts = Counter(trips)
    orders = math.factorial(counts.total()) // math.prod(map(math.factorial, counts.values()))
    return 2 / orders <= 1 - CONFIDENCE


def counted(rows: Iterable[Row]) -> list[Trips]:
    """Return the round trips of every transport that ran over at least _FEWEST different ones without a limit."""
    curves: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.ok and "rtt_ms" in row.parameters and row.parameters.get("mbit_per_s", "0") == "0":
            rest = {name: value for name, value in row.parameters.items() if name != "rtt_ms"}
            curves[row.experiment, row.system, row.operation, row.transport, in_order(rest)].append(row)
    found = []
    for key in sorted(curves, key=str):
        runs = curves[key]
        if len({row.parameters["rtt_ms"] for row in runs}) >= _FEWEST:
            one = runs[0]
            rest = {name: value for name, value in one.parameters.items() if name not in ("rtt_ms", "mbit_per_s")}
            taken, connecting = _slope(runs, lambda row: row.seconds), _slope(runs, lambda row: row.connect_seconds)
            if taken:
                found.append(Trips(one.experiment, one.transport, one.operation, one.system, rest, taken, connecting))
    return found


def tables(rows: Iterable[Row]) -> list[Table]:
    """Return the table of round trips; none of a run without links."""
    found = counted(rows)
    if not found:
        return []
    sure = all(of.holds for one in found for of in (one.call, one.connecting) if of)
    interval = "95 %" if sure else "interval"
    shared = in_common([one.parameters for one in found])
    varying = [name for name in found[0].parameters if len({one.parameters.get(name) for one in found}) > 1]
    return [
        Table(
            f"Round trips{f', {shared}' if shared else ''}",
            ("transport", "operation", *varying, "of a call", interval, "of connecting", interval),
            tuple(
                (
                    one.transport,
                    one.operation,
                    *(one.parameters.get(name, "") for name in varying),
                    *_cells(one.call),
                    *_cells(one.connecting),
                )
                for one in found
            ),
            (
                "how many round trips the time holds: the slope of seconds over the round trip, of runs without a "
                "limit of the rate (docs/explanation/suites/networks.md); where its interval holds 0, none is shown",
            ),
            wide=frozenset({0, 1}),
        )
    ]


def _slope(runs: Sequence[Row], figure: Callable[[Row], float | None]) -> Slope | None:
    pairs = [(float(row.parameters["rtt_ms"]) / _MILLI, taken) for row in runs if (taken := figure(row)) is not None]
    return slope(pairs) if len({trip for trip, _ in pairs}) >= _FEWEST else None


def _cells(one: Slope | None) -> tuple[str, str]:
    return (significant(one.value, 2), f"{one.low:.1f} to {one.high:.1f}") if one else ("", "")
