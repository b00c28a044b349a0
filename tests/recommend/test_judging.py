"""The result of a race becomes a recommendation, within its budget: fastest, from PyPI, ties, transports out."""

import datetime as dt
import io
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from harness import registry
from harness.cli.recommend import _shown
from harness.datasets.user_data import data
from harness.lab.labs import Lab
from harness.lab.reference import References
from harness.machine.variables import namespace
from harness.model import LabError, Operation, Run, Status
from harness.recommend import judging, racing
from harness.recommend.budget import REPORT_SECONDS
from harness.recommend.eligible import Asked, LeftOut
from harness.recommend.race import LAST_PASSES, Race, Turn
from harness.recommend.racing import Racing, Track, failing
from harness.report.recommendation import SHORT_WITHIN, Figure, Recommendation, opening
from harness.report.summary import summarise
from harness.results import folder as folders
from harness.run.rigs.databases import DatabaseRig
from harness.run.rigs.networks import Networks
from harness.settings import ROOT
from harness.suites import suite_files
from harness.systems.postgres import client
from tests.report.cases import row

TUNED, TEXT = "postgres.psycopg.write_polars_tuned", "postgres.psycopg.write_polars_copy_text"
PARALLEL = "postgres.psycopg.write_polars_copy_csv_parallel"
USUAL = "postgres.sqlalchemy.write_polars_write_database"
OWN = data.from_frame(pl.DataFrame({"id": range(1_000)}))


def race_of(names: list[str], max_memory: int | None = None, defaults: tuple[str, ...] = ()) -> Racing:
    """A race of these transports before its first run."""
    asked = Asked(
        data=OWN,
        system="postgres",
        operation=Operation.WRITE,
        frame="polars",
        budget=60.0,
        max_memory=max_memory,
        defaults=defaults,
    )
    entries = {name: registry.one(name) for name in names}
    track = Track("an-id", "embedded", Path(), lambda runs, on_row: None)
    race = Race(names, OWN.rows, 1, frozenset(defaults))
    return Racing(asked, race, entries, [], [], track, begun=True)


def ran(under_way: Racing, name: str, *seconds: float, peak: int = 10_000_000, **more: Any) -> None:
    """Record ok runs of a transport on all rows."""
    for number, took in enumerate(seconds, start=1):
        one = row(name, seconds=took, peak_rss_bytes=peak, pass_number=number, **more)
        under_way._take_in(Turn(name, OWN.rows, number), one)


PGPQ, INGEST = "postgres.pgpq.write_polars_copy_binary", "postgres.adbc.write_polars_ingest"
BUILT_IN = "postgres.adbc.write_polars_write_database"


def recommended(**seconds: float | list[float]) -> Recommendation:
    """The result of a race of transports named by the constants of this file, seven runs each or as listed."""
    names = {name: globals()[name] for name in seconds}
    under_way = race_of(list(names.values()))
    for name, took in seconds.items():
        ran(under_way, names[name], *(took if isinstance(took, list) else [took] * 7))
    return judging.recommendation(under_way, 12.34)


def test_the_fastest_has_the_smallest_median_and_factors_are_of_it() -> None:
    found = recommended(TUNED=1.0, TEXT=[0.98] * 4 + [1.3] * 3)
    assert (found.fastest.transport, found.ties) == (TEXT, (TUNED,))
    found = recommended(TUNED=1.0, TEXT=3.0)
    assert (found.fastest.transport, found.fastest.runs, found.fastest.factor) == (TUNED, 7, 1.0)
    assert found.fastest.factor_interval is None
    assert (found.rows, found.seconds, found.ties) == (1_000, 12.3, ())
    assert recommended(TUNED=1.0, TEXT=1.01).ties == (TEXT,)


def test_seconds_are_the_median_and_the_factor_is_of_medians_as_in_every_report() -> None:
    found = recommended(TUNED=[1.0, 1.1, 1.3], TEXT=[2.4, 2.2, 2.2])
    assert (found.fastest.seconds, found.fastest.range) == (1.1, (1.0, 1.3))
    assert found.least_code.seconds == 2.2
    assert found.least_code.factor == pytest.approx(2.0)
    assert found.fastest.rows_per_s == pytest.approx(1_000 / 1.1)


def test_a_transport_that_was_left_behind_with_few_runs_has_no_row_above_the_fastest() -> None:
    under_way = race_of([TUNED, PGPQ, TEXT])
    ran(under_way, TUNED, *[1.0] * 7)
    ran(under_way, PGPQ, *[1.1] * 7)
    ran(under_way, TEXT, 0.9)
    under_way.race.behind.add(TEXT)
    found = judging.recommendation(under_way, 1.0)
    roles = (found.fastest, found.from_pypi, found.least_code)
    assert [one and one.transport for one in roles] == [TUNED, PGPQ, PGPQ]
    assert found.left_behind == (TEXT,)


def test_the_peak_is_the_largest_of_all_runs_as_in_every_report() -> None:
    under_way = race_of([TUNED])
    ran(under_way, TUNED, 1.0, peak=10)
    ran(under_way, TUNED, *[1.0] * 3, peak=30)
    under_way._take_in(Turn(TUNED, OWN.rows, 4), row(TUNED, seconds=1.0, peak_rss_bytes=20, pass_number=4))
    assert judging.recommendation(under_way, 1.0).fastest.peak_rss_bytes == 30


def test_the_fastest_from_pypi_is_another_one_where_the_fastest_takes_what_pypi_has_not() -> None:
    found = recommended(TUNED=1.0, TEXT=3.0, PGPQ=2.0)
    assert (found.fastest.transport, found.from_pypi and found.from_pypi.transport) == (TUNED, PGPQ)
    assert found.fastest.beyond == ("arrow-wire (not on PyPI: make wheel)",)
    assert found.taken.installs == ("pgpq", "psycopg[binary]")  # pgpq requires pyarrow
    assert recommended(TUNED=1.0).from_pypi is None
    assert recommended(TUNED=2.0, TEXT=1.0).from_pypi == recommended(TUNED=2.0, TEXT=1.0).fastest


def test_the_least_code_is_from_pypi_where_one_such_takes_at_most_twice_the_time_however_short_the_fastest_is() -> None:
    assert SHORT_WITHIN == 2.0
    assert recommended(TUNED=1.0, PGPQ=1.99).least_code.transport == PGPQ
    assert recommended(TUNED=1.0, PGPQ=2.01).least_code.transport == TUNED
    assert recommended(TUNED=1.0, PGPQ=1.5, TEXT=1.9).least_code.transport == TEXT


def figure(seconds: float = 1.0, beyond: int = 0, packages: int = 1, lines: int = 50) -> Figure:
    base, names = recommended(TUNED=1.0).fastest, tuple(f"package{number}" for number in range(packages))
    return replace(base, seconds=seconds, beyond=("something",) * beyond, installs=names, lines=lines)


@pytest.mark.parametrize(
    ("simpler", "other"),
    [
        ({"packages": 9, "lines": 900, "seconds": 9}, {"beyond": 1}),
        ({"lines": 49, "packages": 9, "seconds": 9}, {"lines": 50}),
        ({"packages": 1, "seconds": 9}, {"packages": 2}),
        ({"seconds": 0.9}, {"seconds": 1.0}),
    ],
)
def test_effort_is_what_pip_cannot_install_then_lines_then_packages_then_seconds(
    simpler: dict[str, Any], other: dict[str, Any]
) -> None:
    less = figure(**simpler)
    assert min(figure(**other), less, key=judging._effort) is less


def test_what_is_built_in_is_a_call_of_the_library_of_the_frame_on_a_connection() -> None:
    found = recommended(TUNED=1.0, INGEST=2.0, USUAL=9.0, BUILT_IN=3.0)
    assert found.built_in.transport == BUILT_IN
    assert recommended(TUNED=1.0, INGEST=2.0).built_in is None
    known = {entry.id for entry in registry.select("*") if entry.moves_a_frame and judging.built_in(entry)}
    assert {"postgres.sqlalchemy.write_pandas_to_sql", "postgres.connectorx.read_polars_read_database_uri"} <= known
    assert "postgres.connectorx.read_pandas_binary" not in known  # connectorx.read_sql, a separate call


def test_the_default_is_the_first_that_the_suite_names_for_the_direction_also_where_it_cannot() -> None:
    under_way = race_of([TUNED, TEXT], defaults=("postgres.sqlalchemy.read_polars_read_database", USUAL, TEXT))
    under_way.left_out.append(LeftOut(registry.one(USUAL), "refused: decimals", "decimals"))
    ran(under_way, TUNED, *[1.0] * 7)
    ran(under_way, TEXT, *[2.0] * 7)
    found = judging.recommendation(under_way, 1.0)
    assert (found.default, found.of_default, [one.transport for one in found.defaults]) == (USUAL, None, [TEXT])


def test_a_race_that_ended_in_its_first_pass_tells_what_it_knows_and_of_how_many() -> None:
    under_way = race_of([TUNED, TEXT, PARALLEL])
    under_way.begun, under_way.ended = False, "the budget of 40 s was used up"
    ran(under_way, TEXT, 2.0)
    found = judging.recommendation(under_way, 1.0)
    assert (found.fastest.transport, found.fastest.runs) == (TEXT, 1)
    assert found.ended == "the budget of 40 s was used up after 1 of 3 transports"


def test_a_budget_that_ends_before_any_exact_result_prints_the_converted_ones_with_their_rows() -> None:
    under_way = race_of([TUNED, TEXT, PARALLEL, USUAL, PGPQ], defaults=(USUAL,))
    under_way.begun = False
    ran(under_way, USUAL, 4.0, 5.0, fidelity="converted: id")
    ran(under_way, TEXT, 2.0, fidelity="converted: id")
    under_way._take_in(Turn(PARALLEL, OWN.rows, 1), row(PARALLEL, Status.MISMATCH))
    under_way.end_early("the budget of 40 s was used up")
    found = judging.recommendation(under_way, 40.0)
    assert (found.fastest.transport, found.fastest.values) == (TEXT, "converted: id")
    assert found.of_default
    assert found.of_default.seconds == 4.5
    assert [(one.transport, one.seconds, one.rows, one.runs) for one in found.so_far] == [
        (TEXT, 2.0, 1_000, 1),
        (USUAL, 4.5, 1_000, 2),
    ]
    assert found.ended == "the budget of 40 s was used up after 3 of 5 transports"
    assert [one.transport for one in found.ruled_out] == [PARALLEL]


def test_a_race_begins_with_the_few_fastest_of_an_earlier_run_and_the_default() -> None:
    names = [TUNED, TEXT, PARALLEL, USUAL, PGPQ, INGEST]
    ranked = ("of.another.direction", INGEST, PGPQ, TUNED, TEXT)
    asked = replace(race_of(names).asked, defaults=("of.another.direction", USUAL, PARALLEL), ranked=ranked)
    assert racing.likely(names, asked) == [INGEST, PGPQ, TUNED, USUAL, TEXT]


def test_what_is_known_so_far_is_each_transport_at_its_most_rows_with_what_converted_values() -> None:
    under_way = race_of([TUNED, TEXT, PGPQ])
    under_way.race.rows = 100_000
    for name, rows, values in ((TEXT, 10_000, "exact"), (PGPQ, 10_000, "converted: id"), (TEXT, 100_000, "exact")):
        one = row(name, seconds=rows / 1e4, parameters=f"rows={rows}", fidelity=values)
        under_way._take_in(Turn(name, rows, 1), one)
    assert judging.recommendation(under_way, 40.0).so_far == ()
    under_way.end_early("the budget of 40 s was used up")
    found = judging.recommendation(under_way, 40.0)
    assert [(one.transport, one.rows, one.values) for one in found.so_far] == [
        (TEXT, 100_000, "exact"),
        (PGPQ, 10_000, "converted: id"),
    ]


@pytest.mark.parametrize(
    ("times", "factor"),
    [
        ({TUNED: [1.0] * 7, TEXT: [0.5, *[3.0] * 6], USUAL: [8.0] * 7}, 8.0),  # by all runs and not by one
        ({TUNED: [1.0, 1.0], USUAL: [9.0, 9.0]}, 9.0),  # at the rows it had
    ],
)
def test_a_usual_one_is_compared_with_the_fastest(times: dict[str, list[float]], factor: float) -> None:
    under_way = race_of([*times], defaults=(USUAL,))
    for name, seconds in times.items():
        ran(under_way, name, *seconds)
    (usual,) = judging.recommendation(under_way, 1.0).defaults
    assert (usual.transport, usual.factor, usual.differs) == (USUAL, pytest.approx(factor), True)


def test_a_default_that_was_too_slow_for_all_rows_is_compared_with_the_recommended_one_at_its_rows() -> None:
    under_way = race_of([TEXT, USUAL], defaults=(USUAL,))
    under_way.race.rows = 100_000
    for name, took, rows in ((TEXT, 0.1, 10_000), (USUAL, 4.0, 10_000), (TEXT, 0.8, 100_000)):
        under_way._take_in(Turn(name, rows, 1), row(name, seconds=took, parameters=f"rows={rows}"))
    under_way.race.out[USUAL] = "40 times as slow as the fastest of 10,000 rows"
    found = judging.recommendation(under_way, 1.0)
    assert (found.rows, found.taken_there and (found.taken_there.rows, found.taken_there.seconds)) == (
        100_000,
        (10_000, 0.1),
    )
    assert "40 times faster than write_database (the default) at 10,000 rows" in opening(found)[0]


def test_a_race_that_ended_in_its_first_pass_on_all_rows_answers_from_the_slice_that_all_have_run() -> None:
    under_way = race_of([TUNED, TEXT, PGPQ])
    under_way.race.rows = 100_000
    under_way.ended = "the budget of 40 s was used up"
    for name, took in ((TUNED, 1.0), (TEXT, 3.0), (PGPQ, 2.0)):
        under_way._take_in(Turn(name, 10_000, 1), row(name, seconds=took, parameters="rows=10000"))
    under_way._take_in(Turn(TEXT, 100_000, 1), row(TEXT, seconds=30.0, parameters="rows=100000"))
    found = judging.recommendation(under_way, 1.0)
    assert (found.rows, found.fastest.transport) == (10_000, TUNED)
    assert found.ended == "the budget of 40 s was used up before all had run on all 100,000 rows"


def test_a_transport_that_takes_more_memory_than_allowed_is_out_and_the_reason_says_how_much() -> None:
    under_way = race_of([TUNED, TEXT], max_memory=50_000_000)
    ran(under_way, TUNED, 1.0, peak=50_000_001)
    ran(under_way, TEXT, 9.0, peak=50_000_000)
    found = judging.recommendation(under_way, 1.0)
    assert found.fastest.transport == TEXT
    assert [(one.transport, one.reason) for one in found.ruled_out] == [
        (TUNED, "took 50 MB for 1,000 rows, more than 50 MB")
    ]
    assert not race_of([TUNED])._wrong(row(TUNED, seconds=1.0, peak_rss_bytes=10**12))


def test_a_transport_that_returns_other_types_or_fails_is_out() -> None:
    under_way = race_of([TUNED, TEXT, PARALLEL])
    ran(under_way, TUNED, 1.0, fidelity="converted: id")
    ran(under_way, TEXT, 2.0)
    under_way._take_in(Turn(PARALLEL, OWN.rows, 1), row(PARALLEL, Status.MISMATCH))
    found = judging.recommendation(under_way, 1.0)
    assert found.fastest.transport == TEXT
    assert {one.transport: one.reason for one in found.ruled_out} == {
        TUNED: "converted: id",
        PARALLEL: "mismatch: it was mismatch",
    }


def test_an_earlier_exclusion_keeps_its_kind_of_values_and_a_slow_transport_is_not_ruled_out() -> None:
    under_way = race_of([TUNED, TEXT])
    under_way.left_out.append(LeftOut(registry.one(USUAL), "changed: nulls", "nulls"))
    ran(under_way, TUNED, 1.0)
    ran(under_way, TEXT, 9.0)
    under_way.race.out[TEXT] = "9.0 times as slow as the fastest of 1,000 rows"
    (one,) = judging.recommendation(under_way, 1.0).ruled_out
    assert (one.transport, one.reason, one.kind) == (USUAL, "changed: nulls", "nulls")


BIG = "row is too big: size 9000, maximum size 8160"


@pytest.mark.parametrize(
    ("names", "errors", "begun", "said", "helps"),
    [
        ([TUNED], ["E"], True, "none of 1 transports keeps every value of these data, such as: error: E", False),
        ([TUNED], ["E"], False, "the budget was used up after 1 of 1 transports; give it more", True),
        (
            [TUNED, TEXT, PARALLEL],
            [f"E: {BIG}", f"F: {BIG}"],
            False,
            "none of the 2 transports that ran keeps every value of these data: row is too big",
            False,
        ),
        (
            [TUNED, TEXT, PARALLEL],
            [f"E: {BIG}", "TypeError"],
            False,
            "the budget was used up after 2 of 3 transports",
            True,
        ),
        (
            [TUNED, TEXT, PARALLEL],
            ["TypeError", "TypeError"],
            False,
            "the budget was used up after 2 of 3 transports",
            True,
        ),
    ],
)
def test_where_no_transport_came_through_it_says_why_and_asks_for_more_time_only_where_that_may_help(
    names: list[str], errors: list[str], begun: bool, said: str, helps: bool
) -> None:
    under_way = race_of(names)
    under_way.begun, under_way.ended = begun, "the budget was used up"
    for name, error in zip(names, errors, strict=False):
        under_way._take_in(Turn(name, OWN.rows, 1), row(name, status=Status.ERROR, error=error))
    with pytest.raises(LabError, match=said) as raised:
        judging.recommendation(under_way, 1.0)
    assert ("give it more" in str(raised.value)) == helps


FIRST, SECOND = "postgres.psycopg.write_polars_tuned", "postgres.psycopg.write_polars_copy_text"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A replacement for processes: the seconds of each call, and the clock that they move."""
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
    asked = Asked(
        data=OWN, system="postgres", operation=Operation.WRITE, frame="polars", budget=budget, started=time.monotonic()
    )
    entries = {name: registry.one(name) for name in (FIRST, SECOND)}
    perform: Any = partial(racing.runner.perform, None)
    track = Track("a race", "embedded", Path(), perform, now=time.monotonic)
    return Racing(asked, Race(list(entries), OWN.rows, 1), entries, [], [], track)


@pytest.mark.process
@pytest.mark.parametrize("read", [0, 10])
def test_no_run_is_begun_that_would_not_end_within_the_budget_which_begins_when_it_is_asked_for(
    runs: dict[str, Any], read: float
) -> None:
    under_way = begun(20.0)
    runs["now"] += read  # seconds that reading the data takes
    under_way.perform(lambda one: None)
    assert under_way.ended == "the budget of 20 s was used up"
    assert 10 < runs["now"] - 1_000 <= 20 - REPORT_SECONDS


@pytest.mark.process
def test_a_race_that_has_the_time_has_all_of_its_passes(runs: dict[str, Any]) -> None:
    under_way = begun(200.0)
    under_way.perform(lambda one: None)
    assert under_way.ended == ""
    assert {number for name, number in runs["ran"] if name == FIRST} >= set(range(1, LAST_PASSES + 1))


@pytest.mark.process
def test_a_run_that_the_end_of_the_budget_cut_off_says_nothing_of_its_transport(runs: dict[str, Any]) -> None:
    under_way = begun(20.0)
    runs["status"], runs["took"] = Status.AGAIN, {FIRST: 30.0, SECOND: 30.0}
    under_way.perform(lambda one: None)
    assert len(runs["ran"]) == 1
    assert under_way.ended
    assert (under_way.race.out, under_way.rows) == ({}, {})


@pytest.mark.process
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


@pytest.mark.process
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


@pytest.mark.process
def test_it_never_says_later_than_the_budget(runs: dict[str, Any]) -> None:
    under_way, told = begun(20.0), []
    under_way.perform(lambda one: told.append(under_way.eta + runs["now"] - 1_000))
    assert told
    assert max(told) <= 20.0


ALL, NO_TIME, NO_BYTES = (
    registry.one(f"postgres.{name}")
    for name in (
        "psycopg.write_polars_tuned",
        "pgpq.write_polars_copy_binary_sorted",
        "psycopg.write_polars_copy_csv_lossless",
    )
)
READS = registry.one("postgres.psycopg.read_polars_tuned")
TYPED = data.from_frame(
    pl.DataFrame({"id": [1, 2], "raw": [b"\0\xff", None], "opens": [dt.time(9), None], "key": [b"a", b"b"]}), ["id"]
)


@pytest.fixture
def rig(lab_of_tests: Lab, tmp_path: Path) -> DatabaseRig:
    references = References(lab_of_tests.endpoints)
    return DatabaseRig(lab_of_tests, {}, references, {}, "no S3 in this test", "", tmp_path, Networks("no links"))


@pytest.mark.long
def test_each_transport_is_found_to_fail_at_the_columns_that_it_does_not_bring_through_and_nothing_is_left(
    rig: DatabaseRig,
) -> None:
    later = time.monotonic() + 60
    found = failing(rig, TYPED, [ALL, NO_TIME, NO_BYTES, READS], ["raw", "opens"], later)
    assert found == {NO_TIME.id: {"opens"}, NO_BYTES.id: {"raw"}}
    question = f"SELECT tablename FROM pg_tables WHERE schemaname = '{namespace()}' AND tablename LIKE 'own_9%'"
    assert rig.references.ask("postgres", client.query, question) == []


def test_where_there_is_no_time_left_nothing_is_tried(rig: DatabaseRig) -> None:
    assert failing(rig, TYPED, [NO_BYTES], ["raw"], time.monotonic() - 1) == {}


def test_a_race_that_none_comes_through_asks_for_one_column_of_each_type_that_none_declares() -> None:
    asked_for = []

    def alone(entries: object, columns: object) -> dict[str, set[str]]:
        asked_for.append((entries, columns))
        return {NO_TIME.id: {"opens"}, NO_BYTES.id: {"opens", "raw"}}

    asked = Asked(data=TYPED, system="postgres", operation=Operation.WRITE, frame="polars", budget=60.0)
    entries = {entry.id: entry for entry in (NO_TIME, NO_BYTES)}
    track = Track("an-id", "embedded", Path(), lambda runs, on_row: None, alone=alone)  # type: ignore[arg-type]
    under_way = Racing(asked, Race(list(entries), TYPED.rows, 1), entries, [], [], track, begun=True)
    under_way.race.out = dict.fromkeys(entries, 'unsupported: binary (column "raw" and 1 more) or time: TypeError')
    under_way.perform(lambda row: None)
    assert asked_for == [([NO_TIME, NO_BYTES], ["raw", "opens"])]
    assert 'column "opens" (time) alone rules out 2, column "raw" (binary) alone rules out 1' in judging._none_kept(
        under_way
    )


def test_the_first_pass_is_in_the_order_of_the_reference_runs_medians(tmp_path):
    suite = suite_files.load(ROOT / "suites", "matrix")
    assert judging.by_reference(tmp_path, suite) == ()
    run = folders.read(ROOT / "results" / "reference" / "matrix")
    medians = {
        one.transport: one.median_seconds
        for one in summarise(run.rows, suite.published)
        if one.experiment == "matrix" and one.median_seconds
    }
    ranked = judging.by_reference(ROOT / "results", suite)
    assert len(ranked) > 100
    assert [medians[name] for name in ranked] == sorted(medians.values())
