"""What a run shows, in sentences a person can act on: ratios of points and transports with their uncertainty.

A ratio is that of geometric means, with its 95 % interval (see `intervals`); what it does not separate from 1 is not
called a difference. Where the fastest of several values is set against the others, their intervals hold together.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.report.intervals import RunSpread, estimate, leaves_out_one, spread_of
from harness.report.intervals import ratio as ratio_interval
from harness.report.points import described, in_order, natural
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
    """Return the ratio of some seconds to others, of a run that scatters so; of `among` ratios that hold together."""
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
    """Say which value of a parameter is the fastest, and how many times as fast as the others."""
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
    """Return a figure of a run as something of which less is better: of a rate the time for one."""
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
