"""A size of a suite becomes a plan, with what a person wants otherwise."""

from dataclasses import replace

import pytest

from harness import registry
from harness.model import LabError
from harness.run import plan as plans
from harness.settings import ROOT
from harness.suites import suite_files
from tests.suites.small import FIRST, GOOD, SECOND


def plan(suite, size="default", only="*", seed=7, **wanted):
    return plans.of_size(suite, size, only, seed, **wanted)


def test_a_plan_takes_all_of_its_size(small):
    made = plan(small)
    assert (made.suite, made.size, made.select, made.seed) == ("small", "default", "*", 7)
    assert (made.passes, made.time_limit, made.experiments) == (3, 5, (FIRST, SECOND))


def test_what_the_person_wants_comes_before_what_the_suite_says(small):
    made = plan(small, "smoke", "postgres.*", rows=99, passes=7, time_limit=60.0)
    assert (made.select, made.passes, made.time_limit) == ("postgres.*", 7, 60.0)
    assert [experiment.parameters for experiment in made.experiments] == [{"rows": [99]}]
    assert small.size("smoke").experiments[0].parameters == {"rows": [10]}


@pytest.fixture
def contested(folder):
    """The small suite, whose first experiment leaves out a transport where nothing is asked for, its second all."""
    text = GOOD.replace('{ name = "first",', '{ name = "first", unasked = "contenders",')
    text = text.replace('{ name = "second",', '{ name = "second", unasked = "nothing",')
    (folder / "small.toml").write_text(text)
    (folder / "left_out").mkdir()
    (folder / "left_out" / "small.csv").write_text("transport,values\na.b.c,exact\n")
    return suite_files.load(folder, "small")


def test_who_asks_for_nothing_by_name_gets_the_contenders(contested):
    assert plan(contested).experiments == (replace(FIRST, left_out=["a.b.c"]),)
    assert plan(contested, rows=30, passes=9).experiments[0].left_out == ["a.b.c"]


def test_who_asks_for_all_origins_gets_every_transport_but_no_experiment_that_has_to_be_named(contested):
    assert plan(contested, origins="all").experiments == (FIRST,)


@pytest.mark.parametrize(
    "asked",
    [{"only": "a.*"}, {"experiments": "first,second"}, {"experiments": "first,second", "origins": "all"}],
)
def test_who_asks_for_something_by_name_gets_all_of_it(contested, asked):
    assert plan(contested, **asked).experiments == (FIRST, SECOND)


def test_all_origins_are_those_too_that_the_suite_leaves_out(folder):
    (folder / "small.toml").write_text(GOOD.replace('select = "*"', 'select = "*"\norigins = ["limit"]'))
    assert plan(suite_files.load(folder, "small"), origins="all").experiments == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("names", "expected"),
    [(None, (FIRST, SECOND)), ("second", (SECOND,)), ("second, first", (FIRST, SECOND)), ("first,first", (FIRST,))],
)
def test_only_the_experiments_asked_for_are_in_a_plan_in_the_order_of_the_suite(small, names, expected):
    assert plan(small, experiments=names).experiments == expected


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            {"size": "defult"},
            r'no size "defult". Did you mean "default"\? Choose from: smoke, default',
        ),
        ({"size": ""}, 'no size "". Choose from'),
        ({"size": "full"}, "Choose from: smoke, default$"),
        ({"experiments": "secnd"}, r'no experiment "secnd". Did you mean "second"\? Choose from: first, second'),
        ({"experiments": "first,"}, 'no experiment ""'),
        ({"size": "smoke", "experiments": "first"}, 'no experiment "first". Choose from: only'),
        ({"rows": 10}, "experiment second has no parameter rows; choose its amount of data with --size"),
        ({"experiments": "first", "rows": 0}, "rows 0: give a whole number of at least 1"),
        ({"passes": 0}, "passes 0: give a whole number of at least 1"),
    ],
)
def test_what_a_suite_does_not_have_is_one_line_that_says_what_there_is(small, wanted, said):
    with pytest.raises(LabError, match=said) as caught:
        plan(small, **wanted)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cores", "values"),
    [(1, [1, 2]), (2, [1, 2, 4]), (6, [1, 2, 4, 6, 12]), (128, [1, 2, 4, 8, 16, 32, 64, 128, 256])],
)
def test_threads_from_1_to_all_cores_are_those_of_this_machine_when_the_plan_is_made(
    folder, monkeypatch, cores, values
):
    monkeypatch.setattr(suite_files, "cores", lambda: cores)
    text = GOOD.replace("{ rows = [10, 20] }", '{ rows = [10, 20], threads = "1..cores", all = "cores" }')
    (folder / "small.toml").write_text(text)
    (first, _) = plan(suite_files.load(folder, "small")).experiments
    assert first.parameters == {"rows": [10, 20], "threads": values, "all": [cores]}


def test_a_suite_without_databases_runs_on_no_data_of_a_persons_own(small):
    with pytest.raises(LabError, match="suite small is about its own data: choose a suite on databases"):
        plans.origins_on_user_data(replace(small, rig="parquet"), None)


def test_on_data_of_a_persons_own_nothing_is_left_out_unless_it_is_asked_for(contested):
    def own(origins=None, **asked):
        return plans.on_user_data(
            plan(contested, origins=plans.origins_on_user_data(contested, origins), **asked), "own"
        )

    assert own().experiments == (replace(FIRST, dataset="own"),)  # no contenders rule
    assert own(only="a.*").experiments == (replace(FIRST, dataset="own"), replace(SECOND, dataset="own"))
    assert own("published").experiments[0].origins == ["published"]
    assert plan(contested).experiments[0].left_out


def test_on_data_of_a_persons_own_the_matrix_has_every_transport_at_every_size():
    """Also at the size smoke, whose experiment has three origins of the lab's own choice."""
    matrix = suite_files.load(ROOT / "suites", "matrix")
    every = {entry.id for entry in registry.select(matrix.size("default").experiments[0].select)}
    assert matrix.left_out & every
    for size in matrix.sizes:
        made = plan(matrix, size, origins=plans.origins_on_user_data(matrix, None), rows=3)
        found = plans.cases(plans.on_user_data(made, "own"), registry.select)
        assert {case.dataset for case in found} == {"own"}
        assert {case.transport.id for case in found} == every, size
