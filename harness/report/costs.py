"""What a call costs whatever it moves, and what each row adds: a straight line through the seconds over the rows.

The model, seconds = fixed + marginal x rows, is Hockney's of vector pipelines (R. W. Hockney, the benchmark RINF1): the
rate tends to 1 / marginal, and half of it is reached at fixed / marginal rows, his half-performance length n1/2. It is
fitted to the medians at each number of rows by least squares of the relative errors (C. Tofallis, "Least Squares
Percentage Regression", University of Hertfordshire Business School Working Paper 2006:6): with plain least squares the
largest size would decide alone, and the fixed cost would be what is left over. Neither cost is below zero (the two
cases of non-negative least squares with two unknowns). Intervals are the percentile bootstrap over the runs of each
size. Where a transport does not cost as a straight line says, `off` tells how far it is from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.report.curves import Curve, Direction
from harness.report.intervals import CONFIDENCE, DRAWS, FEWEST, Interval, draws_of

if TYPE_CHECKING:
    from numpy.random import Generator

STRAIGHT = 0.25  # off by more: no line, and what it says of a call or a row is not told in a sentence
FEWEST_SIZES = 4  # numbers of rows: a line through two or three says little about whether it is one


@dataclass(frozen=True)
class Cost:
    """What a transport costs: `fixed` seconds a call and `marginal` seconds a row, each with its interval.

    Intervals are None where a size has fewer than three runs. `off` is the largest distance of a median from the line,
    as a share of the median: 0.1 is 10 %. `sizes` are the numbers of rows, `fewest_runs` those of the size with fewest.
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
    """Return fixed and marginal cost of the lines nearest to `seconds`, by relative error.

    `seconds` are an array whose last axis goes over `sizes`, all above 0; each cost has its shape without that axis.
    """
    import numpy as np

    times = np.asarray(seconds, dtype=float)
    largest = max(sizes)
    one, each = 1 / times, np.asarray(sizes, dtype=float) / largest / times
    ones, both, eachs = (one * one).sum(-1), (one * each).sum(-1), (each * each).sum(-1)
    of_one, of_each = one.sum(-1), each.sum(-1)
    spread = ones * eachs - both * both
    fixed = (eachs * of_one - both * of_each) / spread
    slope = (ones * of_each - both * of_one) / spread
    # All entries are above 0, so that both cannot be below 0; where one is, the best line has 0 there.
    falls, below = slope < 0, fixed < 0
    return (
        np.where(below, 0.0, np.where(falls, of_one / ones, fixed)),
        np.where(falls, 0.0, np.where(below, of_each / eachs, slope)) / largest,
    )


def medians_drawn(curve: Curve, sizes: Sequence[int], source: Generator) -> Any:
    """Return the medians of runs drawn again with replacement: an array of DRAWS lines, one column a size."""
    import numpy as np

    drawn = [np.median(source.choice(curve[rows].seconds, (DRAWS, len(curve[rows].seconds))), axis=1) for rows in sizes]
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
        many = fitted(sizes, medians_drawn(curve, sizes, draws_of(f"{direction.name}/{name}")))
        # The line through the medians of all runs is one that was not drawn, and may lie beside all that were.
        ends = (_around(fixed, middle(many[0])), _around(marginal, middle(many[1])))
    off = float(np.max(np.abs(line / medians - 1)))
    return Cost(name, direction, fixed, marginal, *ends, off, sizes, fewest)


def _around(value: float, interval: Interval) -> Interval:
    return min(value, interval[0]), max(value, interval[1])
