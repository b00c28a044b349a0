"""Every screen at 80 and at 200 columns, read back: no line is wider, no word is broken, and a run ends on one."""

import itertools
import re
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
import typer

from harness import registry
from harness.cli import commands
from harness.cli.app import called, echo, end
from harness.cli.commands import app
from harness.lab import doctor
from harness.lab import labs as opened
from harness.lab.doctor import Diagnosis
from harness.report import comparing
from harness.report.answers import answers, opening
from harness.report.figures import route
from harness.report.rankings import rankings
from harness.report.sections import closing
from harness.report.summary import summarise
from harness.report.table import Table
from harness.report.terminal import LINES, Closing, _cut, _fitted, lines_of, printable
from harness.results import folder as folders
from harness.settings import ROOT, Settings
from harness.suites import suite_files
from harness.suites.suite import AnswersWanted
from tests.report.cases import printed, suite, terminal
from tests.report.test_answers import every

WIDTHS = pytest.mark.parametrize("width", [80, 200])
GROUP = typer.main.get_command(app)
NAMES = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())
LONG = f"/home/somebody/{'folder/' * 20}report.html"


def read(console, width: int, said: Iterable[str] = ()) -> str:
    """Return the screen of a terminal; check that its lines fit unless they are one word, and that it has `said`."""
    text = console.file.getvalue()
    assert [line for line in text.splitlines() if len(line) > width and len(line.split()) > 1] == []
    words = text.split()
    for one in said:
        asked = one.split()
        assert any(words[place : place + len(asked)] == asked for place in range(len(words))), one
    return text


def parts(table: Table, width: int) -> set[str]:
    """Return the words of the cells of the shown columns; an id counts by its parts between dots and underscores."""
    shown, *_ = _fitted(table, width)
    return {part for row in table.rows for place in shown for part in re.findall(r"[^\s._]+", row[place])}


@WIDTHS
@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_no_table_of_a_reference_run_is_wider_and_none_has_a_broken_word(name: str, width: int) -> None:
    known = suite_files.load(ROOT / "suites", name)
    run = folders.read(ROOT / "results" / "reference" / name)
    summaries = summarise(run.rows, known.published)
    compared = comparing.table(comparing.compared(known, run, run, anyway=False))
    for table in (*rankings(summaries), *opening(known, summaries), compared):
        console = terminal(width)
        console.print(printable(table, width), crop=False)
        assert parts(table, width) <= set(re.findall(r"[^\s._]+", read(console, width)))


@pytest.mark.parametrize(
    ("transport", "name"),
    [
        ("clickhouse.clickhouse_connect.write_pandas_df", "clickhouse_connect insert_df"),
        ("clickhouse.clickhousedb.write_polars_database", "clickhousedb write_database"),
        ("clickhouse.http_client.write_pandas_tuned", "http_client tuned"),  # its summary names that of polars
        ("clickhouse.gone.read_polars_rows", "gone rows"),
    ],
)
def test_a_transport_is_called_as_people_write_its_call(transport: str, name: str) -> None:
    assert called(transport) == name


@WIDTHS
@pytest.mark.long
def test_the_answers_of_a_run_keep_their_direction_and_their_factor(width: int) -> None:
    known = suite_files.load(ROOT / "suites", "matrix")
    run = folders.read(folders.reference(ROOT / "results", "matrix"))
    summaries = summarise(run.rows, known.published)
    console = terminal(width)
    last = [f"results: {LONG}", "all tables: lab report 20260101T000000Z-host --tables"]
    room = LINES - lines_of(last, width)
    end(console, closing(known, run.rows, summaries, width, room, short=True), *last)
    shown = read(console, width, last)
    assert LONG in shown
    assert known.answers
    for one in answers(known.answers, summaries):
        for word in route(one).split():
            assert word in shown
    assert "in report.md" not in shown  # all of them
    assert shown.count("×") >= 8


@WIDTHS
def test_the_catalogue_and_the_doctor_break_lines_at_spaces_alone(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = terminal(width)
    monkeypatch.setattr(commands, "new_console", lambda: console)
    monkeypatch.setattr(commands, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    commands.list_("*.write_*")
    entries = registry.select("*.write_*")
    shown = read(console, width, [entry.id for entry in entries]).splitlines()
    assert len(shown) == 2 * len(entries)
    for entry, line in zip(entries, shown[1::2], strict=True):
        begun, cut, _ = line.strip().partition(" ...")
        assert entry.summary == begun or (cut and entry.summary.startswith(f"{begun} "))

    console = terminal(width)
    found = [Diagnosis("s3", False, f"no server: {'set LAB_S3_ENDPOINT or ' * 9}{LONG}"), Diagnosis("x", True, "18.4")]

    @contextmanager
    def lab(chosen: Settings):
        yield SimpleNamespace(name="embedded")

    monkeypatch.setattr(commands, "new_console", lambda: console)
    monkeypatch.setattr(doctor, "examine", lambda chosen, lab: found)
    monkeypatch.setattr(opened, "OPENED", {"embedded": lab})
    with pytest.raises(typer.Exit):
        commands.doctor()
    assert LONG in read(console, width, [f"FAIL s3: {found[0].found}", "ok x: 18.4"])


@WIDTHS
@pytest.mark.parametrize("name", ["", *GROUP.commands])
def test_the_help_of_a_command_is_whole(name: str, width: int) -> None:
    command = GROUP.commands[name] if name else GROUP
    context = command.make_context(f"lab {name}".strip(), [], resilient_parsing=True, terminal_width=width)
    text = command.get_help(context)
    assert [line for line in text.splitlines() if len(line) > width or re.search(r"[a-z]\.\.\.$", line)] == []
    words = " ".join(text.split())
    every = [*command.params, *(GROUP.commands.values() if not name else ())]
    for said in (one.help for one in every if not getattr(one, "hidden", False)):
        assert " ".join((said or "").split("\n\n")[0].split()) in words


@WIDTHS
def test_what_cannot_be_done_is_said_without_a_broken_word(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = f'lab: expected a file at {LONG}: {"give it one of these, " * 9}or "-"'
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    echo(said, err=True)
    lines = capsys.readouterr().err.splitlines()
    assert " ".join(lines) == said
    assert [line for line in lines if len(line) > width and line != f"{LONG}:"] == []


ANSWERED = replace(suite(), answers=AnswersWanted(experiment="matrix", defaults=["postgres.usual.*"]))

PAIRS = list(itertools.product(("pandas", "polars"), ("Postgres", "ClickHouse")))


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
            assert all(f"{one} to {other}" in text for pair in PAIRS for one, other in (pair, pair[::-1]))
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


@pytest.mark.parametrize("asked", [ANSWERED, suite()], ids=["with answers", "without"])
def test_a_run_that_has_not_begun_ends_with_nothing(asked):
    assert closing(asked, [], [], 80) == Closing([], [])
