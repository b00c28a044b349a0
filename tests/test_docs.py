"""The generated pages name everything the code has, keep their tables whole, and know when they are stale."""

import json
import re
from collections import Counter
from functools import cache

import pytest

from harness import docs, registry
from harness.model import LabError
from harness.report import markdown, summary
from harness.results import runs_csv
from harness.results.row import NAMES as COLUMN_NAMES
from harness.results.row import ok_rows
from harness.settings import Settings

NAMES = ("catalogue.md", "columns.md", "settings.md", ".env.example", "results.md", "matrix.csv", "README.md")


@cache
def page(name):
    """The text of a page; those before it are made too, those after it not."""
    return next(text for path, text in docs._pages() if path.name == name)


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Two pages in a folder of the test's own instead of the real ones."""
    made = [(tmp_path / "a.md", "first\n"), (tmp_path / "b.md", "second é\n")]
    monkeypatch.setattr(docs, "_pages", lambda: iter(made))
    return [path for path, _ in made]


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_every_transport_stands_once_in_the_catalogue_with_its_summary():
    rows = [cells(line) for line in page("catalogue.md").splitlines() if line.startswith("| `")]
    assert {row[0]: row[1] for row in rows} == {
        f"`{entry.id}`": entry.summary.replace("|", "\\|") for entry in registry.select()
    }
    assert len(rows) == len(registry.select())


def test_the_catalogue_counts_its_transports_by_system_and_operation():
    heads = re.findall(r"^## (\w+) (\w+) \((\d+)\)$", page("catalogue.md"), re.MULTILINE)
    expected = Counter((entry.system, str(entry.operation)) for entry in registry.select())
    assert {(system, operation): int(count) for system, operation, count in heads} == expected
    assert len(heads) == len(expected)


def test_every_column_of_both_files_stands_in_the_page_of_columns():
    names = re.findall(r"^\| `(\w+)`", page("columns.md"), re.MULTILINE)
    assert names == [*COLUMN_NAMES, *summary.COLUMNS]


def test_every_setting_stands_in_the_page_and_in_the_example_file():
    of_harness = [f"LAB_{name.upper()}" for name in Settings.model_fields]
    of_compose = list(docs.compose_settings())
    assert re.findall(r"^\| `(\w+)`", page("settings.md"), re.MULTILINE) == of_harness + of_compose
    assert re.findall(r"^(\w+)=$", page(".env.example"), re.MULTILINE) == of_compose + of_harness


def test_the_example_file_is_comments_and_empty_variables_only():
    assert all(re.fullmatch(r"#.*|\w+=|", line) for line in page(".env.example").splitlines())


def test_the_pages_are_the_ones_that_are_tested_here():
    assert tuple(path.name for path, _ in docs._pages()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_page_names_a_path_of_this_machine(name):
    assert str(docs.ROOT) not in page(name)


@pytest.mark.parametrize("name", ["catalogue.md", "columns.md", "settings.md"])
def test_every_row_of_a_table_has_as_many_cells_as_its_head(name):
    width = None
    for line in page(name).splitlines():
        if not line.startswith("|"):
            width = None
        elif width is None:
            width = len(cells(line))
        else:
            assert len(cells(line)) == width, line


def test_a_pipe_in_a_cell_does_not_split_it():
    assert markdown.table(("a", "b"), iter([("x|y", "z")])).splitlines()[2] == "| x\\|y | z |"


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_the_same_each_time(name):
    first = page(name)
    page.cache_clear()
    docs._reference.cache_clear()
    assert page(name) == first


@pytest.mark.parametrize("name", sorted(path.name for path in (docs.ROOT / "results" / "reference").iterdir()))
def test_every_reference_run_stands_in_the_page_of_results_with_its_number_of_ok_runs(name):
    ok = ok_rows(runs_csv.load(docs.ROOT / "results" / "reference" / name / "runs.csv"))
    part = page("results.md").partition(f"## {name}: ")[2].partition("\n## ")[0]
    assert f" cases, {len(ok):,} ok runs" in part
    for link in re.findall(r"\]\(\.\./([^)]+)\)", part):
        assert (docs.ROOT / link).is_file()


def test_missing_and_changed_pages_are_stale_and_written_and_then_fresh(pages):
    assert docs.stale() == pages
    assert docs.write() == pages
    assert docs.stale() == []
    pages[1].write_text("edited by hand\n")
    assert docs.stale() == [pages[1]]
    assert docs.write() == [pages[1]]
    assert pages[1].read_text(encoding="utf-8") == "second é\n"


def test_writing_what_is_fresh_touches_nothing(pages):
    docs.write()
    before = [path.stat().st_mtime_ns for path in pages]
    assert docs.write() == []
    assert [path.stat().st_mtime_ns for path in pages] == before


def test_a_page_in_a_folder_that_is_not_there_yet_is_written(tmp_path, monkeypatch):
    page = tmp_path / "docs" / "a.md"
    monkeypatch.setattr(docs, "_pages", lambda: iter([(page, "first\n")]))
    assert docs.write() == [page]
    assert page.read_text() == "first\n"


@pytest.fixture
def a_run(tmp_path, monkeypatch):
    """A run's folder, and a checkout to adopt it in."""
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs.suite_files, "load", lambda folder, name: (folder, name))
    monkeypatch.setattr(docs.report, "write", lambda folder, suite: (folder / "report.md").write_text(str(suite)))
    folder = tmp_path / "results" / "20260101T000000Z-host"
    (folder / "pictures").mkdir(parents=True)
    (folder / "traces").mkdir()
    names = ("runs.csv", "summary.csv", "report.md", "report.html", "pictures/a.png", "pictures/a.svg", "traces/1.csv")
    for name in names:
        (folder / name).write_text(name)

    def make(size="default", select="*", modified=False, left_out=()):
        plan = {"suite": "scan", "size": size, "select": select, "experiments": [{"left_out": list(left_out)}]}
        (folder / "environment.json").write_text(json.dumps({"plan": plan, "code": {"modified": modified}}))
        return folder

    return make


def test_a_run_becomes_the_reference_with_what_is_small_and_nothing_of_the_one_before(a_run, tmp_path):
    old = tmp_path / "results" / "reference" / "scan" / "pictures" / "old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    place = docs.adopt(a_run())
    assert place == tmp_path / "results" / "reference" / "scan"
    found = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    assert found == ["environment.json", "pictures/a.png", "report.md", "runs.csv", "summary.csv", "traces/1.csv"]
    assert (place / "report.md").read_text() == str((tmp_path / "suites", "scan"))


@pytest.mark.parametrize(
    "facts",
    [
        {"size": "smoke"},
        {"select": "parquet.duckdb.*"},
        {"left_out": ["parquet.duckdb.scan"]},
        {"modified": True},
        {"modified": None},
    ],
)
def test_a_part_of_a_suite_or_changed_code_is_no_reference(a_run, tmp_path, facts):
    with pytest.raises(LabError, match="expected a run of the default size"):
        docs.adopt(a_run(**facts))
    assert not (tmp_path / "results" / "reference").exists()
