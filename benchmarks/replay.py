"""Races over recorded runs: the race of `lab recommend`, its budget and all, on a track whose clock goes by the record.

A run costs as much as a recorded one of the same transport and rows: its call, and the rest until the next run starts.
The calls are not the recorded ones: these would then both pick and judge the winner. For each race, a transport's true
time is drawn from the range that the recorded runs leave open. Its runs are drawn around that time, with the spread
that the race supposes (Smyth's, harness/report/intervals.py).
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from harness import registry, settings
from harness.datasets import examples
from harness.datasets.user_data import data
from harness.model import Operation, Run
from harness.recommend import judging
from harness.recommend.budget import BUDGET
from harness.recommend.eligible import Asked, bounds_of
from harness.recommend.race import DEFAULT_SPREAD, Race
from harness.recommend.racing import Racing, Track
from harness.report.summary import EXACT
from harness.results import folder as folders
from harness.results.row import Row

STARTUP = 5.0  # seconds from the start to the first run: servers, data, installed packages
WIDEST = 0.6  # spread: of 665 recorded cases none has more, where the tail of a chi-square has no end
PAUSE = 10.0  # a longer rest is no run's: a user stopped the process and resumed it

Case = tuple[str, int]  # transport, rows


@dataclass(frozen=True)
class Record:
    """The recorded runs of an example by transport and rows, the request, and the cost of each without its call.

    `first` is that cost for the first run of so many rows: it waits until tables of that size are there.
    """

    asked: Asked
    rows: int
    runs: dict[Case, list[Row]]
    beside: dict[Case, list[float]]
    first: dict[int, float]


@dataclass(frozen=True)
class Ended:
    """The end of a race: its winner, how many times as long as the best one it truly takes, seconds and runs in all.

    `enough`: all finalists had their passes. `best` is the place of the truly best one: in, behind or out.
    """

    winner: str
    factor: float
    seconds: float
    runs: int
    enough: bool
    behind: int
    best: str
    racing: Racing = field(repr=False)


def record_of(folder: Path) -> Record:
    """Read the recorded runs in a folder."""
    rows = sorted(folders.read(folder).rows, key=lambda row: row.order)
    runs: dict[Case, list[Row]] = defaultdict(list)
    beside: dict[Case, list[float]] = defaultdict(list)
    first: dict[int, float] = {}
    starts = [datetime.fromisoformat(row.started_at) for row in rows]
    for row, (start, following) in zip(rows, pairwise(starts), strict=False):
        case = row.transport, int(row.parameters["rows"])
        runs[case].append(row)
        took = max((following - start).total_seconds() - (row.took if row.ok else 0.0), 0.0)
        if case[1] not in first:
            first[case[1]] = took
        elif took < PAUSE:
            beside[case].append(took)
    # A few rows of the example: the race only asks them about the columns.
    few = data.from_frame(examples.example(folder.name, 100, 1))
    of = rows[0]
    asked = Asked(data=few, system=of.system, operation=Operation(of.operation), frame=of.frame)
    return Record(asked, max(first), dict(runs), dict(beside), first)


class Replay:
    """A track for one race over a record: draws true and measured times, and has the clock."""

    def __init__(self, record: Record, seed: int) -> None:
        self.record, self.chance, self.clock = record, random.Random(seed), STARTUP
        self.spread: dict[Case, float] = {}
        self.truth: dict[Case, float] = {}
        self.begun: set[int] = set()
        for case, rows in sorted(record.runs.items()):
            if all(row.ok and row.fidelity == EXACT for row in rows):
                self._draw(case, [math.log(row.took) for row in rows])

    def _draw(self, case: Case, logs: Sequence[float]) -> None:
        """Draw a transport's true time and its scatter from the logarithms of recorded times."""
        middle, freedom = fmean(logs), DEFAULT_SPREAD.freedom + len(logs) - 1
        squares = DEFAULT_SPREAD.freedom * DEFAULT_SPREAD.prior**2 + sum((one - middle) ** 2 for one in logs)
        spread = math.sqrt(squares / self.chance.gammavariate(freedom / 2, 2))  # a chi-square
        self.spread[case] = min(spread, WIDEST)
        self.truth[case] = math.exp(self.chance.gauss(middle, self.spread[case] / math.sqrt(len(logs))))

    @property
    def of_all_rows(self) -> dict[str, float]:
        """The true seconds of each transport for all rows; one that was hopeless on a slice was not recorded there."""
        return {name: took for (name, rows), took in self.truth.items() if rows == self.record.rows}

    def perform(self, runs: Sequence[Run], on_row: Callable[[Row], None]) -> None:
        """Draw the rows of some runs, and let their time pass."""
        for run in runs:
            rows = int(str(run.case.parameters["rows"]))
            row, beside = self._run(run.case.transport.id, rows)
            if rows not in self.begun:
                beside = max(beside, self.record.first.get(rows, 0.0))
                self.begun.add(rows)
            self.clock += beside + (row.took if row.ok else 0.0)
            on_row(replace(row, pass_number=run.pass_number, order=run.order))

    def _run(self, transport: str, rows: int) -> tuple[Row, float]:
        known = max((size for name, size in self.record.runs if name == transport and size <= rows), default=None)
        if known is None:  # a bound, which was not recorded: as fast as the best
            best = min(self.of_all_rows, key=self.of_all_rows.__getitem__)
            row, beside = self._run(best, rows)
            return replace(row, transport=transport), beside
        case = transport, known
        row, beside = self.chance.choice(self.record.runs[case]), self.chance.choice(self.record.beside[case])
        row = replace(row, rows=rows, parameters={"rows": str(rows)})
        if case not in self.truth:
            return row, beside
        took = self.truth[case] * math.exp(self.chance.gauss(0, self.spread[case])) * rows / known
        return replace(row, seconds=took), beside


def race(record: Record, seed: int, budget: float = BUDGET) -> Ended:
    """Hold one race over a record, as `lab recommend` holds it within a budget of seconds."""
    replay = Replay(record, seed)
    asked = replace(record.asked, budget=budget, started=0.0, defaults=judging.defaults(settings.load()))
    bounds = bounds_of(record.asked)
    names = sorted({name for name, _ in record.runs})
    defaults = frozenset(asked.defaults) & set(names)
    entries = {entry.id: entry for entry in (*map(registry.one, names), *bounds)}
    track = Track("drawn", "recorded", Path(), replay.perform, now=lambda: replay.clock)
    racing = Racing(asked, Race(names, record.rows, seed, defaults, after=len(bounds)), entries, [], bounds, track)
    racing.perform(lambda row: None)
    truth = replay.of_all_rows
    best, winner = min(truth, key=truth.__getitem__), racing.race.fastest(record.rows) or "nobody"
    return Ended(
        winner,
        truth.get(winner, math.inf) / truth[best],
        replay.clock,
        len(racing.rows),
        not racing.ended and racing.race.finished,
        len(racing.race.behind),
        "in" if best in racing.race.contenders else "behind" if best in racing.race.behind else "out",
        racing,
    )
