"""Suites are data: what stands in suites/ is complete, and a wrong file is one line that says what is wrong."""

import csv

import pytest

from harness import registry, suites
from harness.datasets import store
from harness.model import LabError
from harness.settings import ROOT

FOLDER = ROOT / "suites"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
GOOD = """
name = "small"
title = "A title"
[published]
title = "An article"
author = "An author"
date = 2026-04-07
figures = "figures.csv"
conditions = "some"
[defaults]
select = "*"
dataset = "analytics_metrics"
rows = 10
passes = 1
time_limit_seconds = 5
"""
FIGURES = (
    "database,operation,description,mean_seconds,mean_rows_per_s,min_rows_per_s,max_rows_per_s\npg,write,a,1,2,3,4\n"
)


@pytest.fixture
def folder(tmp_path):
    """A folder with one good suite named small."""
    (tmp_path / "small.toml").write_text(GOOD)
    (tmp_path / "figures.csv").write_text(FIGURES)
    return tmp_path


def test_a_good_suite_is_read(folder):
    suite = suites.load(folder, "small")
    assert (suite.name, suite.rows, suite.passes, suite.time_limit) == ("small", 10, 1, 5)
    assert suite.citation == 'An author, "An article", 2026-04-07'
    assert suite.published == {"a": suites.PublishedFigure("a", 1.0, 2.0, 3.0, 4.0)}


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_of_the_lab_is_named_as_its_file_and_selects_something_there_is(name):
    suite = suites.load(FOLDER, name)
    assert suite.name == name
    assert registry.select(suite.select)
    assert store.specification(suite.dataset).name == suite.dataset


@pytest.mark.parametrize("name", NAMES)
def test_no_published_row_is_lost_to_another_of_the_same_description(name):
    figures = list(csv.DictReader((FOLDER / "published" / f"{name}.csv").open(encoding="utf-8")))
    assert len(suites.load(FOLDER, name).published) == len(figures) > 0


def test_the_matrix_has_the_56_rows_of_its_article():
    figures = suites.load(FOLDER, "matrix").published.values()
    assert len(figures) == 56
    assert all(row.min_rows_per_s <= row.mean_rows_per_s <= row.max_rows_per_s for row in figures)


def test_an_unknown_suite_names_the_nearest(folder):
    with pytest.raises(LabError, match=r'no suite "smal" .*nearest: "small"'):
        suites.load(folder, "smal")


def test_a_folder_without_suites_says_so(tmp_path):
    with pytest.raises(LabError, match="no suites in"):
        suites.load(tmp_path / "nowhere", "matrix")


@pytest.mark.parametrize("name", ["../small", "", "/etc/passwd", "small.toml"])
def test_only_the_name_of_a_suite_is_taken_never_a_path(folder, name):
    with pytest.raises(LabError, match="no suite"):
        suites.load(folder, name)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "small"', 'name = "small', "small.toml"),
        ('name = "small"', 'name = "other"', "name"),
        ('title = "A title"', "", "title"),
        ("[defaults]", "[default]", "defaults"),
        ("[published]", "[publish]", "published"),
        ("rows = 10", "", "rows"),
        ("rows = 10", 'rows = "ten"', "rows"),
        ("rows = 10", "rows = 1e5", "rows"),
        ("passes = 1", "passes = true", "passes"),
        ("time_limit_seconds = 5", 'time_limit_seconds = "5"', "time_limit_seconds"),
        ("figures.csv", "nowhere.csv", "nowhere.csv"),
    ],
)
def test_a_wrong_suite_file_is_one_line_that_names_file_and_entry(folder, old, new, said):
    (folder / "small.toml").write_text(GOOD.replace(old, new))
    with pytest.raises(LabError, match=said) as caught:
        suites.load(folder, "small")
    assert "small.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "description\na\n", FIGURES.replace("1,2,3,4", "1,2,fast,4")])
def test_wrong_published_figures_are_one_line_that_names_their_file(folder, text):
    (folder / "figures.csv").write_text(text)
    with pytest.raises(LabError, match=r"figures\.csv"):
        suites.load(folder, "small")
