"""A race on real engines: each turn is an ordinary run, a row of an ordinary runs.csv; within a budget of seconds."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from harness.datasets.user_data import data as user_data
from harness.datasets.user_data.losses import undeclared
from harness.machine.calibration import contention
from harness.model import Case, Experiment, LabError, Run, Status, Transport
from harness.recommend.alone import failing
from harness.recommend.budget import FEWEST, REPORT_SECONDS, REPORT_WORK
from harness.recommend.eligible import Asked, LeftOut, bounds_of, divided
from harness.recommend.race import Race, Turn
from harness.report.summary import EXACT
from harness.results.row import Row
from harness.run import runner
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run
from harness.settings import Settings

SUITE, EXPERIMENT = "matrix", "race"
_NO_S3 = "LAB_S3_ENDPOINT names no S3 server that the database reaches, too"
TAIL_SECONDS = 10.0  # beyond the budget, at most: the start of Python, the end of the servers on a busy machine
LEAST_SECONDS = 8.0  # for runs, however long the preparation took: something is known in any case
BOUND_PASSES = 3
_SHARE_OF_ONE = 1 / 6  # of the budget: the time limit of one run
_MORE = 1.5  # a budget that probably suffices has this many times the seconds that the shortest rest of a race takes

Key = tuple[str, str, str, int]  # of a row


class _UsedUp(Exception):
    """Raised if the next run would probably not end within the budget."""


@dataclass(frozen=True)
class Track:
    """The track of a race: `perform` does runs in their order and hands on each row, `now` is the clock of the budget.

    It is real engines, or recorded runs with their own clock (benchmarks/races.py). `done` are earlier rows. `alone`
    returns the columns that each of some transports fails at when they are alone. `server` is the database's version.
    """

    run_id: str
    lab: str
    folder: Path
    perform: Callable[[Sequence[Run], Callable[[Row], None]], None]
    done: Sequence[Row] = ()
    now: Callable[[], float] = time.monotonic
    alone: Callable[[Sequence[Transport], Sequence[str]], dict[str, set[str]]] = lambda entries, columns: {}
    server: str = ""


@dataclass
class Racing:
    """A race under way: its transports, those left out before it began, its bounds, and its rows by their keys.

    `ended` says why it ended before all finalists had their passes, and is empty if it did not. If the budget was too
    short, `enough` are the seconds of one that probably suffices. With `exact`, a transport that returns other types
    than the canonical ones is out. `begun` says that all have run once. If no transport returned all values, `blamed`
    has the columns that each fails at alone. `waiting` are the turns of this pass after `turn`.
    """

    asked: Asked
    race: Race
    entries: dict[str, Transport]
    left_out: list[LeftOut]
    bounds: list[Transport]
    track: Track
    rows: dict[Key, Row] = field(default_factory=dict)
    ended: str = ""
    enough: int = 0
    exact: bool = True
    begun: bool = False
    blamed: dict[str, set[str]] = field(default_factory=dict)
    turn: Turn | None = None
    waiting: deque[Turn] = field(default_factory=deque)

    def __post_init__(self) -> None:
        """Tell the race how much of the budget is left: from now on this clock counts."""
        self.race.left = self._seconds_left

    def _seconds_left(self) -> float:
        return deadline(self.asked) - self.track.now()

    @property
    def eta(self) -> float:
        """The seconds until the end: those of the remaining runs, and never more than the budget."""
        left = Counter((turn.transport, turn.rows) for turn in self.waiting)
        bounds = BOUND_PASSES
        if self.turn and self.turn.transport in self.race.transports:
            late = self.turn.transport in self.race.behind
            for rows, count in () if late else self.race.to_come(self.turn.rows, self.turn.number):
                left.update({(name, rows): count for name in self.race.contenders})
        elif self.turn:
            bounds -= self.turn.number
        left.update({(entry.id, self.race.rows): bounds for entry in self.bounds})
        of_runs = sum(count * self.race.prices.of(*run) for run, count in left.items())
        return max(min(of_runs, self._seconds_left()), 0.0) + max(self.asked.reserve, 0.0)

    def perform(self, on_row: Callable[[Row], None]) -> None:
        """Run until no rank is in doubt or the budget is used up; `on_row` gets each row.

        If no transport returns the canonical types, those that converted values race.
        """
        try:
            for turns in self.race.passes():
                self._pass(turns, on_row)
            if self._admit_converted():
                for turns in self.race.passes():
                    self._pass(turns, on_row)
        except _UsedUp:
            if not self.race.finished:
                self.end_early(f"the budget of {self.asked.budget:.0f} s was used up")
                self.enough = self._enough()
            return
        if not any(map(self.race.fastest, self.race.told)):
            self._blame()
            return
        with suppress(_UsedUp):  # figures of bounds do not count
            for number in range(1, BOUND_PASSES + 1):
                self._pass([Turn(entry.id, self.race.rows, number) for entry in self.bounds], on_row)

    def end_early(self, why: str) -> None:
        """End the race before its finalists had their passes: without a canonical result, converted ones count."""
        self.ended = why
        for row in self._admit_converted():
            self._take_in(Turn(row.transport, int(row.parameters["rows"]), row.pass_number), row)

    def _admit_converted(self) -> list[Row]:
        """If no transport returned the canonical types, let those race that converted values; return their rows."""
        if any(map(self.race.fastest, self.race.told)):
            return []
        rows = [row for row in self.rows.values() if row.ok and row.fidelity not in ("", EXACT)]
        admitted = {row.transport for row in rows}
        self.exact = self.exact and not rows
        self.race.told, self.race.behind = {}, set()
        self.race.kept |= admitted.intersection(self.asked.defaults)
        self.race.out = {name: reason for name, reason in self.race.out.items() if name not in admitted}
        return rows

    def _enough(self) -> int:
        """Return the seconds of a budget that probably suffices: for this pass and those of the finalists."""
        turns = [*([self.turn] if self.turn else []), *self.waiting]
        rest = sum(self.race.prices.of(turn.transport, turn.rows) for turn in turns) + self.race.cost_of_finalists()
        spent = self.track.now() - self.asked.started + max(self.asked.reserve, REPORT_SECONDS)
        return 10 * math.ceil(max(spent + _MORE * rest, _MORE * self.asked.budget) / 10)

    def _blame(self) -> None:
        """Find the columns at which transports fail without a declared loss: one of each type."""
        found = undeclared(self.asked.data.logical_types)
        columns = list({logical: name for name, logical in reversed(found.items())}.values())
        failed = [self.entries[name] for name in self.race.transports]
        self.blamed = self.track.alone(failed, columns) if columns else {}

    def _pass(self, turns: Sequence[Turn], on_row: Callable[[Row], None]) -> None:
        """Do the runs of one pass that are not done yet. Raises _UsedUp if the budget is too short for the next."""
        done = {row.key: row for row in self.track.done} | self.rows
        self.waiting.clear()
        runs: list[Run] = []
        for turn in turns:
            run = self._run(turn, len(self.rows) + len(runs) + 1)
            if row := done.get(run.key):
                self._take_in(turn, row)
            else:
                self.waiting.append(turn)
                runs.append(run)
        since = [self.track.now()]

        def came(row: Row) -> None:
            now = self.track.now()
            if row.status is Status.AGAIN and self._seconds_left() <= 0:
                raise _UsedUp  # the budget ended this run, so it says nothing of the transport
            self._take_in(self.turn, row, now - since.pop())
            since.append(now)
            on_row(row)
            self._next()

        if runs:
            self._next()
            self.track.perform(runs, came)
        self.begun = True

    def _next(self) -> None:
        """Go on to the next turn of the pass, if it has one. Raises _UsedUp if the budget is too short for it."""
        if not self.waiting:
            return
        self.turn = self.waiting.popleft()
        if not self.race.affords(self.turn):
            raise _UsedUp

    def _take_in(self, turn: Turn | None, row: Row, cost: float | None = None) -> None:
        self.rows[row.key] = row
        if turn is None or turn.transport not in self.race.transports:
            return
        if reason := self._wrong(row):
            self.race.fail(turn, reason)
            if row.ok:
                self.race.prices.note(turn.transport, turn.rows, row.took, cost)
        else:
            self.race.tell(turn, row.took, cost)

    def _wrong(self, row: Row) -> str:
        """Say why the transport of a row cannot be recommended, or nothing."""
        if not row.ok:
            return f"{row.status}: {row.error}"
        if self.exact and row.fidelity != EXACT:
            return row.fidelity
        peak, most = row.peak_rss_bytes, self.asked.max_memory
        if most is not None and peak is not None and peak > most:
            return f"took {peak / 1e6:,.0f} MB for {row.rows:,} rows, more than {most / 1e6:,.0f} MB"
        return ""

    def _run(self, turn: Turn, order: int) -> Run:
        case = Case(self.entries[turn.transport], EXPERIMENT, user_data.NAME, {"rows": turn.rows})
        return Run(case, turn.number, order)


@contextmanager
def opened(settings: Settings, asked: Asked, say: Callable[[str], None]) -> Iterator[Racing]:
    """Start the lab for a race. Raises LabError if none may race; raises as `open_run`."""
    eligible, left_out = divided(asked)
    if not settings.s3_endpoint:  # a race starts no S3 server, because it might have to compile it first
        left_out += [LeftOut(entry, f"{Status.UNAVAILABLE}: {_NO_S3}") for entry in eligible if "s3" in entry.needs]
        eligible = [entry for entry in eligible if "s3" not in entry.needs]
    defaults = {entry.id for entry in eligible if entry.id in asked.defaults}

    race = Race([entry.id for entry in eligible], asked.data.rows, settings.seed, frozenset(defaults))
    race.likely = likely(race.transports, asked)
    bounds = bounds_of(asked)
    plan = _plan(settings, asked, race, bounds)
    request = RunRequest(
        # A race decides the order of its runs, within a budget.
        settings=settings.model_copy(update={"calibration": False}),
        plan=plan,
        rig="databases",
        lab=asked.lab,
        run_id=asked.run_id,
        folder=asked.folder,
        say=say,
        user_data=asked.data,
    )
    with open_run(request) as suite_run:
        rig, race.seed = suite_run.rig, suite_run.request.run_id
        say(rig.headline)

        def missing(entry: Transport) -> str | None:
            return rig.unavailable(Case(entry, EXPERIMENT, user_data.NAME, {"rows": race.rows}))

        reasons = {entry.id: reason for entry in eligible if (reason := missing(entry))}
        left_out += [
            LeftOut(entry, f"{Status.UNAVAILABLE}: {reasons[entry.id]}") for entry in eligible if entry.id in reasons
        ]
        entries = {entry.id: entry for entry in eligible if entry.id not in reasons}
        race.transports, race.kept = list(entries), race.kept & entries.keys()
        if not entries:
            raise LabError(f"no transport can run here: {left_out[-1].reason}; lab doctor says more")
        here = [entry for entry in bounds if not missing(entry)]
        entries |= {entry.id: entry for entry in here}
        race.after = len(here)
        # With other work on the machine the report takes longer.
        reserve = max(asked.reserve, min(REPORT_WORK * contention(), asked.budget / 2))
        left = asked.budget - (time.monotonic() - asked.started)
        asked = replace(asked, reserve=min(reserve, left - LEAST_SECONDS))
        suite_run = replace(suite_run, deadline=deadline(asked))
        track = Track(
            run_id=suite_run.request.run_id,
            lab=rig.lab_name,
            folder=suite_run.folder,
            perform=partial(runner.perform, suite_run),
            done=suite_run.done,
            alone=partial(failing, rig, asked.data, deadline=suite_run.deadline),  # type: ignore[arg-type]
            server=rig.servers[asked.system].version,  # type: ignore[attr-defined]
        )
        yield Racing(asked, race, entries, left_out, here, track)


def likely(names: Sequence[str], asked: Asked) -> list[str]:
    """Return the transports that run first: the few fastest by an earlier run, the default, the others of that run."""
    ranked = [name for name in asked.ranked if name in names]
    default = [name for name in asked.defaults if name in names][:1]
    return list(dict.fromkeys((*ranked[:FEWEST], *default, *ranked)))


def deadline(asked: Asked) -> float:
    """Return the deadline of the last run, by the clock of the race."""
    return asked.started + asked.budget - asked.reserve


def _plan(settings: Settings, asked: Asked, race: Race, bounds: Sequence[Transport]) -> Plan:
    """Return the plan of a race: every transport at every size; the race runs as many of these as it needs."""
    select = ",".join([*race.transports, *(entry.id for entry in bounds)])
    experiment = Experiment(EXPERIMENT, select, user_data.NAME, {"rows": list(race.stages)})
    limit = max(10.0, asked.budget * _SHARE_OF_ONE)
    return Plan(SUITE, "race", "*", (experiment,), 1, settings.seed, limit)
