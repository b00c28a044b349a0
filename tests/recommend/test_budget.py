"""A race ends within its budget, whatever its transports do, and says when it will end."""

import io
import time
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from harness import registry
from harness.cli.recommend import _shown
from harness.datasets.user_data import data
from harness.model import Operation, Run, Status
from harness.recommend import racing
from harness.recommend.eligible import Wish
from harness.recommend.race import LAST_PASSES, Race, Turn
from harness.recommend.racing import REPORT_SECONDS, Asked, Racing, Track
from tests.report.cases import row

pytestmark = pytest.mark.process

FIRST, SECOND = "postgres.psycopg.write_polars_tuned", "postgres.psycopg.write_polars_copy_text"
OWN = data.from_frame(pl.DataFrame({"id": range(1_000)}))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What becomes of runs in place of processes: the seconds of each call, and the clock that they move."""
    clock: dict[str, Any] = {"now": 1_000.0, "took": {FIRST: 1.0, SECOND: 1.0}, "status": Status.OK, "ran": []}

    def perform(session: Any, todo: list[Run], on_row: Any) -> None:
        for run in todo:
            name = run.case.transport.id
            clock["ran"].append((name, run.pass_number))
            clock["now"] += clock["took"][name] + 0.5
            status = clock["status"]
            figures = {"seconds": clock["took"][name]} if status is Status.OK else {}
            label = f"rows={run.case.parameters['rows']}"
            one = row(name, status, **figures, parameters=label, pass_number=run.pass_number, experiment="race")
            on_row(one)

    monkeypatch.setattr(racing.runner, "perform", perform)
    monkeypatch.setattr(time, "monotonic", lambda: clock["now"])
    return clock


def begun(budget: float) -> Racing:
    asked = Asked(Wish("postgres", Operation.WRITE, "polars"), OWN, "embedded", budget, started=time.monotonic())
    entries = {name: registry.one(name) for name in (FIRST, SECOND)}
    perform: Any = partial(racing.runner.perform, None)
    track = Track("a race", "embedded", Path(), perform, now=time.monotonic)
    return Racing(asked, Race(list(entries), OWN.rows, 1), entries, [], [], track)


@pytest.mark.parametrize("read", [0, 10])
def test_no_run_is_begun_that_would_not_end_within_the_budget_which_begins_when_it_is_asked_for(
    runs: dict[str, Any], read: float
) -> None:
    under_way = begun(20.0)
    runs["now"] += read  # seconds that reading the data takes
    under_way.perform(lambda one: None)
    assert under_way.ended == "the budget of 20 s was used up"
    assert 10 < runs["now"] - 1_000 <= 20 - REPORT_SECONDS


def test_a_race_that_has_the_time_has_all_of_its_passes(runs: dict[str, Any]) -> None:
    under_way = begun(200.0)
    under_way.perform(lambda one: None)
    assert under_way.ended == ""
    assert {number for name, number in runs["ran"] if name == FIRST} >= set(range(1, LAST_PASSES + 1))


def test_a_run_that_the_end_of_the_budget_cut_off_says_nothing_of_its_transport(runs: dict[str, Any]) -> None:
    under_way = begun(20.0)
    runs["status"], runs["took"] = Status.AGAIN, {FIRST: 30.0, SECOND: 30.0}
    under_way.perform(lambda one: None)
    assert len(runs["ran"]) == 1
    assert under_way.ended
    assert (under_way.race.out, under_way.rows) == ({}, {})


def test_it_says_when_it_will_end_and_is_right_once_it_knows_its_runs(runs: dict[str, Any]) -> None:
    told: list[tuple[float, float]] = []
    under_way = begun(500.0)
    runs["took"] = {FIRST: 1.0, SECOND: 1.12}  # near, and yet decided after seven passes
    under_way.perform(lambda one: told.append((runs["now"], under_way.eta)))
    ended = runs["now"] + REPORT_SECONDS
    after_a_pass = told[2:LAST_PASSES]
    assert after_a_pass
    for now, eta in after_a_pass:
        assert eta <= ended - now + 0.01
        assert eta >= 0.5 * (ended - now)
    assert told[-1][1] == pytest.approx(REPORT_SECONDS, abs=0.01)
    etas = [eta for _, eta in after_a_pass]
    assert etas == sorted(etas, reverse=True)
    assert max(now + eta for now, eta in told) <= 1_000 + 500


@pytest.mark.parametrize("terminal", [True, False])
def test_the_progress_shows_when_it_will_end_and_when_at_the_latest(
    terminal: bool, runs: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    under_way, shown = begun(300.0), io.StringIO()
    console = Console(force_terminal=terminal, width=200, file=shown)
    runs["now"] += 100
    with _shown(console, under_way) as on_row:
        under_way._pass([Turn(FIRST, 1_000, 1), Turn(SECOND, 1_000, 1)], on_row)
        eta = f"ETA {int(under_way.eta) // 60}:{int(under_way.eta) % 60:02d}"
    said = shown.getvalue() if terminal else capsys.readouterr().out
    assert eta in said
    assert ("of 300 s" if terminal else "at most 3:17]") in said
