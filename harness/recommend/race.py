"""The race: which transports run next, at how many rows, and which are out. Pure: times in, runs out.

Successive halving over growing slices of the data (Jamieson & Talwalkar, AISTATS 2016). But every transport that is not
shown to be slower stays, not just the better half. That is the rule of racing algorithms (Maron & Moore, NIPS 1994;
F-Race, Birattari et al., GECCO 2002). Each remaining transport runs once a pass, in random order, so that slow spells
of the machine affect all.

If too many are near-equal for the rest of the budget, the race cuts the field by rank, no more sharply than the budget
requires. Sequential halving does so with a fixed budget (Karnin, Koren & Somekh, ICML 2013). The transports that it
cuts are left behind: they are not out, because they are not shown to be slower. After the passes of the finalists, each
transport left behind runs on all rows if time is left. Then near ties get more passes. Last, those left behind run
again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean as mean
from statistics import median

from harness.recommend.budget import FEWEST, FIRST_GUESS, RESERVE, Prices, going_on, whole_pass_fits
from harness.report.intervals import UNKNOWN, Interval, RunSpread, estimate, interval, spread_of

SLICES = (10_000, 100_000)  # rows; the last stage has all
# A slice predicts all rows only roughly: there a transport is out only if its interval is above this multiple of the
# leader's upper end.
MARGINS = {10_000: 2.0, 100_000: 1.5}
AFTER_ONE = 2.0  # a single run has no known spread: then the margin is this many times as wide
PASSES = {10_000: 2, 100_000: 2}
# The cost that a pass on a slice may have after the first, as a share of the next stage's pass and of the time left.
CHEAP, SLICE_SHARE = 0.5, 0.25
LAST_PASSES, MOST_PASSES = 7, 25  # on all rows; only undecided transports get more than 7
PLANNED = 8  # passes that the budget must cover: those that finalists do not need go to undecided transports
DECIDED = 1.05  # a race is decided if no other transport can be faster than the winner by more than this factor
# The spread of a whole run of matrix (docs/explanation/the-race.md), for a race with too few runs to estimate its own.
# ENOUGH are degrees of freedom.
DEFAULT_SPREAD, ENOUGH = RunSpread(0.11, 3.0), 20
# Runs that only add figures: the number of passes, and the share of the time left that one may cost.
DEFAULT_PASSES, DEFAULT_SHARE = 3, 1 / 50


@dataclass(frozen=True)
class Turn:
    """One run of the race: the transport, the number of rows, and the pass of that stage (from 1)."""

    transport: str
    rows: int
    number: int


@dataclass
class Race:
    """A race of some transports on a number of rows. `told` has the seconds of ok runs, by rows and transport.

    `kept` are transports that are not expected to win, but whose times are wanted. They run in every stage where they
    are not slower than `patience` times the leader. `out` has the reason for each transport that dropped out, `behind`
    are those that the budget left behind. `left` returns the seconds that are left for runs. `after` is the number of
    runs after the race, each of which takes at most as long as the winner. `likely` are transports that run first in
    the first pass, in this order: a short budget may end in it.
    """

    transports: Sequence[str]
    rows: int
    seed: int | str
    kept: frozenset[str] = frozenset()
    patience: float = 20.0
    left: Callable[[], float] = lambda: math.inf
    after: int = 0
    likely: Sequence[str] = ()
    told: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    behind: set[str] = field(default_factory=set)
    prices: Prices = field(default_factory=Prices)
    _scatter: tuple[int, RunSpread] = (0, DEFAULT_SPREAD)  # the number of runs, and their spread

    @property
    def stages(self) -> list[int]:
        """The rows of each stage: slices that are much smaller than all, and all."""
        return stages(self.rows)

    def passes(self) -> Iterator[list[Turn]]:
        """Yield the runs of one pass after the other, shuffled; report all of them before you ask for the next."""
        for rows, following in zip(self.stages, [*self.stages[1:], None], strict=True):
            for number in range(1, (MOST_PASSES if following is None else PASSES[rows]) + 1):
                if following is None and number == LAST_PASSES + 1:
                    yield from self._late_passes(1)
                if not (self._goes_on(number) if following is None else self._worth_a_pass(rows, following)):
                    break
                scouts = self._scouts() if following is None and number == 1 else []
                if scouts:
                    yield self._shuffled(scouts, rows, number)
                if following is None and number <= LAST_PASSES:
                    self._leave_behind(number)
                chosen = self._undecided() if number > LAST_PASSES else self._still_in(rows, number)
                yield self._shuffled([name for name in chosen if name not in scouts], rows, number)
                self._drop(rows)
        yield from self._late_passes(LAST_PASSES)

    def _late_passes(self, most: int) -> Iterator[list[Turn]]:
        """Yield passes of the transports left behind, until each has enough runs on all rows or no other run fits."""
        while late := self._late(most):
            number = self._runs(late[0]) + 1
            yield self._shuffled(late, self.rows, number)
            self._drop(self.rows)
            self.behind -= {name for name in late if self._runs(name) >= LAST_PASSES}

    def _late(self, most: int) -> list[str]:
        """Return the transports left behind that run on all rows now: as many of those with the fewest runs as fit.

        The best ranks come first; the list is empty if no other run fits.
        """
        fewest = min(map(self._runs, self.behind), default=most)
        if fewest >= most or not self.told.get(self.rows):
            return []
        left = self._left_for_contenders(MOST_PASSES)
        found = []
        for name in self._ranked(self.behind):
            if self._runs(name) == fewest and (left := left - self.prices.of(name, self.rows)) >= 0:
                found.append(name)
        return found

    def _runs(self, name: str) -> int:
        return len(self.told.get(self.rows, {}).get(name, ()))

    def _shuffled(self, names: list[str], rows: int, number: int) -> list[Turn]:
        chance = random.Random(f"{self.seed}/{rows}/{number}")
        drawn = chance.sample(names, len(names))
        if not self.told:
            places = {name: place for place, name in enumerate(self.likely)}
            drawn.sort(key=lambda name: places.get(name, len(places)))
        return [Turn(name, rows, number) for name in drawn]

    def tell(self, turn: Turn, seconds: float, cost: float | None = None) -> None:
        """Add the time of an ok run, and its cost with the overhead."""
        self.told.setdefault(turn.rows, {}).setdefault(turn.transport, []).append(seconds)
        self.prices.note(turn.transport, turn.rows, seconds, cost)

    def fail(self, turn: Turn, reason: str) -> None:
        """Record that a run was not ok: a transport that changes or refuses a value drops out."""
        self.out[turn.transport] = reason
        self.kept = self.kept - {turn.transport}
        self.behind.discard(turn.transport)
        for times in self.told.values():
            times.pop(turn.transport, None)

    @property
    def contenders(self) -> list[str]:
        """The transports still in the race."""
        return [name for name in self.transports if name not in self.out and name not in self.behind]

    @property
    def finished(self) -> bool:
        """Whether all remaining transports had their passes on all rows."""
        times = self.told.get(self.rows, {})
        return all(len(times.get(name, ())) >= LAST_PASSES for name in self.contenders)

    def affords(self, turn: Turn) -> bool:
        """Say whether a run would probably end in the time left, even if its call took twice as long as usual.

        The first run on these rows need only fit as estimated. In the very first pass each run may start while there is
        time: no cost is known yet, and the deadline ends a run that takes longer.
        """
        name, rows = turn.transport, turn.rows
        if turn.number == 1 and rows == self.stages[0]:
            return self.left() > FIRST_GUESS
        spare = self.prices.call(name, rows) if name in self.told.get(rows, {}) else 0.0
        return self.prices.of(name, rows) + spare <= self.left()

    def cost_of_finalists(self) -> float:
        """Return the seconds of the passes on all rows that the FEWEST best transports still lack."""
        lacking = {name: max(LAST_PASSES - self._runs(name), 0) for name in self._ranked()[:FEWEST]}
        return sum(many * self.prices.of(name, self.rows) for name, many in lacking.items())

    def leader(self, rows: int) -> str | None:
        """Return the contender that others must keep up with: the one whose interval has the lowest upper end.

        By the mean alone, one that scatters would win by luck. None before the first run.
        """
        times = self.told.get(rows, {})
        ends = {name: self.interval(times[name])[1] for name in self.contenders if name in times}
        return min(ends, key=ends.__getitem__) if ends else None

    def fastest(self, rows: int) -> str | None:
        """Return the answer of the runs so far: the contender with the smallest median, as in every report."""
        times = self.told.get(rows, {})
        medians = {name: median(times[name]) for name in self.contenders if name in times}
        return min(medians, key=medians.__getitem__) if medians else None

    @property
    def spread(self) -> RunSpread:
        """How much the runs of this race scatter; DEFAULT_SPREAD while they are too few."""
        cases = [times for of in self.told.values() for times in of.values()]
        runs = sum(map(len, cases))
        if runs != self._scatter[0]:
            found = spread_of(cases) if runs - len(cases) >= ENOUGH else UNKNOWN
            self._scatter = runs, DEFAULT_SPREAD if found is UNKNOWN else found
        return self._scatter[1]

    def interval(self, seconds: Sequence[float]) -> Interval:
        """Return the interval of some times of this race, also of a single one."""
        found = estimate(seconds, self.spread)
        assert found  # with a known spread, even a single run has an interval
        return interval(found)

    def to_come(self, rows: int, number: int) -> Iterator[tuple[int, int]]:
        """Yield the rows and the number of passes on them after this pass, as long as no other transport drops out."""
        for stage in self.stages:
            planned = LAST_PASSES if stage == self.rows else PASSES[stage]
            left = planned - number if stage == rows else planned
            if stage >= rows and left > 0:
                yield stage, left

    def _goes_on(self, number: int) -> bool:
        """Say whether another pass on all rows follows: after the seventh only if the race is undecided and it fits."""
        if number <= LAST_PASSES:
            return True
        cost = sum(self.prices.of(name, self.rows) for name in self._undecided())
        return 0 < cost <= self._left_for_contenders(number)

    def _undecided(self) -> list[str]:
        """Return the transports that could still be much faster than the leader, and it; none if all is decided."""
        leader, times = self.leader(self.rows), self.told.get(self.rows, {})
        if leader is None:
            return []
        border = self.interval(times[leader])[1] / DECIDED
        others = [name for name in self.contenders if name != leader and self.interval(times[name])[0] < border]
        return [leader, *others] if others else []

    def _worth_a_pass(self, rows: int, following: int) -> bool:
        """Say whether a pass on a slice helps to decide, at a lower cost than the next stage.

        If a run is mostly the start of its process, a slice is not cheaper than all rows, and says less.
        """
        if not self.told:
            return len(self.contenders) > 1
        most = min(CHEAP * self._cost(following), SLICE_SHARE * self.left())
        return len(self.contenders) > 1 and self._cost(rows) <= most

    def _cost(self, rows: int) -> float:
        return sum(self.prices.of(name, rows) for name in self.contenders)

    def _left_for_contenders(self, number: int) -> float:
        """Return the time left from a pass on all rows on, without runs that only add figures."""
        in_race = [self.prices.of(name, self.rows) for name in self.contenders]
        defaults = [name for name in self._still_in(self.rows, number) if name not in self.contenders]
        others = sum(self.prices.of(name, self.rows) for name in defaults) * (DEFAULT_PASSES + 1 - number)
        return (1 - RESERVE) * self.left() - others - self.after * min(in_race, default=0.0)

    def _ranked(self, among: Iterable[str] = ()) -> list[str]:
        """Return contenders, or other transports, by their means at the most rows that most ran; none before a run."""
        runs = {rows: len(times) for rows, times in self.told.items() if times}
        if not runs:
            return []
        times = self.told[max(runs, key=lambda rows: (runs[rows] > FEWEST, rows))]
        return sorted(among or self.contenders, key=lambda name: (mean(times.get(name, [math.inf])), name))

    def _scouts(self) -> list[str]:
        """Return the few most promising: their runs on all rows show the cost before the race cuts the field."""
        several = len(self.contenders) > FEWEST and not math.isinf(self.left())
        return self._ranked()[:FEWEST] if several else []

    def _leave_behind(self, number: int) -> None:
        """Before a pass on all rows, leave behind the slowest transports that do not fit into the time left."""
        ranked = self._ranked()
        if not ranked or math.isinf(self.left()):
            return
        costs = [self.prices.of(name, self.rows) for name in ranked]
        left = self._left_for_contenders(number)
        if number == 1 and whole_pass_fits(costs, LAST_PASSES, left):
            return  # a slice ranks less well than a pass on all rows
        many = going_on(costs, PLANNED + 1 - number, left)
        if many <= FEWEST:
            many = going_on(costs, LAST_PASSES + 1 - number, left)
        self.behind.update(ranked[many:])

    def _still_in(self, rows: int, number: int) -> list[str]:
        contenders = self.contenders
        return [
            *contenders,
            *(name for name in sorted(self.kept) if name not in contenders and self._worth_it(name, rows, number)),
        ]

    def _worth_it(self, name: str, rows: int, number: int) -> bool:
        """Say whether one that is out runs on for its figure alone: three times unless it is slow."""
        if number > DEFAULT_PASSES or self.prices.of(name, rows) > DEFAULT_SHARE * self.left():
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
        border = (
            self.interval(times[leader])[1] * MARGINS.get(rows, 1.0) * (AFTER_ONE if len(times[leader]) == 1 else 1.0)
        )
        for name in self.transports:
            if name not in self.out and name != leader and name in times and self.interval(times[name])[0] > border:
                slower = mean(times[name]) / mean(times[leader])
                self.out[name] = f"{slower:.1f} times as slow as the fastest of {rows:,} rows"
                self.behind.discard(name)


def stages(rows: int) -> list[int]:
    """Return the rows of the stages of a race: slices that are much smaller than all rows, and all rows."""
    return [*(some for some in SLICES if some * 2 <= rows), rows]
