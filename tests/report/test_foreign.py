"""A results folder of another person: its report obeys nothing in its names and messages."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.app import echo
from harness.model import Status
from harness.report.rankings import rankings
from harness.report.sections import write
from harness.report.summary import summarise, write_summaries
from harness.report.terminal import printable
from harness.results import runs_csv
from tests.report.cases import environment, row, run_folder, suite
from tests.report.test_page import Elements

EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>\x1b]0;owned\x07\x1b[2J\x9b31m=\u202e'
FORMULA = '=HYPERLINK("http://localhost/","click")'
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A run whose facts and rows contain characters that a browser or a terminal would obey."""
    facts = environment(python=EVIL, packages={"polars": EVIL}, servers={f"p{EVIL}": {"version": EVIL}}, lab=EVIL)
    facts["machine"] |= {"cpu": EVIL, "system": EVIL, "kernel": EVIL}
    facts["plan"]["size"] = EVIL
    about = {"client": EVIL, "experiment": EVIL, "path": EVIL, "dataset": EVIL, "system": EVIL}
    rows = [row(f"a{EVIL}", seconds=0.5, **about), row("b", Status.ERROR, error=EVIL, **about)]
    return run_folder(tmp_path / "foreign", rows, facts)


def test_markdown_and_pages_of_a_foreign_run_have_no_tag_of_it_and_nothing_for_a_terminal(foreign: Path) -> None:
    write(foreign, suite())
    text = (foreign / "report.md").read_text()
    assert Elements(text).found == []
    assert "&lt;script" in text
    assert not [one for one in OBEYED if one in text]
    page = (foreign / "report.html").read_text()
    assert "<img src=x" not in page
    assert "<script>alert(2)" not in page
    assert not [one for one in OBEYED if one in page]


def test_what_is_printed_of_foreign_rows_has_nothing_for_a_terminal_to_obey(capsys: pytest.CaptureFixture[str]) -> None:
    summaries = summarise([row(f"a{EVIL}", seconds=0.5), row("b", Status.ERROR, error=EVIL)], ())
    shown = io.StringIO()
    for table in rankings(summaries):
        Console(file=shown, width=200).print(printable(table, 200))
    echo(f"error\t{EVIL}\nnext")
    said = shown.getvalue() + capsys.readouterr().out
    assert r"\x1b]0;owned" in said
    assert "\nnext\n" in said
    assert not [one for one in OBEYED if one in said]


@pytest.mark.parametrize(
    "text", [FORMULA, "+1+cmd|' /C calc'!A0", "-2+3+cmd|x", "@SUM(1)", "\t=1", " =1", "\uff1d1", "=1+1", "-", "\n=1"]
)
def test_what_a_spreadsheet_would_compute_is_a_text_in_tables_for_it(text: str) -> None:
    assert runs_csv.as_cell(text) == "'" + runs_csv.as_text(text)
    assert runs_csv.as_cell({"=a": text}) == "'" + runs_csv.as_text({"=a": text})


@pytest.mark.parametrize(
    "value", [-1.5, -3, 0, "-1.5", "+7", "1e-9", "text", "a=b", "=", "", None, "files=8; cache=-1"]
)
def test_numbers_stay_numbers_and_words_words(value: object) -> None:
    assert runs_csv.as_cell(value) == runs_csv.as_text(value)


def test_a_summary_of_foreign_rows_has_no_formula(tmp_path: Path) -> None:
    write_summaries(tmp_path / "summary.csv", summarise([row(FORMULA, seconds=0.5, client=FORMULA, path=FORMULA)], ()))
    with (tmp_path / "summary.csv").open(newline="") as file:
        (cells,) = csv.DictReader(file)
    assert cells["transport"] == f"'{FORMULA}"
    assert not [cell for cell in cells.values() if cell.startswith("=")]
