"""The conclusions of a run, in sentences a user can act on: ratios of points and transports with their uncertainty.

A ratio is that of geometric means, with its 95 % interval (see `intervals`). A ratio whose interval contains 1 is not
called a difference. If one value is compared with several, the intervals are corrected so that all hold together.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import numpy as np

from harness.model import CONTROL, Origin
from harness.report.crossings import fitted
from harness.report.figures import described, in_common, in_order, natural, numbered, significant, varying
from harness.report.intervals import (
    Interval,
    RunSpread,
    around,
    draws,
    draws_of,
    estimate,
    factor_interval,
    leaves_out_one,
    middle,
    spread_of,
)
from harness.report.summary import Summary, observations, of_cases
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import AnyComparison, Comparison, Sweep, Versus


@dataclass(frozen=True)
class Measured:
    """A ratio of times, or a number of round trips, of `n` runs, and its interval (None of too few)."""

    value: float
    interval: Interval | None
    n: int

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return leaves_out_one(self.interval)


def ratio(one: Sequence[float], other: Sequence[float], spread: RunSpread, among: int = 1) -> Measured:
    """Return the ratio of two sets of seconds of a run with this spread, as one of `among` that hold together."""
    value = statistics.geometric_mean(one) / statistics.geometric_mean(other)
    interval = factor_interval(value, estimate(one, spread), estimate(other, spread), among)
    return Measured(value, interval, min(len(one), len(other)))


def conclusions(rows: Iterable[Row], comparisons: Sequence[AnyComparison]) -> list[str]:
    """Return a sentence for every comparison, transport and combination of other parameters that has both sides."""
    good = [row for row in rows if row.ok]
    return [said for comparison in comparisons for said in _said_of(good, comparison)]


Where = tuple[tuple[str, str], ...]  # parameters with their values, as a key


def _said_of(good: Sequence[Row], comparison: AnyComparison) -> Iterator[str]:
    figure = "seconds" if isinstance(comparison, Comparison) else comparison.figure
    against = comparison.against_figure if isinstance(comparison, Versus) else ""
    costs = {of: observations(good, partial(_cost, of)) for of in dict.fromkeys((figure, against or figure))}
    spread = spread_of(of_cases(costs[figure]).values())
    times = ("run", "runs") if len({row.run_id for row in good}) > 1 else ("pass", "passes")
    sides: dict[tuple[str, Where], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for of, row, cost in ((of, *pair) for of, pairs in costs.items() for pair in pairs):
        if row.experiment == comparison.experiment and (side := _side(row, comparison)) and side[3] == of:
            transport, left_out, name, _ = side
            rest = tuple((name, value) for name, value in row.parameters.items() if name not in left_out)
            sides[transport, rest][name].append(cost)
    for transport, rest in sorted(sides, key=lambda key: (key[0], in_order(dict(key[1])))):
        found, subject = sides[transport, rest], _subject(transport, dict(rest))
        if isinstance(comparison, Sweep) and len(found) > 1:
            yield f"{subject}: {_best_of(comparison.parameter, found, spread, times)}"
        elif not isinstance(comparison, Sweep) and len(found) > 1:
            title, authors = comparison.title, ""
            if isinstance(comparison, Versus):
                title += f" ({comparison.against})"
            elif comparison.published:
                authors = f"; published: {comparison.published}"
            yield f"{subject}: {_said(title, ratio(found[_ONE], found[_OTHER], spread), times)}{authors}"


_ONE, _OTHER = "one", "other"


def _side(row: Row, comparison: AnyComparison) -> tuple[str, Collection[str], str, str] | None:
    """Return what a row is in a comparison: its subject, the parameters compared, its side and the figure.

    None for a row that the comparison is not about.
    """
    match comparison:
        case Sweep():
            parameter = comparison.parameter
            if parameter in row.parameters:
                return row.transport, (parameter,), row.parameters[parameter], comparison.figure
        case Versus():
            if row.transport == comparison.transport:
                return comparison.transport, (), _ONE, comparison.figure
            if row.transport == comparison.against:
                return comparison.transport, (), _OTHER, comparison.against_figure or comparison.figure
        case Comparison():
            for side, wanted in ((_ONE, comparison.one), (_OTHER, comparison.other)):
                if all(row.parameters.get(name) == str(value) for name, value in wanted.items()):
                    return row.transport, comparison.one, side, "seconds"
    return None


_Times = tuple[str, str]  # the word for one observation and for several


def _best_of(name: str, curve: dict[str, list[float]], spread: RunSpread, times: _Times) -> str:
    """Say which value of a parameter is the fastest, and by which factor it beats each other value."""
    best = min(curve, key=lambda value: statistics.median(curve[value]))
    others = sorted((value for value in curve if value != best), key=natural)
    found = {value: ratio(curve[value], curve[best], spread, len(others)) for value in others}
    said = numbered(min(one.n for one in found.values()), *times)
    if any(one.interval is None for one in found.values()):
        return f"{described(name, best)} came first of {len(curve)}; {said} cannot say how sure that is"
    sure = [
        f"{one.value:.2f} times as fast as {described(name, value)} ({one.interval[0]:.2f} to {one.interval[1]:.2f})"
        for value, one in found.items()
        if one.interval and one.differs
    ]
    unsure = ", ".join(described(name, value) for value, one in found.items() if not one.differs)
    if not sure:
        return f"no difference shown between {described(name, best)}, the first, and {unsure} ({said})"
    rest = f"; no difference shown to {unsure}" if unsure else ""
    return f"{described(name, best)}: {', '.join(sure)}{rest} (95 % intervals that hold together, {said})"


def _cost(figure: str, row: Row) -> float | None:
    """Return a figure of a run such that less is better: for a rate, the time of one unit."""
    value = row.took if figure == "seconds" else row.details.get(figure)
    if not value:  # a figure of zero has no logarithm
        return None
    return 1 / value if figure.endswith("_per_s") else value


def _subject(transport: str, where: Mapping[str, str]) -> str:
    return ", ".join([transport, *(described(name, value) for name, value in where.items())])


def _said(title: str, found: Measured, times: _Times) -> str:
    passes = numbered(found.n, *times)
    if found.interval is None:
        return f"{title} took {found.value:.2f} times as long; {passes} cannot say how sure that is"
    interval = f"95 % interval {found.interval[0]:.2f} to {found.interval[1]:.2f}, {passes}"
    if not found.differs:
        return f"no difference shown: {title} took {found.value:.2f} times as long ({interval})"
    word = "longer" if found.value > 1 else "less"
    percent = f"{abs(found.value - 1) * 100:.0f} % {word}"
    return f"{title} took {percent}: {found.value:.2f} times as long ({interval})"


def control_sentences(summaries: Sequence[Summary]) -> list[str]:
    """Return one line for each control: the ratio of the pair with its interval, and a warning if that excludes 1."""
    cases = {(case.experiment, case.label, case.transport): case for case in summaries}
    return [
        _control_line(cases.get((case.experiment, case.label, case.transport.removesuffix(CONTROL))), case)
        for case in summaries
        if case.origin == Origin.CONTROL
    ]


def _control_line(one: Summary | None, other: Summary) -> str:
    subject = _subject(other.transport.removesuffix(CONTROL), other.parameters)
    if one is None or not one.n or not other.n:
        return f"A/A control of {subject}: not judged, the two do not both have an ok run."
    figures = f"{significant(one.took)} and {significant(other.took)} s, {one.n} and {other.n} runs"
    factor = other.took / one.took
    found = factor_interval(factor, other.estimate, one.estimate)
    if found is None:
        return (
            f"A/A control of {subject}: {factor:.3f} times as long as itself; no interval of so few runs ({figures})."
        )
    times = f"{factor:.3f} times as long as itself (95 % interval {found[0]:.3f} to {found[1]:.3f}; {figures})"
    if not leaves_out_one(found):
        return f"A/A control of {subject}: {times}."
    return (
        f"A/A CONTROL FAILED, {subject}: one function under two ids came out as different, {times}. Do not believe "
        "differences of this size between transports of this run; chance does this to about every twentieth control."
    )


_FEWEST = 3  # different round trips: a line always fits two
_MILLI = 1e3


def slope(runs: Mapping[float, Sequence[float]], spread: RunSpread, name: str) -> Measured:
    """Return how many round trips the seconds of some runs hold, given by the seconds of a round trip."""
    trips = sorted(runs)
    value = float(fitted(trips, np.array([statistics.median(runs[trip]) for trip in trips]))[1])
    known = [found for trip in trips if (found := estimate(runs[trip], spread))]
    if len(known) < len(trips):
        return Measured(value, None, len(known))
    source = draws_of(name)
    drawn = np.stack([draws(one, source) for one in known], -1)
    return Measured(value, around(value, middle(fitted(trips, drawn)[1])), len(known))


def round_trip_tables(rows: Iterable[Row]) -> list[Table]:
    """Return the round trips of every transport that ran with at least _FEWEST values of rtt_ms and no rate limit.

    There is no table of a run without links.
    """
    every = [row for row in rows if row.ok and "rtt_ms" in row.parameters]
    every = [row for row in every if row.parameters.get("mbit_per_s", "0") == "0"]
    curves: dict[tuple[object, ...], dict[str, list[tuple[Row, float]]]] = defaultdict(lambda: defaultdict(list))
    spreads = {}
    for of in ("seconds", "connect_seconds"):
        observed = observations(every, attrgetter(of))
        spreads[of] = spread_of(of_cases(observed).values())
        for row, value in observed:
            rest = {name: value for name, value in row.parameters.items() if name != "rtt_ms"}
            key = (row.experiment, row.system, row.operation, row.transport, in_order(rest))
            curves[key][of].append((row, value))
    found = [
        (curves[key]["seconds"][0][0], trips)
        for key in sorted(curves, key=str)
        if (trips := [_trips(curves[key][of], f"{key}/{of}", spread) for of, spread in spreads.items()])[0]
    ]
    if not found:
        return []
    about = [
        {name: value for name, value in one.parameters.items() if name not in ("rtt_ms", "mbit_per_s")}
        for one, _ in found
    ]
    shared = in_common(about)
    apart = varying(about)
    lines = tuple(
        (
            one.transport,
            one.operation,
            *(parameters.get(name, "") for name in apart),
            *(cell for of in trips for cell in _trip_cells(of)),
        )
        for (one, trips), parameters in zip(found, about, strict=True)
    )
    head = ("transport", "operation", *apart, "of a call", "95 %", "of connecting", "95 %")
    note = (
        "how many round trips the time holds: the slope of seconds over the round trip, of runs without a "
        "limit of the rate (docs/explanation/suites/networks.md); where its interval holds 0, none is shown"
    )
    return [Table(f"Round trips{f', {shared}' if shared else ''}", head, lines, (note,), wide=frozenset({0, 1}))]


def _trips(observed: Sequence[tuple[Row, float]], name: str, spread: RunSpread) -> Measured | None:
    taken: dict[float, list[float]] = defaultdict(list)
    for row, value in observed:
        taken[float(row.parameters["rtt_ms"]) / _MILLI].append(value)
    return slope(taken, spread, name) if len(taken) >= _FEWEST else None


def _trip_cells(one: Measured | None) -> tuple[str, str]:
    if one is None:
        return "", ""
    between = "{:.1f} to {:.1f}".format(*one.interval) if one.interval else "too few runs to tell"
    return significant(one.value, 2), between
