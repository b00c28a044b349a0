"""What a run shows, in sentences a person can act on: ratios of two points of an experiment with their uncertainty.

The passes of a suite are blocks (Abedi & Brecht, ICPE 2017): both runs of a pass met the same spell of the machine, so
ratios are taken pass by pass. Their interval is Student's on the logarithms, 95 %; what it does not separate from 1 is
not called a difference.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model import Status
from harness.report.points import described, in_order, parameters
from harness.suites import Comparison

CONFIDENCE = 0.95


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
        return self.low is not None and self.high is not None and (self.low > 1 or self.high < 1)


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """Return the ratio of the first to the second of each pair of seconds."""
    logs = [math.log(one / other) for one, other in pairs]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(middle), None, None, len(logs))
    from scipy import stats  # not at the top: a second for one number

    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))


def findings(rows: Iterable[dict[str, Any]], comparisons: Sequence[Comparison]) -> list[str]:
    """Return a sentence for every comparison, transport and combination of other parameters that has both points."""
    good = [row for row in rows if row["status"] is Status.OK]
    return [sentence for comparison in comparisons for sentence in _sentences(good, comparison)]


def _sentences(good: Sequence[dict[str, Any]], comparison: Comparison) -> Iterator[str]:
    sides: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(lambda: {"one": {}, "other": {}})
    for row in good:
        if row["experiment"] != comparison.experiment:
            continue
        values = parameters(row["parameters"])
        rest = "; ".join(f"{name}={value}" for name, value in values.items() if name not in comparison.one)
        for side, wanted in (("one", comparison.one), ("other", comparison.other)):
            if all(values.get(name) == str(value) for name, value in wanted.items()):
                sides[row["transport"], rest][side][row["pass"]] = row["seconds"]
    for transport, rest in sorted(sides, key=lambda key: (key[0], in_order(key[1]))):
        one, other = sides[transport, rest].values()
        if pairs := [(one[number], other[number]) for number in sorted(one.keys() & other.keys())]:
            where = ", ".join(described(name, value) for name, value in parameters(rest).items())
            yield f"{transport}{f', {where}' if where else ''}: {_said(comparison, ratio(pairs))}"


def _said(comparison: Comparison, found: Ratio) -> str:
    passes = f"{found.n} pass{'es' if found.n > 1 else ''}"
    if found.low is None or found.high is None:
        return f"{comparison.title} took {found.value:.2f} times as long; {passes} cannot say how sure that is"
    interval = f"95 % interval {found.low:.2f} to {found.high:.2f}, {passes}"
    if not found.differs:
        return f"no difference shown: {comparison.title} took {found.value:.2f} times as long ({interval})"
    percent = abs(found.value - 1) * 100
    word = "longer" if found.value > 1 else "less"
    return f"{comparison.title} took {percent:.0f} % {word}: {found.value:.2f} times as long ({interval})"
