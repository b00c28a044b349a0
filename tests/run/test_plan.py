"""The same plan gives the same cases and order everywhere; every pass is full, and passes follow one another."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from harness import registry
from harness.model import Experiment, LabError
from harness.run.plan import Plan, cases, from_facts, shuffled_runs

POSTGRES = Experiment("first", "postgres.psycopg.*", "analytics_metrics", {"rows": [10, 20], "cache": ["warm", "cold"]})
CLICKHOUSE = Experiment("second", "clickhouse.urllib.*, clickhouse.httpx.*", "analytics_metrics", {"rows": [10]})
PLAN = Plan("matrix", "default", "*", (POSTGRES, CLICKHOUSE), passes=3, seed=1, time_limit=5.0)
CASES = cases(PLAN, registry.select)

SEED = "20260101T000000Z-host"


def told(found):
    return [(case.experiment, case.transport.id, case.label) for case in found]


def ids(runs):
    return told(run.case for run in runs)


def test_a_case_is_made_of_every_transport_of_an_experiment_and_every_combination_of_its_parameters():
    assert told(CASES) == [
        *(
            ("first", entry.id, label)
            for entry in registry.select("postgres.psycopg.*")
            for label in ("rows=10; cache=warm", "rows=10; cache=cold", "rows=20; cache=warm", "rows=20; cache=cold")
        ),
        *(("second", entry.id, "rows=10") for entry in registry.select("clickhouse.urllib.*,clickhouse.httpx.*")),
    ]
    assert {case.dataset for case in CASES} == {"analytics_metrics"}


def test_an_experiment_without_parameters_has_one_case_for_each_transport():
    (case,) = cases(
        replace(PLAN, experiments=(replace(POSTGRES, parameters={}),), select="*.read_polars_rows"), registry.select
    )
    assert (case.parameters, case.label) == ({}, "")


def test_only_the_transports_asked_for_become_cases():
    wanted = "postgres.psycopg.read_polars_rows,*.urllib.write_*"
    names = {name for _, name, _ in told(cases(replace(PLAN, select=wanted), registry.select))}
    assert names == {
        entry.id for entry in registry.select("postgres.psycopg.read_polars_rows,clickhouse.urllib.write_*")
    }


def test_what_an_experiment_leaves_out_becomes_no_case():
    first, *others = registry.select("postgres.psycopg.*")
    plan = replace(PLAN, experiments=(replace(POSTGRES, left_out=[first.id]),))
    assert {case.transport.id for case in cases(plan, registry.select)} == {entry.id for entry in others}


def test_an_experiment_with_none_of_the_transports_asked_for_is_left_out():
    found = cases(replace(PLAN, select="clickhouse.*"), registry.select)
    assert {case.experiment for case in found} == {"second"}


@pytest.mark.parametrize("pattern", ["stores_equal.*", "postgres.asyncpg.read_polars_rows", "postgres.*,parquet.*"])
def test_a_pattern_that_matches_only_transports_of_another_suite_is_refused(pattern):
    assert registry.select(pattern)
    with pytest.raises(LabError, match=r'^no transport ".*"') as caught:
        cases(replace(PLAN, select=pattern), registry.select)
    assert "\n" not in str(caught.value)


def test_every_pass_has_every_case_once_and_passes_follow_one_another():
    runs = shuffled_runs(PLAN, CASES, SEED)
    size = len(CASES)
    assert [run.pass_number for run in runs] == [1] * size + [2] * size + [3] * size
    for start in (0, size, 2 * size):
        assert sorted(ids(runs[start : start + size])) == sorted(told(CASES))


def test_the_order_is_numbered_from_1_without_gaps():
    assert [run.order for run in shuffled_runs(PLAN, CASES, SEED)] == list(range(1, 3 * len(CASES) + 1))


def test_the_order_depends_on_nothing_but_the_plan_and_the_run():
    def backwards(pattern, among):
        return registry.select(pattern, among)[::-1]

    expected = shuffled_runs(PLAN, CASES, SEED)
    assert shuffled_runs(PLAN, cases(PLAN, backwards), SEED) == expected
    assert shuffled_runs(replace(PLAN), cases(replace(PLAN), registry.select), SEED) == expected


@pytest.mark.long
@pytest.mark.process
def test_the_order_is_the_same_in_another_process_with_another_hash_seed():
    code = (
        "from harness import registry; from harness.model import Experiment; "
        "from harness.run.plan import Plan, cases, shuffled_runs; "
        f"plan = {PLAN!r}; runs = shuffled_runs(plan, cases(plan, registry.select), {SEED!r}); "
        "print([(run.case.experiment, run.case.transport.id, run.case.label) for run in runs])"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            (sys.executable, "-c", code), env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == str(ids(shuffled_runs(PLAN, CASES, SEED)))


def test_another_run_and_another_pass_have_another_order():
    size = len(CASES)
    runs = shuffled_runs(PLAN, CASES, SEED)
    assert ids(runs) != ids(shuffled_runs(PLAN, CASES, "another run"))
    assert ids(runs[:size]) != ids(runs[size : 2 * size])


def test_more_passes_do_not_change_the_earlier_ones():
    assert shuffled_runs(replace(PLAN, passes=2), CASES, SEED) == shuffled_runs(PLAN, CASES, SEED)[: 2 * len(CASES)]


def test_a_plan_comes_back_from_the_json_of_its_environment_with_the_same_order():
    again = from_facts(json.loads(json.dumps(asdict(PLAN))))
    assert again == PLAN
    assert shuffled_runs(again, cases(again, registry.select), SEED) == shuffled_runs(PLAN, CASES, SEED)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 10},  # what plans of an earlier version had
        {"experiments": [{"name": "first"}]},
        {"experiments": None},
    ],
)
def test_what_is_no_plan_of_this_version_is_told_from_one(change):
    with pytest.raises((TypeError, KeyError)):
        from_facts(asdict(PLAN) | change)
    with pytest.raises(KeyError):
        from_facts({})


@pytest.mark.parametrize("value", [0, -1, "100", None, 1.5, True], ids=str)
def test_passes_that_are_no_positive_number_are_one_line_that_names_them(value):
    with pytest.raises(LabError, match=r"expected passes .*found") as caught:
        replace(PLAN, passes=value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "fast"], ids=str)
def test_a_time_limit_that_ends_no_run_is_one_line_that_names_it(value):
    with pytest.raises(LabError, match=r"expected time_limit .*found"):
        replace(PLAN, time_limit=value)
