"""Intervals of medians and of ratios of medians: the percentile bootstrap, 95 %.

Runs are drawn again with replacement 9,999 times; the interval is the middle 95 % of the medians of those draws. It
says what the runs at hand can say: of 3, 4 or 5 runs it is their whole range, of fewer than 3 there is none. How much
that is worth is in docs/explanation/statistics.md. The draws are seeded by the name of what they are about, so that the
same rows always give the same interval.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator

Interval = tuple[float, float]
CONFIDENCE = 0.95
FEWEST = 3  # runs: the range of two is no better than a guess
_ALL = 5  # runs: of so many or fewer the interval is their range
_HOLDS = 10  # runs: from here on it holds the true median as often as it says; see docs/explanation/statistics.md
DRAWS = 9_999


def median_interval(values: Sequence[float], name: str) -> Interval | None:
    """Return the interval of the median of some values in any order; None of fewer than FEWEST."""
    return _median_interval(tuple(values), name)


@lru_cache(maxsize=16_384)  # pictures and tables of one report ask for the same medians up to five times
def _median_interval(values: tuple[float, ...], name: str) -> Interval | None:
    import numpy as np  # not at the top, as scipy below: a second that a command without a report need not wait

    return _interval([values], np.median, name)


def called(counts: Iterable[int]) -> str:
    """Return what the intervals of medians of so many runs may be called: `range of 3`, `interval`, `95 %`, or nothing.

    Only of many runs does such an interval hold the true median in 95 % of all cases; of 3 in 75 %.
    """
    known = {count for count in counts if count >= FEWEST}
    if not known or min(known) >= _HOLDS:
        return "95 %" if known else ""
    if max(known) > _ALL:
        return "interval"
    return f"range of {min(known)}" + (f" to {max(known)}" if len(known) > 1 else "")


def ratio_interval(of: Sequence[float], to: Sequence[float], name: str) -> Interval | None:
    """Return the interval of the ratio of the median of one sample to that of another, drawn apart from each other."""
    import numpy as np

    def ratio(one: Any, other: Any, axis: int) -> Any:
        return np.median(one, axis=axis) / np.median(other, axis=axis)

    return _interval([of, to], ratio, name)


def leaves_out_one(ratio: Interval | None) -> bool:
    """Say whether the interval of a ratio shows a difference; none shows none."""
    return ratio is not None and not ratio[0] <= 1 <= ratio[1]


def overlap(one: Interval, other: Interval) -> bool:
    """Say whether neither of two intervals lies wholly below the other."""
    return one[0] <= other[1] and other[0] <= one[1]


def draws_of(name: str) -> Generator:
    """Return the source of the draws for what has this name: the same name gives the same draws."""
    from numpy.random import default_rng

    return default_rng(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()))


def _interval(samples: Sequence[Sequence[float]], statistic: Callable[..., Any], name: str) -> Interval | None:
    if min(map(len, samples)) < FEWEST:
        return None
    from scipy import stats

    drawn = stats.bootstrap(
        [sorted(values) for values in samples],
        statistic,
        n_resamples=DRAWS,
        vectorized=True,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=draws_of(name),
    )
    low, high = float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)
    of_all = float(statistic(*samples, axis=-1))
    # The ends are interpolated, and may lie beside the value by the last digit where all draws have it.
    return min(low, of_all), max(high, of_all)
