"""What a run shows, in sentences a person can act on: ratios of points and transports with their uncertainty.

The passes of a suite are blocks (Abedi & Brecht, ICPE 2017): both runs of a pass met the same spell of the machine, so
ratios are taken pass by pass. Their interval is Student's on the logarithms, 95 %; what it does not separate from 1 is
not called a difference. Where the fastest of several values is set against the others, their intervals are as much
wider as it takes that all of them hold together (Bonferroni).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.report.intervals import CONFIDENCE, leaves_out_one
from harness.report.points import described, in_order, natural
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
