"""How long runs take, judged by earlier ones, and the progress that the user sees."""

import io
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console

from harness import registry
from harness.model import Case, Run, Status
from harness.results import folder as folders
from harness.results import runs_csv
from harness.results.folder import StoredRun
from harness.results.row import OF_TRANSPORT, Row
from harness.run import estimate, progress
from harness.run.estimate import Pace
from tests.commands import succeeded

START = datetime(2026, 1, 1, tzinfo=UTC)
WRITE, READ = "postgres.psycopg.write_polars_copy_text", "postgres.psycopg.read_polars_copy_text"


def case(transport, rows, **more):
    return Case(registry.one(transport), "matrix", "analytics_metrics", {"rows": rows, **more})


def row(transport, rows, started, seconds, **more):
    at = (START + timedelta(seconds=started)).isoformat()
    status, label = Status.OK if seconds else Status.ERROR, {"rows": str(rows), **more}
    of_transport = {name: getattr(registry.one(transport), name) for name in OF_TRANSPORT}
    return Row(
        transport=transport, parameters=label, rows=rows, seconds=seconds, started_at=at, status=status, **of_transport
    )


TWO = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]
FULL = {"rows_before": 2000}
BOUND = row("postgres.asyncpg.write_insert_select", 1000, -1, 0.3)


@pytest.mark.parametrize(
    ("earlier", "one", "passes", "limit", "expected"),
    [
        # the same case takes its earlier time, including its worker: 3 passes of (2 + 4) / 2
        ([row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 2, 0.5), row(READ, 1000, 6, 0.1)], case(WRITE, 1000), 3, 90, 9),
        # with other rows only the call grows, and the nearest number of rows counts most
        (TWO, case(WRITE, 10_000), 1, 90, 1.5 + 5),
        ([row(WRITE, 1, 0, 0.5), row(WRITE, 1000, 1, 0.5), row(READ, 1000, 3, 0.1)], case(WRITE, 10_000), 1, 90, 6.5),
        # no call takes longer than its time limit
        (TWO, case(WRITE, 10_000_000), 1, 60, 1.5 + 60),
        # a table with rows is loaded before, as the server's own statement loads as many, four times
        ([BOUND, *TWO], case(WRITE, 1000, **FULL), 3, 90, 3 * (2 + 4 * 0.6)),
        # without that bound, as the transport itself loads them
        (TWO, case(WRITE, 1000, **FULL), 1, 90, 2 + 4 * 1.0),
        # a table with nearly as many rows is the nearest, and only the others are added
        (
            [BOUND, *TWO, row(WRITE, 1000, 3, 0.5, rows_before="1000"), row(READ, 1000, 8, 0.1)],
            case(WRITE, 1000, **FULL),
            1,
            90,
            5 + 4 * 0.3,
        ),
        # a case that never ran takes as long as the median case
        ([row(WRITE, 1000, 3 * number, 0.5) for number in range(3)], case(READ, 1000), 1, 90, 3),
        # a night between two rows is not measured time
        ([*TWO, row(WRITE, 1000, 40_000, 0.5)], case(WRITE, 1000), 1, 90, 2),
        # nothing was timed
        ([], case(WRITE, 1000), 1, 90, None),
        (TWO[:1], case(WRITE, 1000), 1, 90, None),
    ],
)
def test_earlier_runs_tell_how_long_a_case_takes(earlier, one, passes, limit, expected):
    assert estimate.seconds([one], passes, earlier, limit) == (expected and pytest.approx(expected))


def test_the_cases_that_the_earlier_run_did_not_have_are_counted():
    assert estimate.scaled([case(WRITE, 1000), case(WRITE, 1000, **FULL), case(WRITE, 10)], [BOUND, *TWO]) == 2


@pytest.mark.parametrize(
    ("expected", "words"),
    [(12, "less than a minute"), (61, "about 1 minute"), (250, "about 4 minutes"), (1704, "about 30 minutes"),
     (2400, "about 40 minutes"), (9000, "about 2 hours")],
)  # fmt: skip
def test_a_time_is_reported_in_words(expected, words):
    assert estimate.in_words(expected) == words


HERE = {"cpu": "EPYC", "cores": 2, "architecture": "x86_64", "system": "Linux", "memory_bytes": 2**34, "host": "here"}
THERE = HERE | {"cores": 64, "host": "there"}
REFERENCE = Path("results/reference/matrix")


def stored(name, machine=HERE, transports=(WRITE,), planned=2, rows=2, folder=None):
    facts = {"run_id": name, "runs": planned, "machine": machine, "lab": "embedded"}
    made = [
        row(transport, number, 2 * number, 0.5) for number in range(rows) for transport in transports[: rows or None]
    ]
    return StoredRun(folder or Path(name), facts, made)


def reference(machine=THERE):
    run = stored("the run of last year", machine, folder=REFERENCE)
    del run.environment["runs"]  # of a version of the lab that did not say
    return run


def judged(*runs, cases=None):
    found = estimate.judge(runs, REFERENCE, HERE, cases or [case(WRITE, 1000)])
    return found and found.whose


def with_one_run_again():
    run = stored("a")
    run.every[-1] = replace(row(WRITE, 1, 2, None), status=Status.AGAIN)
    return run


@pytest.mark.parametrize(
    ("runs", "whose"),
    [
        ((stored("c", THERE), stored("b"), stored("a"), reference()), "as run b took on this machine"),
        ((stored("c", planned=3),), None),  # it has not ended
        ((stored("c", planned=3), stored("b")), "as run b took on this machine"),
        ((with_one_run_again(),), None),  # it is to be run again in part
        ((stored("a", THERE),), "as run a took on another machine (64 cores of EPYC)"),
        ((reference(),), "as the reference run took on another machine (64 cores of EPYC)"),
        ((reference(HERE),), "as the reference run took on a machine like this one (2 cores of EPYC)"),
    ],
)
def test_the_newest_run_that_has_ended_judges_and_is_named_with_its_machine(runs, whose):
    assert judged(*runs) == whose


def test_a_run_that_knows_few_of_the_transports_leaves_it_to_the_reference_run():
    others = [entry.id for entry in registry.select("postgres.psycopg.write_polars_*")][:3]
    cases = [case(transport, 1000) for transport in others]
    assert judged(stored("a", transports=[others[0]]), reference(), cases=cases) is None
    both = StoredRun(REFERENCE, reference().environment, stored("r", transports=others).every)
    assert judged(stored("a", transports=[others[0]]), both, cases=cases) == (
        "as the reference run took on another machine (64 cores of EPYC)"
    )


RUNS = [Run(case(transport, 1000), number, 0) for number in (1, 2) for transport in (WRITE, READ)]


def test_the_rest_takes_as_long_as_expected_and_longer_where_runs_take_longer():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 30, 0.1), row(WRITE, 1000, 40, 0.5)]
    going = estimate.pace(RUNS, earlier)
    assert going.left(0) == pytest.approx(80)  # twice 30 and 10
    going.done(RUNS[0].key)
    assert going.left(30) == pytest.approx(50)
    going.done(RUNS[1].key)
    assert 60 < going.left(80) < 80  # it took twice as long, and the estimate has nearly adapted by now
    for run in RUNS[2:]:
        going.done(run.key)
    assert going.left(160) == 0


NOW = dict.fromkeys(("cpu", "memory", "disk", "loopback"), 100.0)


def calibrated(run, *then):
    run.environment["calibrations"] = [{"now": one, "best": one} for one in then]
    return run


@pytest.mark.parametrize(
    ("run", "now", "corrected"),
    [
        (calibrated(stored("a"), NOW, NOW), NOW, ""),
        (calibrated(stored("a"), NOW), NOW | {"disk": 1.0}, ""),  # one part alone is no slow day
        (calibrated(stored("a"), NOW), dict.fromkeys(NOW, 30.0), "3.3 times slower than the machine of that run was"),
        (calibrated(stored("a"), dict.fromkeys(NOW, 50.0)), NOW, "2.0 times faster than the machine of that run was"),
        (
            calibrated(stored("a", THERE), NOW),
            dict.fromkeys(NOW, 25.0),
            "4.0 times slower than the machine of that run was",
        ),
        (stored("a"), dict.fromkeys(NOW, 50.0), "2.0 times slower than at its best"),
        (stored("a", THERE), dict.fromkeys(NOW, 50.0), ""),  # nothing is known of that machine
    ],
)
def test_the_estimate_follows_the_calibration_and_says_against_which_run(run, now, corrected):
    found = estimate.judge([run], REFERENCE, HERE, [case(WRITE, 1000)])
    said = found.corrected(600, {"now": now, "best": NOW})
    assert said.endswith(corrected)
    assert bool(said) == bool(corrected)
    if said:
        assert said.startswith(
            f"{estimate.in_words(600 * found.slowdown({'now': now, 'best': NOW}))}, because this machine is now "
        )
    assert found.corrected(600, {}) == ""  # LAB_CALIBRATION=0


def test_the_rest_of_a_run_on_a_slow_day_is_expected_to_take_longer_from_the_start():
    assert estimate.pace(RUNS, TWO, slowdown=3.0).left(0) == pytest.approx(3 * estimate.pace(RUNS, TWO).left(0))


def test_without_an_earlier_run_all_runs_are_taken_to_be_alike():
    going = estimate.pace(RUNS, [])
    going.done(RUNS[0].key)
    assert going.left(7) == pytest.approx(21)


ONE_WAY = "postgres.psycopg.write_polars_copy_text"
LONGEST = "clickhouse.clickhouse_connect.write_pandas_dataframe_in_many_ways"


def ended(transport: str, status: Status = Status.OK) -> Row:
    figures = {"seconds": 0.25, "rows": 100, "rows_per_s": 400.0} if status is Status.OK else {"error": "it said no"}
    return Row(transport=transport, pass_number=1, status=status, **figures)


def screen(width: int, *rows: Row, terminal: bool = True) -> str:
    """Return the screen after these rows; rows that did not start do not count as work."""
    work = {one.key for one in rows if one.status is not Status.UNAVAILABLE}
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    with progress.shown(console, work, Pace(dict.fromkeys(work, 10.0), 20.0)) as on_row:
        for one in rows:
            on_row(one)
    return console.file.getvalue()


def test_runs_that_were_not_begun_are_neither_counted_nor_shown() -> None:
    rows = ended("a"), ended("b", Status.UNAVAILABLE), ended("c", Status.ERROR)
    lines = screen(200, *rows, terminal=False).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["[1/2", "[2/2"]
    assert lines[0].endswith("pass 1  a  ok  0.2500 s  400 rows/s")
    assert lines[1].endswith("pass 1  c  error: it said no")
    assert "1/1" in screen(80, ended("a"), ended("b", Status.UNAVAILABLE))


@pytest.mark.parametrize("width", [80, 200])
def test_on_a_terminal_count_eta_and_the_last_result_are_shown_whole(width: int) -> None:
    lines = screen(width, *(ended(f"{LONGEST}_{number}") for number in range(120))).splitlines()
    last = next(line for line in reversed(lines) if "ETA" in line)
    assert "120/120 ETA 0:00" in last
    name = f"{LONGEST}_119"
    assert f"0.2500 s {name if width == 200 else name.rpartition('.')[2]}" in last
    assert len(last) <= width + 10  # with the codes that move the cursor


@pytest.mark.long
def test_after_the_first_pass_a_person_sees_its_answers_and_what_cannot_run_is_one_line_and_no_work(
    lab: Callable[..., subprocess.CompletedProcess[str]], on_embedded_lab: dict[str, str]
) -> None:
    cannot = [entry.id for entry in registry.select("postgres.pg_parquet.write_*")]
    chosen = ("--experiment", "matrix", "--rows", "100", "--passes", "2", "--only", ",".join([ONE_WAY, *cannot]))
    done = succeeded(lab("run", "--external", *chosen, env=on_embedded_lab))
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("skipped: ")] == [
        f"skipped: {len(cannot)} transports: the postgres 18.4 server does not offer pg_parquet; run CREATE EXTENSION "
        "pg_parquet"
    ]
    assert [line for line in lines if line.startswith("2 runs of 1 transports, size default, 2 passes")]
    first, second = (next(place for place, line in enumerate(lines) if line.startswith(f"[{n}/2, ")) for n in (1, 2))
    assert lines[second - 1] == "this is after pass 1 of 2, from one run each: the answers may still change"
    assert any(ONE_WAY in line for line in lines[first + 1 : second])
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    assert len(runs_csv.load(folder / "runs.csv")) == 2 + 2 * len(cannot)
    assert folders.read(folder).ended
