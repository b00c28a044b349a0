from dataclasses import replace
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


TWO = [row(WRITE, 1000, 0, 0.5), row(READ, 1000, 2, 0.1)]


@pytest.mark.parametrize(
    ("earlier", "one", "passes", "limit", "expected"),
    [
        # the same case takes as long as it took with its worker and all: 3 passes of (2 + 4) / 2
        ([row(WRITE, 1000, 0, 0.5), row(WRITE, 1000, 2, 0.5), row(READ, 1000, 6, 0.1)], case(WRITE, 1000), 3, 90, 9),
        # of other rows only the call grows, and the nearest number of rows tells most
        (TWO, case(WRITE, 10_000), 1, 90, 1.5 + 5),
        ([row(WRITE, 1, 0, 0.5), row(WRITE, 1000, 1, 0.5), row(READ, 1000, 3, 0.1)], case(WRITE, 10_000), 1, 90, 6.5),
        # no call takes longer than its time limit
        (TWO, case(WRITE, 10_000_000), 1, 60, 1.5 + 60),
        # a case that was never run takes as long as the usual one
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
        ((reference(HERE),), "as the reference run took on this machine"),
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
    assert 60 < going.left(80) < 80  # it took twice as long, which is nearly believed by now
    for run in RUNS[2:]:
        going.done(run.key)
    assert going.left(160) == 0


def test_without_an_earlier_run_all_runs_are_taken_to_be_alike():
    going = estimate.pace(RUNS, [])
    going.done(RUNS[0].key)
    assert going.left(7) == pytest.approx(21)
