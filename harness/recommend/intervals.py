"""Intervals of the times of few runs.

An interval needs a spread, which two or three runs do not tell. So the variance of the logarithm of a transport's times
is drawn towards what such runs usually have, as the moderated t of Smyth does for genes (Statistical Applications in
Genetics and Molecular Biology 3, 2004): (d0 s0^2 + d s^2) / (d0 + d), and the interval of the mean has d0 + d degrees
of freedom. s0 and d0 come from runs that were recorded (docs/explanation/the-race.md also says how often it errs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import fmean

SPREAD, FREEDOM = 0.11, 3.0  # s0 and d0, of a whole run of matrix: docs/explanation/the-race.md
CONFIDENCE = 0.95


def mean(seconds: Sequence[float]) -> float:
    """Return the geometric mean of some times."""
    return math.exp(fmean(map(math.log, seconds)))


def interval(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the mean of some times, also of a single one; see the top of this file."""
    return ratio_interval(seconds, None)


def ratio_interval(of: Sequence[float], to: Sequence[float] | None) -> tuple[float, float]:
    """Return the interval of how many times as long one sample takes as another (None: as one second)."""
    samples = [list(map(math.log, one)) for one in (of, to) if one is not None]
    middle = fmean(samples[0]) - (fmean(samples[1]) if to is not None else 0.0)
    spreads = [_moderated(logs) for logs in samples]
    error = math.sqrt(sum(spread / len(logs) for (spread, _), logs in zip(spreads, samples, strict=True)))
    width = _student(min(freedom for _, freedom in spreads)) * error
    return math.exp(middle - width), math.exp(middle + width)


def _moderated(logs: Sequence[float]) -> tuple[float, float]:
    """Return the moderated variance of some logarithms, and its degrees of freedom."""
    middle, freedom = fmean(logs), FREEDOM + len(logs) - 1
    squares = sum((one - middle) ** 2 for one in logs)
    return (FREEDOM * SPREAD**2 + squares) / freedom, freedom


@cache
def _student(freedom: float) -> float:
    from scipy import stats  # not at the top: it takes a second

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
