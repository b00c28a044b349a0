"""The generated pages are whole and the same each time, and stale ones are found, written and removed."""

import re
from functools import cache

import pytest

from harness import docs
from harness.cli.commands import app
from harness.docs.tables import compose_settings
from harness.model import Operation
from harness.report import summary
from harness.results.row import NAMES as COLUMN_NAMES
from harness.settings import ROOT, Settings


@cache
def made():
    """The text of every page by its path in the repository."""
    return {path.relative_to(ROOT).as_posix(): text for path, text in docs.pages(app)}


def page(name):
    """The text of a page that is no client's."""
    return next(text for path, text in made().items() if path.rpartition("/")[2] == name)


def of_clients():
    return {path: text for path, text in made().items() if path.startswith("docs/catalogue/")}


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Two pages in a separate folder for the test instead of the real ones."""
    written = [(tmp_path / "a.md", "first\n"), (tmp_path / "docs" / "catalogue" / "b.md", "second é\n")]
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "pages", lambda app: iter(written))
    return [path for path, _ in written]


def test_the_generated_pages_are_these_and_one_for_each_client():
    names = "catalogue.md values.md cli.md columns.md settings.md .env.example runs.md matrix.csv README.md findings.md"
    assert {path.rpartition("/")[2] for path in made().keys() - of_clients()} == {
        *names.split(),
        "choose-by-hand.md",
        "__init__.py",
    }  # of the gateway
    assert of_clients()


def test_every_column_of_both_files_is_in_the_page_of_columns():
    names = re.findall(r"^\| `(\w+)`", page("columns.md"), re.MULTILINE)
    assert names == [*COLUMN_NAMES, *summary.COLUMNS]


def test_every_setting_is_in_the_page_and_in_the_example_file():
    of_harness = [f"LAB_{name.upper()}" for name in Settings.model_fields]
    of_compose = list(compose_settings())
    assert re.findall(r"^\| `(\w+)`", page("settings.md"), re.MULTILINE) == of_harness + of_compose
    assert re.findall(r"^(\w+)=$", page(".env.example"), re.MULTILINE) == of_compose + of_harness


def test_the_example_file_is_comments_and_empty_variables_only():
    assert all(re.fullmatch(r"#.*|\w+=|", line) for line in page(".env.example").splitlines())


def test_no_page_names_a_path_of_this_machine():
    assert [path for path, text in made().items() if str(ROOT) in text] == []


def test_no_operation_is_left_out():
    heads = {word for text in of_clients().values() for word in re.findall(r"^## (\w+) \(\d+\)$", text, re.MULTILINE)}
    assert heads == {str(operation) for operation in Operation}


def test_missing_and_changed_pages_are_stale_and_written_and_then_fresh(pages):
    assert docs.stale(app) == pages
    assert docs.write(app) == pages
    assert docs.stale(app) == []
    pages[1].write_text("edited by hand\n")
    assert docs.stale(app) == [pages[1]]
    assert docs.write(app) == [pages[1]]
    assert pages[1].read_text(encoding="utf-8") == "second é\n"


def test_the_page_of_a_client_that_is_gone_is_stale_and_removed(pages):
    docs.write(app)
    left = pages[1].with_name("gone.md")
    left.write_text("of a client that was\n")
    assert docs.stale(app) == [left]
    assert docs.write(app) == [left]
    assert not left.exists()
    assert docs.stale(app) == []


def test_writing_what_is_fresh_touches_nothing(pages):
    docs.write(app)
    before = [path.stat().st_mtime_ns for path in pages]
    assert docs.write(app) == []
    assert [path.stat().st_mtime_ns for path in pages] == before
