"""What a call costs whatever it moves, and what each row adds: a straight line through the seconds over the rows.

The model, seconds = fixed + marginal x rows, is Hockney's of vector pipelines (R. W. Hockney, the benchmark RINF1): the
rate tends to 1 / marginal, and half of it is reached at fixed / marginal rows, his half-performance length n1/2. It is
fitted to the medians at each number of rows as a generalized linear model with a constant coefficient of variation (P.
McCullagh & J. A. Nelder, Generalized Linear Models, 2nd ed. 1989, chapter 8), by iteratively reweighted least squares:
an error counts as a share of what the line says. With plain least squares the largest size would decide alone, and the
fixed cost would be what is left over; with shares of what was measured, low outliers would win. Neither cost is below
zero. Intervals are the percentile bootstrap over the runs of each size. Where a transport does not cost as a straight
line says, `off` tells how far it is from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from harness.report.curves import Curve, Direction
from harness.report.intervals import CONFIDENCE, DRAWS, FEWEST, Interval, draws_of

if TYPE_CHECKING:
    from numpy.random import Generator

STRAIGHT = 1.25  # off by more: no line, and what it says of a call or a row is not told in a sentence
_ROUNDS, _LEAST = 20, 1e-3  # of the fit; and the share of what was measured below which no line is taken to be
FEWEST_SIZES = 4  # numbers of rows: a line through two or three says little about whether it is one


@dataclass(frozen=True)
class Cost:
    """What a transport costs: `fixed` seconds a call and `marginal` seconds a row, each with its interval.

    Intervals are None where a size has fewer than three runs. `off` is how many times as large as the other the line or
    a median is at most: 1.1 is 10 %. `sizes` are the numbers of rows, `fewest_runs` those of the size with fewest.
    """

    transport: str
    direction: Direction
    fixed: float
    marginal: float
    fixed_interval: Interval | None
    marginal_interval: Interval | None
    off: float
    sizes: tuple[int, ...]
    fewest_runs: int

    @property
    def half_rate_rows(self) -> float | None:
        """The rows at which half of the largest rate is reached; None where rows cost nothing."""
        return self.fixed / self.marginal if self.marginal else None

    def seconds(self, rows: float) -> float:
        """Return the seconds that the line says for so many rows."""
        return self.fixed + self.marginal * rows


def costs(found: Iterable[Direction]) -> list[Cost]:
    """Return the costs of each transport that has at least FEWEST_SIZES numbers of rows, in the order of directions."""
    return [
        _cost(name, direction, curve)
        for direction in found
        for name, curve in direction.curves.items()
        if len(curve) >= FEWEST_SIZES
    ]


def fitted(sizes: Sequence[int], seconds: Any) -> tuple[Any, Any]:
    """Return fixed and marginal cost of the lines that `seconds` scatter about by the same share at all sizes.

    `seconds` are an array whose last axis goes over `sizes`, all above 0; each cost has its shape without that axis.
    """
    import numpy as np

    times, rows = np.asarray(seconds, dtype=float), np.asarray(sizes, dtype=float) / max(sizes)
    line = times
    for _ in range(_ROUNDS):
        fixed, slope = _weighted(rows, times, 1 / line**2)
        # Half of the way: where the line is near zero the weights would make it jump to and fro.
        line = np.sqrt(line * np.maximum(fixed[..., None] + slope[..., None] * rows, times * _LEAST))
    return fixed, slope / max(sizes)


def _weighted(rows: Any, times: Any, weights: Any) -> tuple[Any, Any]:
    """Return the two costs, not below zero, by weighted least squares."""
    import numpy as np

    ones, both, eachs = weights.sum(-1), (weights * rows).sum(-1), (weights * rows * rows).sum(-1)
    of_one, of_each = (weights * times).sum(-1), (weights * rows * times).sum(-1)
    spread = ones * eachs - both * both
    fixed = (eachs * of_one - both * of_each) / spread
    slope = (ones * of_each - both * of_one) / spread
    # All entries are above 0, so that both cannot be below 0; where one is, the best line has 0 there.
    falls, below = slope < 0, fixed < 0
    return (
        np.where(below, 0.0, np.where(falls, of_one / ones, fixed)),
        np.where(falls, 0.0, np.where(below, of_each / eachs, slope)),
    )


def medians_drawn(runs: Sequence[Sequence[float]], source: Generator) -> Any:
    """Return the medians of runs drawn again with replacement: an array of DRAWS lines, one column a size."""
    import numpy as np

    drawn = [np.median(source.choice(seconds, (DRAWS, len(seconds))), axis=1) for seconds in runs]
    return np.stack(drawn, axis=-1)


def middle(drawn: Any) -> Interval:
    """Return the ends of the middle 95 % of some figures: two that were drawn, so that they may be infinite."""
    import numpy as np

    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, (outside, 1 - outside), method="nearest")
    return float(low), float(high)


def _cost(name: str, direction: Direction, curve: Curve) -> Cost:
    import numpy as np

    sizes = tuple(curve)
    medians = np.array([curve[rows].case.took for rows in sizes])
    fixed, marginal = map(float, fitted(sizes, medians))
    line = fixed + marginal * np.asarray(sizes)
    fewest = min(len(one.seconds) for one in curve.values())
    ends: tuple[Interval | None, Interval | None] = (None, None)
    if fewest >= FEWEST:
        drawn = _intervals(f"{direction.name}/{name}", sizes, tuple(one.seconds for one in curve.values()))
        # The line through the medians of all runs is one that was not drawn, and may lie beside all that were.
        ends = (_around(fixed, drawn[0]), _around(marginal, drawn[1]))
    off = float(np.max(np.maximum(line / medians, medians / line)))
    return Cost(name, direction, fixed, marginal, *ends, off, sizes, fewest)


@lru_cache(maxsize=1_000)  # a report asks several times: for its sentences, its tables and its pictures
def _intervals(name: str, sizes: tuple[int, ...], runs: tuple[tuple[float, ...], ...]) -> tuple[Interval, Interval]:
    fixed, marginal = fitted(sizes, medians_drawn(runs, draws_of(name)))
    return middle(fixed), middle(marginal)


def _around(value: float, interval: Interval) -> Interval:
    return min(value, interval[0]), max(value, interval[1])
