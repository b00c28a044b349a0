"""The end of a run on a terminal: the answers, within one screen whatever its width."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from harness.report.sections import closing
from harness.report.summary import summarise
from harness.report.terminal import Closing, _cut, lines_of
from harness.results import folder as folders
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import AnswersWanted
from tests.report.cases import suite
from tests.report.test_answers import every

NAMES = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())
ANSWERED = replace(suite(), answers=AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"]))


def printed(tables, width):
    console = Console(width=width, file=io.StringIO())
    for table in tables:
        console.print(table)
    return console.file.getvalue()


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_reference_run_ends_on_one_screen(name):
    known = suite_files.load(ROOT / "suites", name)
    run = folders.read(ROOT / "results" / "reference" / name)
    summaries = summarise(run.rows, known.published)
    for width in (80, 120, 200):
        found = closing(known, run.rows, summaries, width, 36)
        text = printed(found.tables, width)
        assert len(text.splitlines()) + lines_of(found.sentences, width) <= 36
        assert ("The fastest exact transport" in text.replace("\n", " ")) == (name == "matrix")
        if name == "matrix":  # all of its eight directions, with three transports each
            assert text.count("from PyPI") == 8
            assert "lines, all are in" not in text
        if name == "crossings":
            assert text.count(" to ") >= 15
            assert "lines, all are in" not in text


def test_a_run_of_a_few_transports_has_its_tables_and_then_its_answers():
    rows = every()
    summaries = summarise(rows, ())
    text = printed(closing(ANSWERED, rows, summaries, 200).tables, 200)
    assert text.index("Postgres write: 1,000 rows") < text.index("The fastest exact transport")
    short = printed(closing(ANSWERED, rows, summaries, 200, short=True).tables, 200)
    assert "Postgres write" not in short
    assert "The fastest exact transport" in short


def test_what_is_left_out_is_counted():
    assert _cut(["a" * 80] * 5, 80, 5, "report.md") == ["a" * 80] * 5
    assert _cut(["a" * 80] * 6, 80, 5, "a.md")[4:] == ["what else this run shows, in 2 sentences: a.md"]
    assert _cut(["a " * 41] * 3, 80, 2, "a.md") == ["what else this run shows, in 3 sentences: a.md"]
    assert _cut([], 80, -3, "a.md") == []


def test_a_run_that_has_not_begun_ends_with_nothing():
    for asked in (ANSWERED, suite()):
        assert closing(asked, [], [], 80) == Closing([], [])
