"""Round trips that a transport waits for, counted by what longer ones cost: the slope of its time over the round trip.

What a client sends without waiting for an answer costs one round trip together, however many messages it is; what the
server does is the same at every point. So the slope is the number of answers that a call has to wait for one after the
other. It is that of the line of `costs`, fixed + slope x round trip, whose errors count as shares of it. Only runs
without a limit of the rate count, for bytes that wait for the link hide a round trip.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.report.cells import significant
from harness.report.costs import fitted
from harness.report.intervals import RunSpread, around, draws, draws_of, estimate, middle, spread_of
from harness.report.points import in_common, in_order
from harness.report.text_tables import TextTable
from harness.results.row import Row

_FEWEST = 3  # different round trips: through two a line always goes
_MILLI = 1e3


@dataclass(frozen=True)
class Slope:
    """How many round trips: the slope, and the ends of its interval; they are None of too few runs."""

    value: float
    low: float | None
    high: float | None


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


def slope(runs: Mapping[float, Sequence[float]], spread: RunSpread, name: str) -> Slope:
    """Return how many round trips the seconds of some runs hold, given by the seconds of a round trip."""
    import numpy as np

    trips = sorted(runs)
    value = float(fitted(trips, np.array([statistics.median(runs[trip]) for trip in trips]))[1])
    known = [found for trip in trips if (found := estimate(runs[trip], spread))]
    if len(known) < len(trips):
        return Slope(value, None, None)
    source = draws_of(name)
    return Slope(value, *around(value, middle(fitted(trips, np.stack([draws(one, source) for one in known], -1))[1])))


def counted(rows: Iterable[Row]) -> list[Trips]:
    """Return the round trips of every transport that ran over at least _FEWEST different ones without a limit."""
    curves: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.ok and "rtt_ms" in row.parameters and row.parameters.get("mbit_per_s", "0") == "0":
            rest = {name: value for name, value in row.parameters.items() if name != "rtt_ms"}
            curves[row.experiment, row.system, row.operation, row.transport, in_order(rest)].append(row)
    slopes = _slopes([run for runs in curves.values() for run in runs])
    found = []
    for key in sorted(curves, key=str):
        runs = curves[key]
        if len({row.parameters["rtt_ms"] for row in runs}) >= _FEWEST:
            one = runs[0]
            rest = {name: value for name, value in one.parameters.items() if name not in ("rtt_ms", "mbit_per_s")}
            taken, connecting = (of(runs, str(key)) for of in slopes)
            if taken:
                found.append(Trips(one.experiment, one.transport, one.operation, one.system, rest, taken, connecting))
    return found


def tables(rows: Iterable[Row]) -> list[TextTable]:
    """Return the table of round trips; none of a run without links."""
    found = counted(rows)
    if not found:
        return []
    shared = in_common([one.parameters for one in found])
    varying = [name for name in found[0].parameters if len({one.parameters.get(name) for one in found}) > 1]
    return [
        TextTable(
            f"Round trips{f', {shared}' if shared else ''}",
            ("transport", "operation", *varying, "of a call", "95 %", "of connecting", "95 %"),
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


def _slopes(rows: Sequence[Row]) -> list[Callable[[Sequence[Row], str], Slope | None]]:
    """Return what counts the round trips of a call, and of connecting, in a run that scatters as these rows do."""
    return [partial(_slope, figure=figure, spread=_spread(rows, figure)) for figure in ("seconds", "connect_seconds")]


def _spread(rows: Sequence[Row], figure: str) -> RunSpread:
    cases: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        if taken := getattr(row, figure):
            cases[row.case].append(taken)
    return spread_of(cases.values())


def _slope(runs: Sequence[Row], name: str, figure: str, spread: RunSpread) -> Slope | None:
    taken: dict[float, list[float]] = defaultdict(list)
    for row in runs:
        if getattr(row, figure):
            taken[float(row.parameters["rtt_ms"]) / _MILLI].append(getattr(row, figure))
    return slope(taken, spread, f"{name}/{figure}") if len(taken) >= _FEWEST else None


def _cells(one: Slope | None) -> tuple[str, str]:
    if one is None:
        return "", ""
    sure = one.low is not None and one.high is not None
    return significant(one.value, 2), f"{one.low:.1f} to {one.high:.1f}" if sure else "too few runs to tell"
