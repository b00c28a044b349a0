"""The same plan gives the same cases and order everywhere; every pass is full, and passes follow one another."""

import json
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from harness import registry
from harness.model import Experiment
from harness.run.plan import Plan, cases, from_facts, shuffled_runs
from tests.commands import one_line

POSTGRES = Experiment("first", "postgres.psycopg.*", "analytics_metrics", {"rows": [10, 20], "cache": ["warm", "cold"]})
CLICKHOUSE = Experiment("second", "clickhouse.urllib.*, clickhouse.httpx.*", "analytics_metrics", {"rows": [10]})
FIRST, PSYCOPG, OTHERS = registry.select("postgres.psycopg.*")[0], "postgres.psycopg.*", CLICKHOUSE.select
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


@pytest.mark.parametrize(
    ("change", "experiment", "expected"),
    [
        (
            {"select": "postgres.psycopg.read_polars_rows,*.urllib.write_*"},
            {},
            "postgres.psycopg.read_polars_rows,clickhouse.urllib.write_*",
        ),
        ({}, {"left_out": [FIRST.id]}, f"{PSYCOPG},{OTHERS}"),
        ({"select": "clickhouse.*"}, {}, OTHERS),
    ],
)
def test_the_transports_asked_for_and_not_left_out_become_cases(change, experiment, expected):
    plan = replace(PLAN, experiments=(replace(POSTGRES, **experiment), CLICKHOUSE), **change)
    wanted = {entry.id for entry in registry.select(expected)} - {*experiment.get("left_out", ())}
    assert {name for _, name, _ in told(cases(plan, registry.select))} == wanted


def test_every_pass_has_every_case_once_and_passes_follow_one_another():
    runs = shuffled_runs(PLAN, CASES, SEED)
    size = len(CASES)
    assert [run.pass_number for run in runs] == [1] * size + [2] * size + [3] * size
    assert [run.order for run in runs] == list(range(1, 3 * size + 1))
    for start in (0, size, 2 * size):
        assert sorted(ids(runs[start : start + size])) == sorted(told(CASES))


def test_the_order_depends_on_nothing_but_the_plan_and_the_run():
    def backwards(pattern, among):
        return registry.select(pattern, among)[::-1]

    expected = shuffled_runs(PLAN, CASES, SEED)
    assert shuffled_runs(PLAN, cases(PLAN, backwards), SEED) == expected
    assert shuffled_runs(replace(PLAN, passes=2), CASES, SEED) == expected[: 2 * len(CASES)]


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


def test_a_plan_comes_back_from_the_json_of_its_environment_with_the_same_order():
    again = from_facts(json.loads(json.dumps(asdict(PLAN))))
    assert again == PLAN
    assert shuffled_runs(again, cases(again, registry.select), SEED) == shuffled_runs(PLAN, CASES, SEED)


@pytest.mark.parametrize(
    "facts",
    [
        asdict(PLAN) | {"rows": 10},  # a field of plans of an earlier version
        asdict(PLAN) | {"experiments": [{"name": "first"}]},
        asdict(PLAN) | {"experiments": None},
        {},
    ],
)
def test_what_is_no_plan_of_this_version_is_distinguished_from_one(facts):
    with pytest.raises((TypeError, KeyError)):
        from_facts(facts)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("passes", value) for value in (0, -1, "100", None, 1.5, True)),
        *(("time_limit", value) for value in (0, -1.0, float("nan"), float("inf"), "fast")),
    ],
)
def test_a_plan_refuses_passes_and_a_time_limit_that_end_no_run_in_one_line_that_names_them(name, value):
    with one_line(rf"^{name} "):
        replace(PLAN, **{name: value})
