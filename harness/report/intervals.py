"""The uncertainty of a time, or of the ratio of two times: the moderated t on the logarithms of seconds.

Three runs of a transport say little about how much it scatters. The other transports of the same run say more. Smyth's
moderated t (Statistical Applications in Genetics and Molecular Biology 3, 2004) draws the variance of each towards that
of all, s0 squared. As far as these agree, that is worth d0 degrees of freedom. Both are estimated from the run at hand
(`spread_of`). A ratio of two times is the difference of two means of logarithms, with the fewer of their degrees of
freedom. With Welch's, three runs of equal transports differ in 9 to 12 % of all pairs.

docs/explanation/statistics.md says how often these intervals contain the truth, as benchmarks/coverage.py measures it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

Array = NDArray[np.float64]

Interval = tuple[float, float]
_FAR = 700.0  # a logarithm: the number of a larger one exceeds a float
CONFIDENCE = 0.95
DRAWS = 9_999
_FEWEST_CASES = 3  # variances: fewer say nothing about how much they agree


@dataclass(frozen=True)
class RunSpread:
    """How much the times of one run scatter: s0, the standard deviation of their logarithms, and d0, its weight.

    `most` is the weight of all runs together, which limits that of any single estimate.
    """

    prior: float = 0.0
    freedom: float = 0.0
    most: float = math.inf


UNKNOWN = RunSpread()  # of a run with too few cases: each has its own scatter, which is Student's t


@dataclass(frozen=True)
class Estimate:
    """An estimate of a time's logarithm from some runs: mean, standard error and degrees of freedom."""

    mean: float
    error: float
    freedom: float


def spread_of(samples: Iterable[Sequence[float]]) -> RunSpread:
    """Return how much the times of a run scatter, from the seconds of each of its cases (Smyth 2004, section 6.2)."""
    from scipy import optimize, special  # not at the top: it takes a second, which a command without a report saves

    several = [np.log(seconds) for seconds in samples if len(seconds) > 1]
    known = [(float(np.var(logs, ddof=1)), len(logs) - 1) for logs in several if np.ptp(logs) > 0]
    if len(known) < _FEWEST_CASES:
        return UNKNOWN
    variances, freedoms = map(np.array, zip(*known, strict=True))
    logs = np.log(variances) - special.digamma(freedoms / 2) + np.log(freedoms / 2)
    middle, most = float(logs.mean()), float(freedoms.sum())
    excess = float(np.var(logs, ddof=1) - special.polygamma(1, freedoms / 2).mean())
    if excess <= special.polygamma(1, most / 2):  # no difference in their scatter is shown
        return RunSpread(math.exp(middle / 2), most, most)
    half = optimize.brentq(lambda half: float(special.polygamma(1, half)) - excess, 1e-3, most)
    return RunSpread(math.exp((middle + float(special.digamma(half)) - math.log(half)) / 2), 2 * half, most)


def estimate(seconds: Sequence[float], spread: RunSpread) -> Estimate | None:
    """Return the estimate of a time from some runs, in a run with this spread; None if their scatter is unknown."""
    logs = [math.log(one) for one in seconds]
    freedom = min(spread.freedom + len(logs) - 1, spread.most)
    if not logs or freedom <= 0:
        return None
    middle = fmean(logs)
    squares = spread.freedom * spread.prior**2 + sum((one - middle) ** 2 for one in logs)
    return Estimate(middle, math.sqrt(squares / (spread.freedom + len(logs) - 1) / len(logs)), freedom)


def interval(of: Estimate, among: int = 1) -> Interval:
    """Return the interval of a time, widened so that this many intervals hold together (Bonferroni)."""
    return _around(of.mean, of.error, of.freedom, among)


def ratio(of: Estimate, to: Estimate, among: int = 1) -> Interval:
    """Return the interval of the ratio of two times, as one of `among` such ratios that hold together.

    For the fastest of a table, `among` is the number of its other transports: the same runs chose the fastest.
    """
    return _around(of.mean - to.mean, *_difference(of, to), among)


def p_value(of: Estimate, to: Estimate) -> float:
    """Return the two-sided probability of at least such a difference between equal times."""
    error, freedom = _difference(of, to)
    if not error:
        return float(of.mean == to.mean)
    from scipy import special

    return 2 * float(special.stdtr(freedom, -abs(of.mean - to.mean) / error))


def around(value: float, interval: Interval) -> Interval:
    """Return an interval widened by a figure that is printed next to it: a median may lie outside that of the mean."""
    return min(value, interval[0]), max(value, interval[1])


def factor_interval(factor: float, of: Estimate | None, to: Estimate | None, among: int = 1) -> Interval | None:
    """Return the interval of a printed ratio of two times; None if the scatter of one is unknown."""
    return around(factor, ratio(of, to, among)) if of and to else None


def slower(of: Estimate | None, to: Estimate | None, among: int = 1) -> bool:
    """Say whether one is shown to take longer than the other."""
    return of is not None and to is not None and ratio(of, to, among)[0] > 1


def leaves_out_one(ratio: Interval | None) -> bool:
    """Say whether the interval of a ratio shows a difference; none shows none."""
    return ratio is not None and not ratio[0] <= 1 <= ratio[1]


def draws(of: Estimate, source: Generator, many: int = DRAWS) -> Array:
    """Return times that the true one may be, so that the middle 95 % of them are its interval.

    None is beyond the middle 99.9 %: with few degrees of freedom, no line could be fitted to the most extreme ones.
    """
    most = _student(of.freedom, 0.999)
    return np.exp(of.mean + of.error * np.clip(source.standard_t(of.freedom, many), -most, most))


def draws_of(name: str) -> Generator:
    """Return the random source of a name: the same name gives the same draws."""
    return default_rng(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()))


def middle(drawn: Array) -> Interval:
    """Return the ends of the middle 95 % of some figures: two that were drawn, so that they may be infinite."""
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, (outside, 1 - outside), method="nearest")
    return float(low), float(high)


def _difference(of: Estimate, to: Estimate) -> tuple[float, float]:
    """Return the standard error of a difference of two, and its degrees of freedom."""
    return math.hypot(of.error, to.error), min(of.freedom, to.freedom)


def _around(middle: float, error: float, freedom: float, among: int) -> Interval:
    width = error and _student(freedom, 1 - (1 - CONFIDENCE) / among) * error
    return math.exp(max(middle - width, -_FAR)), math.exp(min(middle + width, _FAR))


@lru_cache(maxsize=16_384)
def _student(freedom: float, confidence: float) -> float:
    from scipy import special

    return float(special.stdtrit(freedom, (1 + confidence) / 2))
