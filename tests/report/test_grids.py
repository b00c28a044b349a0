"""Grids of outcomes, maps of winners and traces: colours, words and statements agree with the runs."""

from dataclasses import replace

import pytest

from harness.model import LabError, Status
from harness.report.charts import NO_CHANGES, _bent, _changes, chart
from harness.report.grids import Verdict, map_of, outcome_sentences, outcome_tables, outcomes, winner_tables
from harness.results import folder as folders
from harness.suites.suite import Picture
from tests.report.cases import changed, line, row, runs, suite
from tests.report.cluster_run import PICTURES, ROWS, counted
from tests.report.test_charts import composed, drawn, titles, words

_, KILL, _, MEMORY = PICTURES
WAY = "postgres.dask.load_parts"


def cell(*rows, picture=KILL):
    """The only cell of a grid of one case."""
    ((found,),) = outcomes(picture, rows).cells
    return found


def limited(status):
    """A run with less memory, after which no rows were counted."""
    more = {"experiment": "memory", "parameters": "rows=1000; memory_mb=256", "peak_rss_bytes": 97_000_000}
    return row("a.b.c", status, seconds=1.0 if status is Status.OK else None, **more)


@pytest.mark.parametrize(
    ("one", "picture", "verdict", "text"),
    [
        (counted(WAY, 60_000), KILL, Verdict.RIGHT, "60,000 of 60,000"),
        (counted(WAY, 80_000, Status.MISMATCH), KILL, Verdict.WRONG, "80,000 of 60,000: 20,000 too many"),
        (counted(WAY, 59_999, Status.MISMATCH), KILL, Verdict.WRONG, "59,999 of 60,000: 1 missing"),
        (counted(WAY, 60_000, Status.MISMATCH), KILL, Verdict.WRONG, "60,000 of 60,000, wrong values"),
        # Whatever the status says.
        (counted(WAY, 80_000), KILL, Verdict.WRONG, "80,000 of 60,000: 20,000 too many"),
        (counted(WAY, 0, Status.ERROR), KILL, Verdict.GAVE_UP, "gave up, 0 left"),
        (counted(WAY, 20_000, Status.ERROR), KILL, Verdict.GAVE_UP, "gave up, 20,000 left"),
        (counted(WAY, 20_000, Status.TIMEOUT), KILL, Verdict.GAVE_UP, "timeout, 20,000 left"),
        (counted(WAY, 0, Status.UNSUPPORTED), KILL, Verdict.UNTRIED, "unsupported"),
        # An ok run in which no worker was killed is no proof.
        (
            changed(counted(WAY, 60_000), details="expected_rows=60000; found_rows=60000"),
            KILL,
            Verdict.UNTRIED,
            "no worker was killed",
        ),
        # A load that failed had its rows counted; without a count the lab itself failed, as if it found no worker.
        (changed(counted(WAY, 0, Status.ERROR), details=""), KILL, Verdict.UNTRIED, "error"),
        (
            changed(counted(WAY, 70_000, Status.ERROR), details="expected_rows=60000; found_rows=70000"),
            KILL,
            Verdict.GAVE_UP,
            "gave up, 70,000 left",
        ),
        (
            counted(WAY, 60_000, parameters="change=during", experiment="change"),
            replace(KILL, x="parameter:change", where=None),
            Verdict.RIGHT,
            "60,000 of 60,000",
        ),
        (limited(Status.OK), MEMORY, Verdict.RIGHT, "ok, 97 MB"),
        (limited(Status.KILLED), MEMORY, Verdict.GAVE_UP, "killed"),
        (limited(Status.ERROR), MEMORY, Verdict.GAVE_UP, "error"),
        (limited(Status.MISMATCH), MEMORY, Verdict.WRONG, "mismatch"),
        (limited(Status.UNAVAILABLE), MEMORY, Verdict.UNTRIED, "unavailable"),
    ],
)
def test_a_cell_is_judged_by_the_rows_that_were_found_or_else_by_the_status(one, picture, verdict, text):
    judged = cell(one, picture=picture)
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
    untried = changed(counted("postgres.spark.load_copy", 0, Status.ERROR), details="")
    both = [counted("postgres.spark.load_copy", 60_000, parameters="rows=60000; workers=2; kill=before"), untried]
    assert list(outcome_sentences(replace(about, pictures=[KILL]), both)) == [
        f"{KILL.title}: 0 of 1 transports right; not tried in all cells: postgres.spark.load_copy"
    ]


def test_a_grid_is_the_same_whatever_order_the_runs_have():
    assert outcomes(KILL, ROWS) == outcomes(KILL, ROWS[::-1])


SIZES = (1, 100, 10_000, 1_000_000)
QUICK, STRONG = "postgres.quick.write_polars_rows", "postgres.strong.write_polars_bulk_copy"
MAP = Picture("map", "Who is the fastest", "winners", y="direction", x="rows")
NETWORK = Picture("map", "Rows by network", "winners", x="parameter:rtt_ms + parameter:mbit_per_s", y="rows")
SHAPES = Picture("map", "Rows by shape", "winners", x="dataset", y="rows")
RATES = Picture("rates", "Rates", "lines", y="rows_per_s", x="rows", log=True, crossings=True)


def crossing(**more):
    return runs(QUICK, line(0.001, 1e-4, SIZES), **more) + runs(STRONG, line(0.021, 2e-6, SIZES), **more)


def named(found):
    return [[cell and cell.text.partition(": ")[0] for cell in one] for one in found.cells]


def test_a_map_names_the_fastest_of_each_cell_with_its_median_and_sets_off_the_sure_ones():
    (table,) = winner_tables(suite(pictures=[MAP]), crossing())
    assert table.head == ("direction", "1 row", "100 rows", "10,000 rows", "1,000,000 rows")
    cells = (
        "quick rows: 1.1 ms",
        "quick rows: 11 ms",
        "strong bulk_copy: 41 ms",
        "strong bulk_copy: 2.02 s",
    )
    assert table.rows == (("polars to Postgres", *cells),)
    assert table.best == {(0, place) for place in (1, 2, 3, 4)}


def inexact(rows):
    return [changed(one, fidelity="converted: a String") for one in rows]


@pytest.mark.parametrize(
    ("rows", "shown", "text"),
    [
        (
            runs(QUICK, line(0.020, 0, SIZES, (0.9, 1, 1.1))) + runs(STRONG, line(0.021, 0, SIZES, (0.9, 1, 1.1))),
            False,
            "quick rows: 20 ms, or 1 other",
        ),
        ([one for one in crossing() if one.pass_number == 1], False, "quick rows: 1.08 ms ?"),
        (runs(STRONG, line(0.021, 2e-6, SIZES)), False, "strong bulk_copy: 21 ms, alone"),
        (runs(QUICK, line(0.001, 1e-6, SIZES)) + runs(STRONG, line(0.021, 2e-6, SIZES)), True, "quick rows: 1 ms"),
        (
            inexact(runs(QUICK, line(0.001, 1e-6, SIZES))) + runs(STRONG, line(0.021, 2e-6, SIZES)),
            False,
            "strong bulk_copy: 21 ms, alone",
        ),
        (inexact(crossing()), False, "none is exact"),
    ],
    ids=["a tie", "too few runs", "alone", "shown to be faster", "the only exact one", "none is exact"],
)
def test_a_cell_fades_unless_one_is_shown_to_be_faster_than_other_exact_ones(rows, shown, text):
    (cell, *_) = map_of(MAP, rows).cells[0]
    assert (cell.shown, cell.text) == (shown, text)


def test_a_cell_where_its_neighbours_winner_has_no_figure_is_not_sure():
    small, large = SIZES[:3], SIZES[3:]
    rows = runs(QUICK, line(0.001, 1e-6, small)) + runs(STRONG, line(0.021, 2e-6, SIZES))
    cells = map_of(MAP, rows).cells[0]
    assert [cell.shown for cell in cells] == [True, True, True, False]
    assert (cells[3].absent, cells[3].text) == ((QUICK,), "strong bulk_copy: 2.02 s, alone ?")
    below = runs("postgres.x.read_polars_y", line(1, 0, large))  # of another direction, which does not count
    assert [cell and cell.absent for cell in map_of(MAP, rows + below).cells[1]] == [None, None, None, ()]


def network():
    """The quick one waits ten times for the network, the strong one once but sends more."""
    rows = []
    for delay in (0.2, 10, 50):
        for rate in (1000, 100):
            extra = f"; rtt_ms={delay}; mbit_per_s={rate}"
            rows += runs(QUICK, line(0.001 + delay / 100, 1e-6, SIZES), extra=extra)
            rows += runs(STRONG, line(0.01 + delay / 1000, 1e-3 / rate, SIZES), extra=extra)
    return rows


def test_a_map_is_of_any_parameters_in_the_order_of_their_numbers():
    found = map_of(NETWORK, network())
    assert found.columns[:3] == ("0.2 ms rtt, 100 Mbit/s", "0.2 ms rtt, 1,000 Mbit/s", "10 ms rtt, 100 Mbit/s")
    assert found.lines == ("1 row", "100 rows", "10,000 rows", "1,000,000 rows")
    assert named(found)[0] == ["quick rows"] * 2 + ["strong bulk_copy"] * 4


def test_a_map_is_of_datasets_too_and_is_empty_where_nothing_was_run():
    rows = crossing(dataset="narrow") + runs(STRONG, line(1, 0, SIZES[:2]), dataset="wide", experiment="shapes_wide")
    found = map_of(SHAPES, rows)
    assert found.columns == ("narrow", "wide")
    assert named(found)[0] == ["quick rows", "strong bulk_copy"]
    assert named(found)[3] == ["strong bulk_copy", None]


@pytest.mark.parametrize("picture", [MAP, replace(MAP, y="frame")], ids=lambda picture: picture.y)
def test_transports_that_do_not_compete_are_not_set_against_each_other(picture):
    rows = network() if picture is MAP else crossing() + runs("postgres.x.read_polars_y", line(1, 0, SIZES))
    with pytest.raises(LabError, match=r"picture map: cases at .* do not compete: .*set `where`"):
        map_of(picture, rows)


def test_a_picture_of_rates_marks_the_crossing_and_its_interval(tmp_path):
    (change,), _ = _changes(RATES, crossing())
    assert (change["x"], change["name"]) == (pytest.approx(0.02 / 9.8e-5), " 200 rows")
    root = composed(RATES, crossing(), tmp_path)
    low, high = (f"{float(f'{change[end]:.2g}'):,.0f}" for end in ("low", "high"))
    assert [text for text in titles(root) if "gives way to" in text] == [
        f"{QUICK}\ngives way to {STRONG}\nat 200 rows (95 % interval: {low} to {high} rows)"
    ]
    assert NO_CHANGES not in " ".join(words(root))
    tied = composed(RATES, runs(QUICK, line(0.02, 0, SIZES)) + runs(STRONG, line(0.02, 0, SIZES)), tmp_path)
    assert NO_CHANGES in " ".join(words(tied))
    assert _changes(RATES, [one for one in crossing() if one.pass_number == 1])[0] == []  # one run shows nothing


def test_a_picture_of_rates_draws_of_transports_with_few_rows_alone_only_the_fastest():
    few = [one for one in crossing() if one.transport == QUICK and one.rows in SIZES[:2]]
    slow = [replace(one, transport="postgres.slow.write_polars_rows", seconds=2 * one.seconds) for one in few]
    many = [one for one in crossing() if one.transport == STRONG]
    changes, kept = _changes(RATES, [*few, *slow, *many])
    assert {one.transport for one in kept} == {QUICK, STRONG}
    assert changes == _changes(RATES, [*few, *many])[0]


def test_crossings_of_several_directions_in_one_picture_are_refused():
    both = crossing() + runs("postgres.x.read_polars_y", line(1, 0, SIZES))
    with pytest.raises(LabError, match=r"its crossings have 2 combinations of database, .*; set `where`"):
        _changes(RATES, both)


def test_between_two_marks_the_seconds_are_straight_over_the_rows():
    found = _bent([{"x": 100, "y": 100 / 1.1}, {"x": 10_000, "y": 10_000 / 11.0}])  # 1 s a call and 1 ms a row
    for one in found:
        assert one["x"] / one["y"] == pytest.approx(1 + 0.001 * one["x"])
    assert (found[0]["x"], found[-1]["x"]) == (pytest.approx(100), pytest.approx(10_000))


TRACES = Picture(
    "cores",
    "Cores",
    "traces",
    y="cpu_seconds",
    x="seconds",
    colour="parameter:threads",
    where={"experiment": ["threads"]},
)


def traced(folder, threads, status=Status.OK, having=(1, 2), experiment="threads"):
    found = []
    for number in (1, 2):
        order = threads * 10 + number
        one = row("a.b.c", status, 1.0, experiment=experiment, parameters=f"threads={threads}", **{"pass": number})
        found.append(changed(one, order=order))
        if number in having:
            path = folders.trace_path(folder, order, "a.b.c")
            folders.write_trace(path, [(0.05, threads * 0.5), (0.1, threads * 0.9), (0.15, 0.2)])
    return found


def test_each_run_of_the_last_pass_is_a_line_in_the_order_of_its_value(tmp_path):
    rows = [*traced(tmp_path, 16), *traced(tmp_path, 2), *traced(tmp_path, 4, experiment="another")]
    found, root = drawn(TRACES, rows, tmp_path)
    assert titles(root) == ["a.b.c\nthreads=2\n1 s", "a.b.c\nthreads=16\n1 s"]
    assert [text for text in words(root) if text in ("2", "4", "16")][-2:] == ["2", "16"]
    assert {"CPU cores in use", "time since the start of the call"} <= set(words(root))
    assert "one run each of pass 2" in found.caption


def test_runs_without_a_trace_have_no_line_and_the_caption_says_so(tmp_path):
    found, root = drawn(TRACES, [*traced(tmp_path, 2), *traced(tmp_path, 4, having=())], tmp_path)
    assert len(titles(root)) == 1
    assert found.caption.endswith("Runs too short for two samples have no line.")


def test_without_any_trace_or_ok_run_there_is_no_picture(tmp_path):
    assert chart(TRACES, traced(tmp_path, 2, having=()), (), tmp_path) is None
    assert chart(TRACES, traced(tmp_path, 2, Status.TIMEOUT), (), tmp_path) is None


def test_a_detail_can_be_drawn_over_a_parameter():
    picture = Picture("rates", "Rates", "lines", y="detail:bytes_per_s", x="parameter:threads")
    rows = [
        row("a.b.c", seconds=1.0, parameters=f"threads={threads}", details=f"bytes_per_s={threads}e9")
        for threads in (1, 2, 4)
    ]
    assert [text.splitlines()[-1] for text in titles(composed(picture, rows))] == [
        f"median rate: {threads} GB/s (n = 1)" for threads in (1, 2, 4)
    ]
