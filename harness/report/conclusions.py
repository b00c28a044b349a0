"""The conclusions of a run, in sentences a user can act on: ratios of points and transports with their uncertainty.

A ratio is that of geometric means, with its 95 % interval (see `intervals`). A ratio whose interval contains 1 is not
called a difference. If one value is compared with several, the intervals are corrected so that all hold together.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from harness.model import CONTROL, Origin
from harness.report.crossings import fitted
from harness.report.figures import described, in_common, in_order, natural, significant
from harness.report.intervals import RunSpread, around, draws, draws_of, estimate, leaves_out_one, middle, spread_of
from harness.report.intervals import ratio as ratio_interval
from harness.report.summary import Summary
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.comparisons import AnyComparison, Comparison, Sweep, Versus


@dataclass(frozen=True)
class Ratio:
    """A ratio of times of `n` runs: that of their geometric means, and the ends of its interval (None of too few)."""

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low is not None and self.high is not None and leaves_out_one((self.low, self.high))


def ratio(one: Sequence[float], other: Sequence[float], spread: RunSpread, among: int = 1) -> Ratio:
    """Return the ratio of two sets of seconds of a run with this spread, as one of `among` that hold together."""
    value = statistics.geometric_mean(one) / statistics.geometric_mean(other)
    ours, theirs, runs = estimate(one, spread), estimate(other, spread), min(len(one), len(other))
    if ours is None or theirs is None:
        return Ratio(value, None, None, runs)
    return Ratio(value, *ratio_interval(ours, theirs, among), runs)


def conclusions(rows: Iterable[Row], comparisons: Sequence[AnyComparison]) -> list[str]:
    """Return a sentence for every comparison, transport and combination of other parameters that has both sides."""
    good = [row for row in rows if row.ok]
    found: list[str] = []
    for comparison in comparisons:
        about = [row for row in good if row.experiment == comparison.experiment]
        if isinstance(comparison, Sweep):
            found += _of_sweep(about, comparison, _spread(good, comparison.figure))
        elif isinstance(comparison, Versus):
            found += _of_transports(about, comparison, _spread(good, comparison.figure))
        else:
            found += _of_points(about, comparison, _spread(good, "seconds"))
    return found


Where = tuple[tuple[str, str], ...]  # parameters with their values, as a key


def _spread(rows: Sequence[Row], figure: str) -> RunSpread:
    """Return how much a figure scatters in this run."""
    cases: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        if (cost := _cost(row, figure)) is not None:
            cases[row.case].append(cost)
    return spread_of(cases.values())


def _of_points(about: Sequence[Row], comparison: Comparison, spread: RunSpread) -> Iterator[str]:
    sides: dict[tuple[str, Where], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in about:
        values = row.parameters
        for side, wanted in enumerate((comparison.one, comparison.other)):
            if all(values.get(name) == str(value) for name, value in wanted.items()):
                sides[row.transport, _without(values, comparison.one)][side].append(row.took)
    for transport, rest in sorted(sides, key=lambda key: (key[0], in_order(dict(key[1])))):
        if all(both := sides[transport, rest]):
            authors = f"; published: {comparison.published}" if comparison.published else ""
            yield f"{_subject(transport, rest)}: {_said(comparison.title, ratio(*both, spread))}{authors}"


def _of_transports(about: Sequence[Row], comparison: Versus, spread: RunSpread) -> Iterator[str]:
    figures = {
        comparison.transport: comparison.figure,
        comparison.against: comparison.against_figure or comparison.figure,
    }
    sides: dict[Where, dict[str, list[float]]] = defaultdict(lambda: {name: [] for name in figures})
    for row in about:
        if row.transport in figures and (cost := _cost(row, figures[row.transport])) is not None:
            sides[tuple(row.parameters.items())][row.transport].append(cost)
    for where in sorted(sides, key=lambda where: in_order(dict(where))):
        one, other = (sides[where][name] for name in figures)
        if one and other:
            title = f"{comparison.title} ({comparison.against})"
            yield f"{_subject(comparison.transport, where)}: {_said(title, ratio(one, other, spread))}"


def _of_sweep(about: Sequence[Row], sweep: Sweep, spread: RunSpread) -> Iterator[str]:
    curves: dict[tuple[str, Where], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in about:
        values = row.parameters
        if sweep.parameter in values and (cost := _cost(row, sweep.figure)) is not None:
            rest = _without(values, [sweep.parameter])
            curves[row.transport, rest][values[sweep.parameter]].append(cost)
    for transport, rest in sorted(curves, key=lambda key: (key[0], in_order(dict(key[1])))):
        if len(curve := curves[transport, rest]) > 1:
            yield f"{_subject(transport, rest)}: {_best_of(sweep.parameter, curve, spread)}"


def _best_of(name: str, curve: dict[str, list[float]], spread: RunSpread) -> str:
    """Say which value of a parameter is the fastest, and by which factor it beats each other value."""
    best = min(curve, key=lambda value: statistics.median(curve[value]))
    others = sorted((value for value in curve if value != best), key=natural)
    found = {value: ratio(curve[value], curve[best], spread, len(others)) for value in others}
    passes = min(one.n for one in found.values())
    said = f"{passes} pass{'es' if passes != 1 else ''}"
    if any(one.low is None for one in found.values()):
        return f"{described(name, best)} came first of {len(curve)}; {said} cannot say how sure that is"
    sure = [
        f"{one.value:.2f} times as fast as {described(name, value)} ({one.low:.2f} to {one.high:.2f})"
        for value, one in found.items()
        if one.differs
    ]
    unsure = ", ".join(described(name, value) for value, one in found.items() if not one.differs)
    if not sure:
        return f"no difference shown between {described(name, best)}, the first, and {unsure} ({said})"
    rest = f"; no difference shown to {unsure}" if unsure else ""
    return f"{described(name, best)}: {', '.join(sure)}{rest} (95 % intervals that hold together, {said})"


def _cost(row: Row, figure: str) -> float | None:
    """Return a figure of a run such that less is better: for a rate, the time of one unit."""
    value = row.took if figure == "seconds" else row.details.get(figure)
    if not value:  # a figure of zero has no logarithm
        return None
    return 1 / value if figure.endswith("_per_s") else value


def _without(values: dict[str, str], left_out: Iterable[str]) -> Where:
    return tuple((name, value) for name, value in values.items() if name not in left_out)


def _subject(transport: str, where: Where) -> str:
    said = ", ".join(described(name, value) for name, value in where)
    return f"{transport}{f', {said}' if said else ''}"


def _said(title: str, found: Ratio) -> str:
    passes = f"{found.n} pass{'es' if found.n > 1 else ''}"
    if found.low is None or found.high is None:
        return f"{title} took {found.value:.2f} times as long; {passes} cannot say how sure that is"
    interval = f"95 % interval {found.low:.2f} to {found.high:.2f}, {passes}"
    if not found.differs:
        return f"no difference shown: {title} took {found.value:.2f} times as long ({interval})"
    percent = abs(found.value - 1) * 100
    word = "longer" if found.value > 1 else "less"
    return f"{title} took {percent:.0f} % {word}: {found.value:.2f} times as long ({interval})"


def control_sentences(summaries: Sequence[Summary]) -> list[str]:
    """Return one line for each control: the ratio of the pair with its interval, and a warning if that excludes 1."""
    cases = {(case.experiment, case.label, case.transport): case for case in summaries}
    return [
        _control_line(cases.get((case.experiment, case.label, case.transport.removesuffix(CONTROL))), case)
        for case in summaries
        if case.origin == Origin.CONTROL
    ]


def _control_line(one: Summary | None, other: Summary) -> str:
    where = ", ".join(described(*part) for part in other.parameters.items())
    subject = f"{other.transport.removesuffix(CONTROL)}{f', {where}' if where else ''}"
    if one is None or not one.n or not other.n:
        return f"A/A control of {subject}: not judged, the two do not both have an ok run."
    figures = f"{significant(one.took)} and {significant(other.took)} s, {one.n} and {other.n} runs"
    factor = other.took / one.took
    if one.estimate is None or other.estimate is None:
        return (
            f"A/A control of {subject}: {factor:.3f} times as long as itself; no interval of so few runs ({figures})."
        )
    found = around(factor, ratio_interval(other.estimate, one.estimate))
    times = f"{factor:.3f} times as long as itself (95 % interval {found[0]:.3f} to {found[1]:.3f}; {figures})"
    if not leaves_out_one(found):
        return f"A/A control of {subject}: {times}."
    return (
        f"A/A CONTROL FAILED, {subject}: one function under two ids came out as different, {times}. Do not believe "
        "differences of this size between transports of this run; chance does this to about every twentieth control."
    )


_FEWEST = 3  # different round trips: a line always fits two
_MILLI = 1e3


@dataclass(frozen=True)
class Slope:
    """How many round trips: the slope, and the ends of its interval; they are None of too few runs."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Trips:
    """A transport at some rows: round trips of a call and of connecting (None where that is unknown)."""

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
    """Return the round trips of every transport that ran with at least _FEWEST values of rtt_ms and no rate limit."""
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


def round_trip_tables(rows: Iterable[Row]) -> list[Table]:
    """Return the table of round trips; none of a run without links."""
    found = counted(rows)
    if not found:
        return []
    shared = in_common([one.parameters for one in found])
    varying = [name for name in found[0].parameters if len({one.parameters.get(name) for one in found}) > 1]
    return [
        Table(
            f"Round trips{f', {shared}' if shared else ''}",
            ("transport", "operation", *varying, "of a call", "95 %", "of connecting", "95 %"),
            tuple(
                (
                    one.transport,
                    one.operation,
                    *(one.parameters.get(name, "") for name in varying),
                    *_slope_cells(one.call),
                    *_slope_cells(one.connecting),
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
    """Return the function that counts the round trips of a call, and of connecting, given the spread of these rows."""
    return [partial(_slope, figure=of, spread=_trip_spread(rows, of)) for of in ("seconds", "connect_seconds")]


def _trip_spread(rows: Sequence[Row], figure: str) -> RunSpread:
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


def _slope_cells(one: Slope | None) -> tuple[str, str]:
    if one is None:
        return "", ""
    sure = one.low is not None and one.high is not None
    return significant(one.value, 2), f"{one.low:.1f} to {one.high:.1f}" if sure else "too few runs to tell"
