from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from harness import registry
from harness.model import Case, Run, Status
from harness.results.folder import StoredRun
from harness.results.row import Row
from harness.run import estimate

START = datetime(2026, 1, 1, tzinfo=UTC)
WRITE, READ = "postgres.psycopg.write_polars_copy_text", "postgres.psycopg.read_polars_copy_text"


def case(transport, rows):
    return Case(registry.one(transport), "matrix", "analytics_metrics", {"rows": rows})


def row(transport, rows, started, seconds):
    at = (START + timedelta(seconds=started)).isoformat()
    status, label = Status.OK if seconds else Status.ERROR, {"rows": str(rows)}
    return Row(transport=transport, parameters=label, rows=rows, seconds=seconds, started_at=at, status=status)


def test_the_same_case_takes_as_long_as_it_took_with_its_worker_and_all():
    earlier = [row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 2, 0.5), row(READ, 1000, 6, 0.1)]
    assert estimate.seconds([case(WRITE, 1000)], 3, earlier) == pytest.approx(9)  # 3 passes of (2 + 4) / 2


def test_of_other_rows_only_the_call_grows():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000)], 1, earlier) == pytest.approx(1.5 + 5)


def test_the_nearest_number_of_rows_tells_most():
    earlier = [row(WRITE, 1, 0, 0.5), row(WRITE, 1000, 1, 0.5), row(READ, 1000, 3, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000)], 1, earlier) == pytest.approx(1.5 + 5)


def test_no_call_is_thought_to_take_longer_than_its_time_limit():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]
    assert estimate.seconds([case(WRITE, 10_000_000)], 1, earlier, 60) == pytest.approx(1.5 + 60)


def test_a_case_that_was_never_run_takes_as_long_as_the_usual_one():
    earlier = [row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 3, 0.5), row(WRITE, 1000, 6, 0.5)]
    assert estimate.seconds([case(READ, 1000)], 1, earlier) == pytest.approx(3)


def test_a_night_between_two_rows_is_not_measured_time():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1), row(WRITE, 1000, 40_000, 0.5)]
    assert estimate.seconds([case(WRITE, 1000)], 1, earlier) == pytest.approx(2)


@pytest.mark.parametrize("earlier", [[], [row(WRITE, 1000, 0, 0.5)]])
def test_where_nothing_was_timed_nothing_is_said(earlier):
    assert estimate.seconds([case(WRITE, 1000)], 1, earlier) is None


@pytest.mark.parametrize(
    ("expected", "words"),
    [(12, "less than a minute"), (61, "about 1 minute"), (250, "about 4 minutes"), (1704, "about 30 minutes"),
     (2400, "about 40 minutes"), (9000, "about 2 hours")],
)  # fmt: skip
def test_a_time_is_told_in_words(expected, words):
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


def test_the_newest_run_of_this_machine_judges_and_is_named():
    runs = stored("c", THERE), stored("b"), stored("a"), reference()
    assert judged(*runs) == "as run b took on this machine"


def test_a_run_that_has_not_ended_judges_nothing():
    under_way = stored("c", planned=3)
    assert judged(under_way) is None
    assert judged(under_way, stored("b")) == "as run b took on this machine"


def test_a_run_that_is_to_be_run_again_in_part_has_not_ended():
    run = stored("a")
    run.every[-1] = row(WRITE, 1, 2, None)
    object.__setattr__(run.every[-1], "status", Status.AGAIN)
    assert judged(run) is None


def test_a_run_of_another_machine_is_said_to_be_one():
    assert judged(stored("a", THERE)) == "as run a took on another machine (64 cores of EPYC)"
    assert judged(reference()) == "as the reference run took on another machine (64 cores of EPYC)"
    assert judged(reference(HERE)) == "as the reference run took on this machine"


def test_a_run_that_knows_few_of_the_transports_leaves_it_to_the_reference_run():
    others = [entry.id for entry in registry.select("postgres.psycopg.write_polars_*")][:3]
    cases = [case(transport, 1000) for transport in others]
    assert judged(stored("a", transports=[others[0]]), reference(), cases=cases) is None
    both = StoredRun(REFERENCE, reference().environment, stored("r", transports=others).every)
    assert judged(stored("a", transports=[others[0]]), both, cases=cases) == (
        "as the reference run took on another machine (64 cores of EPYC)"
    )


RUNS = [Run(case(transport, 1000), number, 0) for number in (1, 2) for transport in (WRITE, READ)]


def pace():
    earlier = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 30, 0.1), row(WRITE, 1000, 40, 0.5)]
    return estimate.pace(RUNS, earlier)


def test_the_rest_takes_what_was_expected_of_each_run_where_it_goes_as_expected():
    going = pace()
    assert going.left(0) == pytest.approx(80)  # twice 30 and 10
    going.done(RUNS[0].key)
    assert going.left(30) == pytest.approx(50)


def test_where_runs_take_longer_than_expected_so_does_the_rest():
    going = pace()
    for run in RUNS[:2]:
        going.done(run.key)
    assert 60 < going.left(80) < 80  # it took twice as long, which is nearly believed by now
    going.done(RUNS[2].key)
    going.done(RUNS[3].key)
    assert going.left(160) == 0


def test_without_an_earlier_run_all_runs_are_taken_to_be_alike():
    going = estimate.pace(RUNS, [])
    going.done(RUNS[0].key)
    assert going.left(7) == pytest.approx(21)
