"""The race: which transports run next, at how many rows, and which are out. Pure: times in, runs out.

Successive halving over growing slices of the data (Jamieson & Talwalkar, AISTATS 2016), but what goes on is not the
better half: it is whoever is not shown to be slower, as in racing algorithms (Maron & Moore, NIPS 1994; F-Race,
Birattari et al., GECCO 2002). All that are still in run once a pass, shuffled, so that slow spells of the machine fall
on all.

An interval needs a spread, which two or three runs do not tell. So the variance of the logarithm of a transport's times
is drawn towards what such runs usually have, as the moderated t of Smyth does for genes (Statistical Applications in
Genetics and Molecular Biology 3, 2004): (d0 s0^2 + d s^2) / (d0 + d), and the interval of the mean has d0 + d degrees
of freedom. s0 and d0 come from runs that were recorded (see docs/methodology.md, which also says how often it errs).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean, variance

SLICES = (10_000, 100_000)  # rows; the last stage has all
SPREAD, FREEDOM = 0.11, 3.0  # s0 and d0, of the reference run of the matrix; tests/recommend/test_spread.py
CONFIDENCE = 0.95
# A slice does not tell everything about all rows: there only those are out whose interval lies above so many times the
# end of the leader's.
MARGINS = {10_000: 2.0, 100_000: 1.5}
AFTER_ONE = 2.0  # a single run tells nothing of its own spread: then the margin is so many times as wide
PASSES = {10_000: 2, 100_000: 2}
LAST_PASSES, MOST_PASSES = 7, 11  # on all rows; more than 7 as long as it is not decided
DECIDED = 1.15  # times that the winner may take at most as long as anybody else could


@dataclass(frozen=True)
class Turn:
    """One run of the race: who, on how many rows, in which pass of that stage (from 1)."""

    transport: str
    rows: int
    number: int


@dataclass
class Race:
    """A race of some transports on so many rows. `told` are the seconds of ok runs, by rows and transport.

    `kept` are transports that nobody expects to win, but whose times are asked for: they run in every stage where they
    are not slower than `patience` times the leader. `out` says why a transport is no longer in.
    """

    transports: Sequence[str]
    rows: int
    seed: int
    kept: frozenset[str] = frozenset()
    patience: float = 20.0
    told: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)

    @property
    def stages(self) -> list[int]:
        """The rows of each stage: slices that are much smaller than all, and all."""
        return stages(self.rows)

    def passes(self) -> Iterator[list[Turn]]:
        """Yield the runs of one pass after the other, shuffled; all are to be told of before the next is asked for."""
        for rows in self.stages:
            last = rows == self.rows
            for number in range(1, (MOST_PASSES if last else PASSES[rows]) + 1):
                if last and number > LAST_PASSES and self._decided(rows):
                    break
                chosen = self._still_in(rows, number)
                if not last and len(self.contenders) == 1:
                    break  # there is nothing to find out on a slice
                random.Random(f"{self.seed}/{rows}/{number}").shuffle(chosen)
                yield [Turn(transport, rows, number) for transport in chosen]
                self._drop(rows)

    def tell(self, turn: Turn, seconds: float) -> None:
        """Take in the time of an ok run."""
        self.told.setdefault(turn.rows, {}).setdefault(turn.transport, []).append(seconds)

    def fail(self, turn: Turn, reason: str) -> None:
        """Take in that a run was not ok: who changes or refuses a value is out, whoever it is."""
        self.out[turn.transport] = reason
        self.kept = self.kept - {turn.transport}
        for times in self.told.values():
            times.pop(turn.transport, None)

    @property
    def contenders(self) -> list[str]:
        """Who is still in."""
        return [transport for transport in self.transports if transport not in self.out]

    def leader(self, rows: int) -> str | None:
        """Return the contender that is fastest for all that is known: whose interval has the lowest upper end.

        By the mean alone one that scatters would win by luck. None before anybody has run.
        """
        ends = {name: interval(found)[1] for name, found in self.told.get(rows, {}).items() if name not in self.out}
        return min(ends, key=ends.__getitem__) if ends else None

    def to_come(self, rows: int, number: int) -> Iterator[tuple[int, int]]:
        """Yield the rows and how many passes on them follow this pass, as long as nobody else is out."""
        for stage in self.stages:
            planned = LAST_PASSES if stage == self.rows else PASSES[stage]
            left = planned - number if stage == rows else planned
            if stage >= rows and left > 0:
                yield stage, left

    def _decided(self, rows: int) -> bool:
        """Say whether nobody who is still in can be much faster than the leader."""
        leader, times = self.leader(rows), self.told.get(rows, {})
        if leader is None:
            return True
        others = [interval(found)[0] for name, found in times.items() if name not in self.out and name != leader]
        return not others or interval(times[leader])[1] <= DECIDED * min(others)

    def _still_in(self, rows: int, number: int) -> list[str]:
        return [
            *self.contenders,
            *(name for name in sorted(self.kept) if name in self.out and self._worth_it(name, rows, number)),
        ]

    def _worth_it(self, name: str, rows: int, number: int) -> bool:
        """Say whether a transport that is out runs on, for the sake of its figure: three times where it is not slow."""
        if number > 3:
            return False
        for known in sorted(self.told, reverse=True):
            times, leader = self.told[known].get(name), self.leader(known)
            if times and leader:
                return mean(times) <= self.patience * mean(self.told[known][leader])
        return True

    def _drop(self, rows: int) -> None:
        leader = self.leader(rows)
        if leader is None:
            return
        times = self.told[rows]
        border = interval(times[leader])[1] * MARGINS.get(rows, 1.0) * (AFTER_ONE if len(times[leader]) == 1 else 1.0)
        for name in self.contenders:
            if name != leader and name in times and interval(times[name])[0] > border:
                slower = mean(times[name]) / mean(times[leader])
                self.out[name] = f"{slower:.1f} times as slow as the fastest of {rows:,} rows"


def stages(rows: int) -> list[int]:
    """Return the rows of the stages of a race on so many rows: slices that are much smaller than all, and all."""
    return [*(some for some in SLICES if some * 2 <= rows), rows]


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
    own = len(logs) - 1
    found = variance(logs) if own else 0.0
    return (FREEDOM * SPREAD**2 + own * found) / (FREEDOM + own), FREEDOM + own


@cache
def _student(freedom: float) -> float:
    from scipy import stats  # not at the top: it takes a second

    return float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
