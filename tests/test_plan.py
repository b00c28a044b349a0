"""The same plan gives the same order everywhere; every pass is full, and passes follow one another."""

import subprocess
import sys
from dataclasses import replace

import pytest

from harness import registry
from harness.model import LabError
from harness.plan import Plan, shuffled_runs

PLAN = Plan("matrix", "*", "analytics_metrics", rows=10, passes=3, seed=1, time_limit=5.0)


@pytest.fixture(scope="module")
def transports():
    return registry.select("*")


def ids(runs):
    return [run.case.transport.id for run in runs]


def test_every_pass_has_every_transport_once_and_passes_follow_one_another(transports):
    runs = shuffled_runs(PLAN, transports)
    size = len(transports)
    assert [run.pass_number for run in runs] == [1] * size + [2] * size + [3] * size
    for start in (0, size, 2 * size):
        assert sorted(ids(runs[start : start + size])) == [entry.id for entry in transports]


def test_the_order_is_numbered_from_1_without_gaps(transports):
    assert [run.order for run in shuffled_runs(PLAN, transports)] == list(range(1, 3 * len(transports) + 1))


def test_the_order_depends_on_nothing_but_the_plan(transports):
    expected = shuffled_runs(PLAN, transports)
    assert shuffled_runs(PLAN, transports[::-1]) == expected
    assert shuffled_runs(replace(PLAN), list(transports)) == expected


def test_the_order_is_the_same_in_another_process_with_another_hash_seed(transports):
    code = (
        "from harness import registry; from harness.plan import Plan, shuffled_runs; "
        f"print(*[run.case.transport.id for run in shuffled_runs({PLAN!r}, registry.select('*'))], sep='\\n')"
    )
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            (sys.executable, "-c", code), env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ids(shuffled_runs(PLAN, transports))


def test_another_seed_and_another_pass_have_another_order(transports):
    size = len(transports)
    runs = shuffled_runs(PLAN, transports)
    assert ids(runs) != ids(shuffled_runs(replace(PLAN, seed=2), transports))
    assert ids(runs[:size]) != ids(runs[size : 2 * size])


def test_more_passes_do_not_change_the_earlier_ones(transports):
    assert shuffled_runs(replace(PLAN, passes=2), transports) == shuffled_runs(PLAN, transports)[: 2 * len(transports)]


def test_a_case_has_the_dataset_and_rows_of_the_plan(transports):
    assert {(run.case.dataset, run.case.rows) for run in shuffled_runs(PLAN, transports)} == {("analytics_metrics", 10)}


@pytest.mark.parametrize("name", ["rows", "passes"])
@pytest.mark.parametrize("value", [0, -1, "100", None, 1.5], ids=str)
def test_rows_or_passes_that_are_no_positive_number_are_one_line_that_names_them(name, value):
    with pytest.raises(LabError, match=f"expected {name} .*found") as caught:
        replace(PLAN, **{name: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "fast"], ids=str)
def test_a_time_limit_that_ends_no_run_is_one_line_that_names_it(value):
    with pytest.raises(LabError, match=r"expected time_limit .*found"):
        replace(PLAN, time_limit=value)
