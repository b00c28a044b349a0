"""A suite file is data: a right one becomes a plan, a wrong one causes an error of one line."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import get_args

import pytest

from harness import registry
from harness.model import Experiment, LabError
from harness.run import plan as plans
from harness.run.plan import Plan, cases, from_facts, shuffled_runs
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import Comparison, PublishedFigure, Rig, Size, Suite, Sweep, Versus
from tests.commands import one_line

GOOD = """
name = "small"
title = "A title"
rig = "databases"
[published]
title = "An article"
author = "An author"
date = 2026-04-07
figures = "figures.csv"
conditions = "some"
[defaults]
select = "*"
dataset = "analytics_metrics"
passes = 3
time_limit_seconds = 5
[sizes.default]
experiments = [
  { name = "first", parameters = { rows = [10, 20] } },
  { name = "second", select = "pg.*", dataset = "integers", parameters = { files = [1], cache = ["warm", "cold"] } },
]
[sizes.smoke]
passes = 1
experiments = [{ name = "only", parameters = { rows = [10] } }]
[[pictures]]
name = "a-picture"
title = "A picture"
form = "lines"
where = { experiment = ["first"] }
x = "rows"
y = "seconds"
[[pictures]]
name = "another-picture"
title = "Another picture"
form = "bars"
y = "seconds"
statistic = "mean and deviation"
"""
FIGURES = (
    "database,direction,description,mean_seconds,mean_rows_per_s,min_rows_per_s,max_rows_per_s\npg,write,a,1,2,3,4\n"
)
FIRST = Experiment("first", "*", "analytics_metrics", {"rows": [10, 20]})
SECOND = Experiment("second", "pg.*", "integers", {"files": [1], "cache": ["warm", "cold"]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one good suite named small."""
    (tmp_path / "small.toml").write_text(GOOD)
    (tmp_path / "figures.csv").write_text(FIGURES)
    return tmp_path


@pytest.fixture
def small(folder: Path) -> Suite:
    return suite_files.load(folder, "small")


def test_a_good_suite_is_read(small):
    assert (small.name, small.title, small.rig, small.traces) == ("small", "A title", "databases", False)
    assert small.citation == 'An author, "An article", 2026-04-07'
    assert small.published == (
        PublishedFigure("a", mean_seconds=1.0, mean_rows_per_s=2.0, min_rows_per_s=3.0, max_rows_per_s=4.0),
    )
    assert [(picture.name, picture.form, picture.where) for picture in small.pictures] == [
        ("a-picture", "lines", {"experiment": ["first"]}),
        ("another-picture", "bars", None),
    ]


def test_a_size_has_the_defaults_and_what_it_says_otherwise(small):
    assert small.size("default") == Size(3, 5, (FIRST, SECOND))
    assert small.size("smoke").passes == 1
    assert list(small.sizes) == ["smoke", "default"]  # from small to large, whatever their order in the file


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        (
            "description,experiment,parameters,rows,bytes,mean_seconds,peak_rss_bytes\na,first,files=1,10,20,,30\n",
            PublishedFigure("a", experiment="first", parameters={"files": "1"}, rows=10, bytes=20, peak_rss_bytes=30.0),
        ),
        (
            "description,experiment,detail,detail_value\na,first,bytes_per_s,330e9\n",
            PublishedFigure("a", experiment="first", detail="bytes_per_s", detail_value=330e9),
        ),
    ],
)
def test_a_figure_says_under_which_conditions_and_of_what_it_was_measured(folder, text, figure):
    (folder / "figures.csv").write_text(text)
    assert suite_files.load(folder, "small").published == (figure,)


def test_an_unknown_suite_names_the_nearest_and_a_folder_without_any_says_so(folder):
    with pytest.raises(LabError, match=r'no suite "smal". Did you mean "small"\? Choose from: small'):
        suite_files.load(folder, "smal")
    with pytest.raises(LabError, match="no suites in"):
        suite_files.load(folder / "nowhere", "matrix")


@pytest.mark.parametrize("name", ["../small", "", "/etc/passwd", "small.toml"])
def test_only_the_name_of_a_suite_is_taken_never_a_path(folder, name):
    with pytest.raises(LabError, match="no suite"):
        suite_files.load(folder, name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "small"', 'name = "small', "small.toml"),
        ('name = "small"', 'name = "other"', "name"),
        ('title = "A title"', "", "title"),
        ('rig = "databases"', "", "rig: this entry is missing"),
        ('rig = "databases"', 'rig = "database"', "rig: 'database' must be 'databases', .*"),
        ('rig = "databases"', 'rigs = "databases"', 'no entry "rigs". Did you mean "rig"'),
        ('select = "*"', 'select = "*"\norgins = ["limit"]', 'no entry "orgins". Did you mean "origins"'),
        ("[{ name =", '[{ orgins = ["limit"], name =', 'no entry "orgins". Did you mean "origins"'),
        ('select = "*"', 'select = "*"\norigins = ["limits"]', "origins.0: 'limits' must be 'published', .*"),
        ("[defaults]", "[default]", "defaults"),
        ("[published]", "[publish]", "published"),
        (
            "[sizes.default]",
            "[sizes.large]",
            "sizes.large: 'large' must be 'smoke', .*",
        ),
        ("[defaults]", "[[defaults]]", "defaults: .* must be a table of entries"),
        (
            "[defaults]",
            '[answers]\nexperiment = "firs"\ndefaults = ["a"]\n[defaults]',
            'answers: no experiment "firs". Did you mean "first"',
        ),
        (
            "[defaults]",
            '[answers]\nexperiment = "first"\ndefaults = []\n[defaults]',
            "answers.defaults: .* must be a list of at least one",
        ),
        ("[defaults]", '[answers]\nexperiment = "first"\n[defaults]', "answers.defaults: this entry is missing"),
        (
            "[defaults]",
            '[answers]\nexperiment = "first"\ndefaultz = ["a"]\n[defaults]',
            'answers.defaultz: no entry "defaultz". Did you mean "defaults"',
        ),
        (
            '{ name = "first"',
            '{ unasked = "all", name = "first"',
            "unasked: 'all' must be 'everything', 'contenders' or 'nothing'",
        ),
        ("dataset =", "datasets =", "dataset"),
        ("select =", "selects =", "select"),
        ("passes = 3", "passes = true", "passes"),
        ("passes = 3", "passes = 0", "passes"),
        ("passes = 3", "", "passes"),
        ("time_limit_seconds = 5", 'time_limit_seconds = "5"', "time_limit_seconds"),
        ("figures.csv", "nowhere.csv", "nowhere.csv"),
        ('name = "second"', 'name = "first"', 'two are named "first"; rename one'),
        ('name = "second", ', "", "name"),
        (
            '[{ name = "only", parameters = { rows = [10] } }]',
            "[]",
            r"experiments: \[\] must be a list of at least one",
        ),
        (
            '[{ name = "only", parameters = { rows = [10] } }]',
            '["only"]',
            "experiments.0: .* must be a table",
        ),
        ("parameters = { rows = [10] }", "parameters = 10", "parameters: 10 must be a table of entries"),
        ("parameters = { rows = [10] }", "parameter = { rows = [10] }", "parameters"),
        ("rows = [10] }", "rows = 10 }", "rows: 10 must be a list"),
        ("rows = [10] }", "rows = [] }", r"rows: \[\] must be a list of at least one"),
        ("rows = [10] }", 'rows = ["ten"] }', r"rows \['ten'\]: give whole numbers above 0"),
        ("rows = [10] }", "rows = [1e5] }", r"rows \[.*\]: give whole numbers above 0"),
        ("rows = [10] }", "rows = [0] }", r"rows \[.*\]: give whole numbers above 0"),
        ("rows = [10] }", "rows = [10, 20, 10] }", r"rows: \[10, 20, 10\] has one value twice"),
        (
            'form = "lines"',
            'form = "pie"',
            "pictures.0.form: 'pie' must be 'bars', 'lines', 'scatter', 'grid', 'traces' or 'winners'",
        ),
        (
            'statistic = "mean and',
            'statistic = "mode and',
            "pictures.1.statistic: 'mode and deviation' must be 'median and range'",
        ),
        (
            'where = { experiment = ["first"] }',
            'where = { experiment = "first" }',
            "where.experiment: .* must be a list",
        ),
        ('where = { experiment = ["first"] }', 'were = { experiment = ["first"] }', "were"),
        *(
            ('[[pictures]]\nname = "a-', f'[[comparisons]]\n{entry}\n[[pictures]]\nname = "a-', said)
            for entry, said in (
                (
                    'title = "a"\nexperiment = "first"\none = { rows = 10 }\nother = { rows = 10 }',
                    "one and other need the same parameters",
                ),
                ('experiment = "first"\nparameter = "rows"\nworth = 3', "worth"),
                ('title = "a"\nexperiment = "first"\ntransport = "a.b.c"', "against"),
            )
        ),
        (
            'name = "another-picture"',
            'name = "a-picture"',
            'two are named "a-picture"; rename one',
        ),
    ],
)
def test_a_wrong_suite_file_is_one_line_that_names_file_and_entry(folder, old, new, said):
    assert old in GOOD
    (folder / "small.toml").write_text(GOOD.replace(old, new))
    with one_line(said) as caught:
        suite_files.load(folder, "small")
    assert "small.toml" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "description\na\n",
        FIGURES.replace("1,2,3,4", ",,,"),
        FIGURES.replace("1,2,3,4", "1,2,fast,4"),
        "description,rows,mean_seconds\na,1.5,1\n",
        "way,mean_seconds\na,1\n",
    ],
)
def test_wrong_published_figures_are_one_line_that_names_their_file(folder, text):
    (folder / "figures.csv").write_text(text)
    with one_line(r"figures\.csv"):
        suite_files.load(folder, "small")


def test_comparisons_are_of_points_of_values_or_of_transports(folder):
    (folder / "small.toml").write_text(
        GOOD
        + """
[[comparisons]]
title = "warm"
experiment = "second"
one = { cache = "warm" }
other = { cache = "cold" }
[[comparisons]]
experiment = "first"
parameter = "rows"
figure = "bytes_per_s"
[[comparisons]]
title = "this way"
experiment = "first"
transport = "a.b.c"
against = "a.b.d"
"""
    )
    assert suite_files.load(folder, "small").comparisons == (
        Comparison("warm", "second", {"cache": "warm"}, {"cache": "cold"}),
        Sweep("first", "rows", "bytes_per_s"),
        Versus("this way", "first", "a.b.c", "a.b.d"),
    )


def test_a_suite_may_ask_for_traces_and_need_not_reproduce_a_published_benchmark(folder):
    before, _, rest = GOOD.partition("[published]")
    (folder / "small.toml").write_text(f"traces = true\n{before}[defaults]{rest.partition('[defaults]')[2]}")
    small = suite_files.load(folder, "small")
    assert (small.citation, small.conditions, small.published, small.traces) == ("", "", (), True)


def test_the_rigs_that_a_suite_may_name_are_those_there_are():
    found = {
        path.stem for path in (ROOT / "harness" / "run" / "rigs").glob("*.py") if "def opened(" in path.read_text()
    }
    assert set(get_args(Rig)) == found


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


@pytest.mark.parametrize(("rows", "before"), [(1, 1), (2_000, 2_000), (1_000_000, 1_000_000)])
def test_a_table_with_rows_keeps_its_size_relative_to_the_frame(rows, before):
    matrix = suite_files.load(ROOT / "suites", "matrix")
    (existing,) = plan(matrix, experiments="existing", rows=rows).experiments
    assert existing.parameters == {"rows": [rows], "rows_before": [before]}


@pytest.fixture
def contested(folder):
    """The small suite: by default its first experiment skips a transport, and its second skips all."""
    text = GOOD.replace('{ name = "first",', '{ name = "first", unasked = "contenders",')
    text = text.replace('{ name = "second",', '{ name = "second", unasked = "nothing",')
    (folder / "small.toml").write_text(text)
    (folder / "left_out").mkdir()
    (folder / "left_out" / "small.csv").write_text("transport,values\na.b.c,exact\n")
    return suite_files.load(folder, "small")


def test_a_plan_that_names_nothing_gets_the_contenders(contested):
    assert plan(contested).experiments == (replace(FIRST, left_out=["a.b.c"]),)
    assert plan(contested, rows=30, passes=9).experiments[0].left_out == ["a.b.c"]


def test_all_origins_give_every_transport_but_no_experiment_that_must_be_named(contested):
    assert plan(contested, origins="all").experiments == (FIRST,)


@pytest.mark.parametrize(
    "asked",
    [{"only": "a.*"}, {"experiments": "first,second"}, {"experiments": "first,second", "origins": "all"}],
)
def test_what_a_plan_names_is_run_in_full(contested, asked):
    assert plan(contested, **asked).experiments == (FIRST, SECOND)


def test_origins_may_be_above_the_experiments_they_are_for_and_all_origins_are_those_too_that_they_leave_out(folder):
    (folder / "small.toml").write_text(GOOD.replace('select = "*"', 'select = "*"\norigins = ["limit"]'))
    small = suite_files.load(folder, "small")
    assert [part.origins for part in plan(small).experiments] == [["limit"], ["limit"]]
    assert plan(small, origins="all").experiments == (FIRST, SECOND)


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
    with one_line(said):
        plan(small, **wanted)


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
    """The size smoke counts, too: its experiment has three origins that the lab chooses."""
    matrix = suite_files.load(ROOT / "suites", "matrix")
    every = {entry.id for entry in registry.select(matrix.size("default").experiments[0].select)}
    assert matrix.left_out & every
    for size in matrix.sizes:
        made = plan(matrix, size, origins=plans.origins_on_user_data(matrix, None), rows=3)
        found = plans.cases(plans.on_user_data(made, "own"), registry.select)
        assert {case.dataset for case in found} == {"own"}
        assert {case.transport.id for case in found} == every, size


POSTGRES = Experiment("first", "postgres.psycopg.*", "analytics_metrics", {"rows": [10, 20], "cache": ["warm", "cold"]})
CLICKHOUSE = Experiment("second", "clickhouse.urllib.*, clickhouse.httpx.*", "analytics_metrics", {"rows": [10]})
FIRST_OF_PSYCOPG, PSYCOPG, OTHERS = registry.select("postgres.psycopg.*")[0], "postgres.psycopg.*", CLICKHOUSE.select
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
        ({}, {"left_out": [FIRST_OF_PSYCOPG.id]}, f"{PSYCOPG},{OTHERS}"),
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
