"""A suite file is data: what is right is read, what is wrong is one line that says so."""

from typing import get_args

import pytest

from harness.model import LabError
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.comparisons import Comparison, Sweep, Versus
from harness.suites.suite import PublishedFigure, Rig, Size
from tests.suites.small import FIGURES, FIRST, GOOD, SECOND


def test_a_good_suite_is_read(small):
    assert (small.name, small.title, small.rig) == ("small", "A title", "databases")
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


def test_an_unknown_suite_names_the_nearest(folder):
    with pytest.raises(LabError, match=r'no suite "smal". Did you mean "small"\? Choose from: small'):
        suite_files.load(folder, "smal")


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
        ('rig = "databases"', "", "rig: expected such an entry"),
        ('rig = "databases"', 'rig = "database"', "rig: expected 'databases', .*, found 'database'"),
        ('rig = "databases"', 'rigs = "databases"', 'no entry "rigs". Did you mean "rig"'),
        ('select = "*"', 'select = "*"\norgins = ["limit"]', 'no entry "orgins". Did you mean "origins"'),
        ("[{ name =", '[{ orgins = ["limit"], name =', 'no entry "orgins". Did you mean "origins"'),
        ('select = "*"', 'select = "*"\norigins = ["limits"]', "origins.0: expected 'published', .* found 'limits'"),
        ("[defaults]", "[default]", "defaults"),
        ("[published]", "[publish]", "published"),
        (
            "[sizes.default]",
            "[sizes.large]",
            "sizes.large: expected 'smoke', .* found 'large'",
        ),
        ("[defaults]", "[[defaults]]", "defaults: expected a table of entries"),
        (
            "[defaults]",
            '[answers]\nexperiment = "firs"\nusual = ["a"]\n[defaults]',
            'answers: expected an experiment of a size, found "firs"',
        ),
        (
            "[defaults]",
            '[answers]\nexperiment = "first"\nusual = []\n[defaults]',
            "answers.usual: expected at least one",
        ),
        ("[defaults]", '[answers]\nexperiment = "first"\n[defaults]', "answers.usual: expected such an entry"),
        (
            "[defaults]",
            '[answers]\nexperiment = "first"\nusuals = ["a"]\n[defaults]',
            'answers.usuals: no entry "usuals". Did you mean "usual"',
        ),
        (
            '{ name = "first"',
            '{ unasked = "all", name = "first"',
            "unasked: expected 'everything', 'contenders' or 'nothing', found 'all'",
        ),
        ("dataset =", "datasets =", "dataset"),
        ("select =", "selects =", "select"),
        ("passes = 3", "passes = true", "passes"),
        ("passes = 3", "passes = 0", "passes"),
        ("passes = 3", "", "passes"),
        ("time_limit_seconds = 5", 'time_limit_seconds = "5"', "time_limit_seconds"),
        ("figures.csv", "nowhere.csv", "nowhere.csv"),
        ('name = "second"', 'name = "first"', 'different names, found "first" twice'),
        ('name = "second", ', "", "name"),
        ('[{ name = "only", parameters = { rows = [10] } }]', "[]", "experiments: expected at least one, found"),
        (
            '[{ name = "only", parameters = { rows = [10] } }]',
            '["only"]',
            "experiments.0: expected a table",
        ),
        ("parameters = { rows = [10] }", "parameters = 10", "parameters: expected a table of entries, found 10"),
        ("parameters = { rows = [10] }", "parameter = { rows = [10] }", "parameters"),
        ("rows = [10] }", "rows = 10 }", "rows: expected a list, found 10"),
        ("rows = [10] }", "rows = [] }", "rows: expected at least one, found"),
        ("rows = [10] }", 'rows = ["ten"] }', "expected rows to be whole numbers above 0"),
        ("rows = [10] }", "rows = [1e5] }", "expected rows to be whole numbers above 0"),
        ("rows = [10] }", "rows = [0] }", "expected rows to be whole numbers above 0"),
        ("rows = [10] }", "rows = [10, 20, 10] }", "rows: expected different values"),
        (
            'form = "lines"',
            'form = "pie"',
            "pictures.0.form: expected 'bars', 'lines', 'scatter', 'grid', 'traces', 'costs' or 'winners', found 'pie'",
        ),
        ('statistic = "mean and', 'statistic = "mode and', "pictures.1.statistic: expected 'median and range'"),
        (
            'where = { experiment = ["first"] }',
            'where = { experiment = "first" }',
            "where.experiment: expected a list",
        ),
        ('where = { experiment = ["first"] }', 'were = { experiment = ["first"] }', "were"),
        *(
            ('[[pictures]]\nname = "a-', f'[[comparisons]]\n{entry}\n[[pictures]]\nname = "a-', said)
            for entry, said in (
                (
                    'title = "a"\nexperiment = "first"\none = { rows = 10 }\nother = { rows = 10 }',
                    "expected one and other",
                ),
                ('experiment = "first"\nparameter = "rows"\nworth = 3', "worth"),
                ('title = "a"\nexperiment = "first"\ntransport = "a.b.c"', "against"),
            )
        ),
        (
            'name = "another-picture"',
            'name = "a-picture"',
            'different names, found "a-picture" twice',
        ),
    ],
)
def test_a_wrong_suite_file_is_one_line_that_names_file_and_entry(folder, old, new, said):
    assert old in GOOD
    (folder / "small.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(LabError, match=said) as caught:
        suite_files.load(folder, "small")
    assert "small.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


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
    with pytest.raises(LabError, match=r"figures\.csv") as caught:
        suite_files.load(folder, "small")
    assert "\n" not in str(caught.value)


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


def test_only_a_suite_that_asks_for_traces_has_them(folder):
    assert not suite_files.load(folder, "small").traces
    (folder / "small.toml").write_text(f"traces = true\n{GOOD}")
    assert suite_files.load(folder, "small").traces


def test_a_suite_need_not_reproduce_a_published_benchmark(folder):
    before, _, rest = GOOD.partition("[published]")
    (folder / "small.toml").write_text(f"{before}[defaults]{rest.partition('[defaults]')[2]}")
    small = suite_files.load(folder, "small")
    assert (small.citation, small.conditions, small.published) == ("", "", ())


def test_origins_may_stand_above_the_experiments_they_are_for(folder):
    (folder / "small.toml").write_text(GOOD.replace('select = "*"', 'select = "*"\norigins = ["limit"]'))
    small = suite_files.load(folder, "small")
    assert [part.origins for part in small.size("default").experiments] == [["limit"], ["limit"]]


def test_the_rigs_that_a_suite_may_name_are_those_there_are():
    found = {
        path.stem for path in (ROOT / "harness" / "run" / "rigs").glob("*.py") if "def opened(" in path.read_text()
    }
    assert set(get_args(Rig)) == found
