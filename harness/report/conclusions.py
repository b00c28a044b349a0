"""What a run shows, in sentences a person can act on: ratios of points and transports with their uncertainty.

The passes of a suite are blocks (Abedi & Brecht, ICPE 2017): both runs of a pass met the same spell of the machine, so
ratios are taken pass by pass. Their interval is Student's on the logarithms, 95 %; what it does not separate from 1 is
not called a difference. Where the fastest of several values is set against the others, their intervals are as much
wider as it takes that all of them hold together (Bonferroni).
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb

from harness.model import CONTROL, Origin
from harness.report.figures import described, in_common, in_order, natural, significant
from harness.report.intervals import CONFIDENCE, called, leaves_out_one, overlap
from harness.report.summary import Summary, with_interval
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.comparisons import AnyComparison, Comparison, Sweep, Versus


@dataclass(frozen=True)
class Ratio:
    """A ratio of times: its geometric mean over `n` passes and the ends of its interval (None of a single pass)."""

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1."""
        return self.low is not None and self.high is not None and leaves_out_one((self.low, self.high))


def ratio(pairs: Sequence[tuple[float, float]], confidence: float = CONFIDENCE) -> Ratio:
    """Return the ratio of the first to the second of each pair of seconds."""
    logs = [math.log(one / other) for one, other in pairs]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(middle), None, None, len(logs))
    from scipy import stats  # not at the top: a second for one number

    half = stats.t.ppf((1 + confidence) / 2, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def conclusions(rows: Iterable[Row], comparisons: Sequence[AnyComparison]) -> list[str]:
    """Return a sentence for every comparison, transport and combination of other parameters that has both sides."""
    good = [row for row in rows if row.ok]
    found: list[str] = []
    for comparison in comparisons:
        about = [row for row in good if row.experiment == comparison.experiment]
        if isinstance(comparison, Sweep):
            found += _of_sweep(about, comparison)
        elif isinstance(comparison, Versus):
            found += _of_transports(about, comparison)
        else:
            found += _of_points(about, comparison)
    return found


Passes = dict[int, float]
Where = tuple[tuple[str, str], ...]  # parameters with their values, as a key


def _of_points(about: Sequence[Row], comparison: Comparison) -> Iterator[str]:
    sides: dict[tuple[str, Where], dict[str, Passes]] = defaultdict(lambda: {"one": {}, "other": {}})
    for row in about:
        values = row.parameters
        rest = _without(values, comparison.one)
        for side, wanted in (("one", comparison.one), ("other", comparison.other)):
            if all(values.get(name) == str(value) for name, value in wanted.items()):
                sides[row.transport, rest][side][row.pass_number] = row.took
    for transport, rest in sorted(sides, key=lambda key: (key[0], in_order(dict(key[1])))):
        one, other = sides[transport, rest].values()
        if pairs := _pairs(one, other):
            authors = f"; published: {comparison.published}" if comparison.published else ""
            yield f"{_subject(transport, rest)}: {_said(comparison.title, ratio(pairs))}{authors}"


def _of_transports(about: Sequence[Row], comparison: Versus) -> Iterator[str]:
    figures = {
        comparison.transport: comparison.figure,
        comparison.against: comparison.against_figure or comparison.figure,
    }
    sides: dict[Where, dict[str, Passes]] = defaultdict(lambda: {name: {} for name in figures})
    for row in about:
        if row.transport in figures and (cost := _cost(row, figures[row.transport])) is not None:
            sides[tuple(row.parameters.items())][row.transport][row.pass_number] = cost
    for where in sorted(sides, key=lambda where: in_order(dict(where))):
        if pairs := _pairs(*(sides[where][name] for name in figures)):
            title = f"{comparison.title} ({comparison.against})"
            yield f"{_subject(comparison.transport, where)}: {_said(title, ratio(pairs))}"


def _of_sweep(about: Sequence[Row], sweep: Sweep) -> Iterator[str]:
    curves: dict[tuple[str, Where], dict[str, Passes]] = defaultdict(lambda: defaultdict(dict))
    for row in about:
        values = row.parameters
        if sweep.parameter in values and (cost := _cost(row, sweep.figure)) is not None:
            rest = _without(values, [sweep.parameter])
            curves[row.transport, rest][values[sweep.parameter]][row.pass_number] = cost
    for transport, rest in sorted(curves, key=lambda key: (key[0], in_order(dict(key[1])))):
        if len(curve := curves[transport, rest]) > 1:
            yield f"{_subject(transport, rest)}: {_best_of(sweep.parameter, curve)}"


def _best_of(name: str, curve: dict[str, Passes]) -> str:
    """Say which value of a parameter is the fastest, and how many times as fast as the others."""
    best = min(curve, key=lambda value: statistics.median(curve[value].values()))
    others = sorted((value for value in curve if value != best), key=natural)
    together = 1 - (1 - CONFIDENCE) / len(others)
    found = {value: ratio(pairs, together) for value in others if (pairs := _pairs(curve[value], curve[best]))}
    passes = min((one.n for one in found.values()), default=0)
    said = f"{passes} pass{'es' if passes != 1 else ''}"
    if passes < 2:
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
    """Return a figure of a run as something of which less is better: of a rate the time for one."""
    value = row.took if figure == "seconds" else row.details.get(figure)
    if not value:  # a figure of zero has no logarithm
        return None
    return 1 / value if figure.endswith("_per_s") else value


def _pairs(one: Passes, other: Passes) -> list[tuple[float, float]]:
    return [(one[number], other[number]) for number in sorted(one.keys() & other.keys())]


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
    """Return one line for each control: whether the two came out as a tie, and loudly where they did not."""
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
    interval = called((one.n, other.n))
    figures = f"{with_interval(one)} and {with_interval(other)} s" + (
        f"; in brackets the {interval}" if interval else ""
    )
    if one.interval is None or other.interval is None:
        return f"A/A control of {subject}: not judged, fewer than 3 runs ({figures})."
    if overlap(one.interval, other.interval):
        first, second = sorted((one.took, other.took))
        return (
            f"A/A control of {subject}: a tie, as it must be ({figures}); the medians of one function under "
            f"two ids are {second / first - 1:.0%} apart by chance alone."
        )
    return (
        f"A/A CONTROL FAILED, {subject}: one function under two ids came out as different ({figures}). "
        "Do not believe differences of this size between transports of this run"
        f"{_by_chance(one.n, other.n)}."
    )


def _by_chance(one: int, other: int) -> str:
    """Say how often that happens to equal transports: all runs of one, so their interval, below all of the other."""
    if max(one, other) > 5:  # of more runs the interval is less than their range
        return ""
    return f"; {one} and {other} runs of equal transports come out so in {2 / comb(one + other, one):.0%} of all cases"


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


def round_trip_tables(rows: Iterable[Row]) -> list[Table]:
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


def _slope(runs: Sequence[Row], figure: Callable[[Row], float | None]) -> Slope | None:
    pairs = [(float(row.parameters["rtt_ms"]) / _MILLI, taken) for row in runs if (taken := figure(row)) is not None]
    return slope(pairs) if len({trip for trip, _ in pairs}) >= _FEWEST else None


def _slope_cells(one: Slope | None) -> tuple[str, str]:
    return (significant(one.value, 2), f"{one.low:.1f} to {one.high:.1f}") if one else ("", "")
