"""The grid: colour, mark and word show the end of each case, in the picture, the tables and a sentence."""

from dataclasses import replace

import pytest

from harness.model import LabError, Status
from harness.report.grids import Verdict, outcome_sentences, outcome_tables, outcomes
from tests.report.cases import changed, row, suite
from tests.report.cluster_run import PICTURES, ROWS, counted

GRIDS = [picture for picture in PICTURES if picture.form == "grid"]
KILL = next(picture for picture in GRIDS if picture.name == "kill")
MEMORY = next(picture for picture in GRIDS if picture.name == "memory")
WAY = "postgres.dask.load_parts"


def cell(*rows, picture=KILL):
    """The only cell of a grid of one case."""
    ((found,),) = outcomes(picture, rows).cells
    return found


@pytest.mark.parametrize(
    ("found", "status", "verdict", "text"),
    [
        (60_000, Status.OK, Verdict.RIGHT, "60,000 of 60,000"),
        (80_000, Status.MISMATCH, Verdict.WRONG, "80,000 of 60,000: 20,000 too many"),
        (59_999, Status.MISMATCH, Verdict.WRONG, "59,999 of 60,000: 1 missing"),
        (60_000, Status.MISMATCH, Verdict.WRONG, "60,000 of 60,000, wrong values"),
        (80_000, Status.OK, Verdict.WRONG, "80,000 of 60,000: 20,000 too many"),  # whatever the status says
        (0, Status.ERROR, Verdict.GAVE_UP, "gave up, 0 left"),
        (20_000, Status.ERROR, Verdict.GAVE_UP, "gave up, 20,000 left"),
        (20_000, Status.TIMEOUT, Verdict.GAVE_UP, "timeout, 20,000 left"),
        (0, Status.UNSUPPORTED, Verdict.UNTRIED, "unsupported"),
    ],
)
def test_a_cell_is_judged_by_the_rows_that_were_found(found, status, verdict, text):
    judged = cell(counted(WAY, found, status))
    assert (judged.verdict, judged.text) == (verdict, text)


def test_an_ok_run_in_which_no_worker_was_killed_is_no_proof():
    spared = counted(WAY, 60_000)
    assert cell(changed(spared, details="expected_rows=60000; found_rows=60000")).verdict is Verdict.UNTRIED
    wrong = counted(WAY, 70_000, Status.ERROR)
    assert cell(changed(wrong, details="expected_rows=60000; found_rows=70000")).verdict is Verdict.GAVE_UP
    while_changed = counted(WAY, 60_000, parameters="change=during", experiment="change")
    assert cell(while_changed, picture=replace(KILL, x="parameter:change", where=None)).verdict is Verdict.RIGHT


@pytest.mark.parametrize(
    ("status", "verdict", "text"),
    [
        (Status.OK, Verdict.RIGHT, "ok, 97 MB"),
        (Status.KILLED, Verdict.GAVE_UP, "killed"),
        (Status.ERROR, Verdict.GAVE_UP, "error"),
        (Status.MISMATCH, Verdict.WRONG, "mismatch"),
        (Status.UNAVAILABLE, Verdict.UNTRIED, "unavailable"),
    ],
)
def test_without_counted_rows_the_status_is_the_text_with_the_figure_of_what_is_ok(status, verdict, text):
    more = {"experiment": "memory", "parameters": "rows=1000; memory_mb=256", "peak_rss_bytes": 97_000_000}
    judged = cell(row("a.b.c", status, seconds=1.0 if status is Status.OK else None, **more), picture=MEMORY)
    assert (judged.verdict, judged.text) == (verdict, text)


def test_of_several_runs_the_worst_is_shown_with_how_many_ended_so():
    runs = [counted(WAY, 60_000, **{"pass": 1}), counted(WAY, 61_000, Status.MISMATCH, **{"pass": 2})]
    runs += [counted(WAY, 80_000, Status.MISMATCH, **{"pass": number}) for number in (3, 4)]
    runs += [counted(WAY, 0, Status.ERROR, **{"pass": 5})]
    for some in (runs, runs[::-1]):
        judged = cell(*some)
        assert judged.marked == "✗ 80,000 of 60,000: 20,000 too many (2 of 5 runs)"


def test_columns_are_as_the_suite_lists_them_and_else_in_their_natural_order():
    assert outcomes(KILL, ROWS).columns == ("kill before", "kill after")
    assert outcomes(replace(KILL, where={"experiment": ["kill"]}), ROWS).columns == ("kill after", "kill before")
    assert outcomes(MEMORY, ROWS).columns == ("256 MB memory", "512 MB memory")


def test_what_one_process_does_comes_first_then_postgres_and_a_transport_has_a_line_for_each_other_parameter():
    assert list(outcomes(KILL, ROWS).lines) == [
        "postgres.psycopg.load_copy",
        "postgres.dask.load_copy_parts",
        "postgres.dask.load_copy_parts_once",
        "postgres.spark.load_jdbc",
        "clickhouse.dask.unload_parts",
    ]
    more = changed(counted(WAY, 60_000), parameters="rows=60000; workers=4; kill=after")
    lines = outcomes(KILL, [counted(WAY, 60_000), more]).lines
    assert lines == (f"{WAY} [2 workers]", f"{WAY} [4 workers]")


def test_a_case_that_was_not_run_is_an_empty_cell():
    found = outcomes(KILL, [*ROWS, counted(WAY, 60_000)])
    before, after = found.cells[found.lines.index(WAY)]
    assert (before, after.verdict) == (None, Verdict.RIGHT)


def test_a_picture_of_a_column_that_there_is_not_is_refused():
    with pytest.raises(LabError, match='no column "killed" for a picture'):
        outcomes(replace(KILL, x="killed"), ROWS)


def test_the_same_cells_are_in_a_table_and_a_sentence_names_the_wrong_ones():
    about = suite(pictures=PICTURES)
    first, *_ = outcome_tables(about, ROWS)
    assert first.title == KILL.title
    assert first.head == ("transport", "kill before", "kill after")
    assert first.rows[1] == (
        "postgres.dask.load_copy_parts",
        "✓ 60,000 of 60,000",
        "✗ 80,000 of 60,000: 20,000 too many",
    )
    assert first.notes == (
        "✓ right: every row once, every value as it was",
        "– gave up, or was ended",
        "✗ wrong: rows too many or missing, without an error",
    )
    said, *_ = outcome_sentences(about, ROWS)
    assert said == (
        f"{KILL.title}: 1 of 5 transports right; "
        "rows too many or missing: postgres.dask.load_copy_parts, clickhouse.dask.unload_parts; "
        "gave up or ended: postgres.psycopg.load_copy, postgres.spark.load_jdbc"
    )
    assert [*outcome_tables(suite(), ROWS), *outcome_sentences(suite(), ROWS)] == []


def test_a_grid_is_the_same_whatever_order_the_runs_have():
    assert outcomes(KILL, ROWS) == outcomes(KILL, ROWS[::-1])
