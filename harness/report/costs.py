"""What a call costs whatever it moves, and what each row adds: a straight line through the seconds over the rows.

The model, seconds = fixed + marginal x rows, is Hockney's of vector pipelines (R. W. Hockney, the benchmark RINF1): the
rate tends to 1 / marginal, and half of it is reached at fixed / marginal rows, his half-performance length n1/2. It is
fitted to the medians at each number of rows as a generalized linear model with a constant coefficient of variation (P.
McCullagh & J. A. Nelder, Generalized Linear Models, 2nd ed. 1989, chapter 8), by iteratively reweighted least squares:
an error counts as a share of what the line says. With plain least squares the largest size would decide alone, and the
fixed cost would be what is left over; with shares of what was measured, low outliers would win. Neither cost is below
zero. Intervals are the middle of the lines through times drawn within the interval of each size (see `intervals`).
Where a transport does not cost as a straight
line says, `off` tells how far it is from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.report.curves import Curve, Direction
from harness.report.intervals import Estimate, Interval, around, draws, draws_of, middle

STRAIGHT = 1.25  # off by more: no line, and what it says of a call or a row is not told in a sentence
_ROUNDS, _LEAST = 20, 1e-3  # of the fit; and the share of what was measured below which no line is taken to be
FEWEST_SIZES = 4  # numbers of rows: a line through two or three says little about whether it is one


@dataclass(frozen=True)
class Cost:
    """What a transport costs: `fixed` seconds a call and `marginal` seconds a row, each with its interval.

    Intervals are None where nothing is known of the scatter. `off` is how many times as large as the other the line or
    a median is at most: 1.1 is 10 %. `sizes` are the numbers of rows.
    """

    transport: str
    direction: Direction
    fixed: float
    marginal: float
    fixed_interval: Interval | None
    marginal_interval: Interval | None
    off: float
    sizes: tuple[int, ...]

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


def fitted(sizes: Sequence[float], seconds: Any) -> tuple[Any, Any]:
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


def _cost(name: str, direction: Direction, curve: Curve) -> Cost:
    import numpy as np

    sizes = tuple(curve)
    medians = np.array([case.took for case in curve.values()])
    fixed, marginal = map(float, fitted(sizes, medians))
    line = fixed + marginal * np.asarray(sizes)
    ends: tuple[Interval | None, Interval | None] = (None, None)
    known = tuple(case.estimate for case in curve.values() if case.estimate)
    if len(known) == len(sizes):
        drawn = _intervals(f"{direction.name}/{name}", sizes, known)
        # The line through the medians of all runs is one that was not drawn, and may lie beside all that were.
        ends = (around(fixed, drawn[0]), around(marginal, drawn[1]))
    off = float(np.max(np.maximum(line / medians, medians / line)))
    return Cost(name, direction, fixed, marginal, *ends, off, sizes)


@lru_cache(maxsize=1_000)  # a report asks several times: for its sentences, its tables and its pictures
def _intervals(name: str, sizes: tuple[int, ...], times: tuple[Estimate, ...]) -> tuple[Interval, Interval]:
    import numpy as np

    source = draws_of(name)
    fixed, marginal = fitted(sizes, np.stack([draws(one, source) for one in times], axis=-1))
    return middle(fixed), middle(marginal)
