"""Rankings and grids, cell by cell, from rows whose figures are worked out by hand."""

import pytest

from harness.model import Status
from harness.report.figures import titled
from harness.report.rankings import rankings
from harness.report.summary import summarise
from harness.suites.suite import PublishedFigure
from tests.report.cases import changed, row, scan


def tables(rows, published=()):
    return rankings(summarise(rows, published))


def column(table, head):
    return [line[table.head.index(head)] for line in table.rows]


def memory(peak, anon=None, file=None):
    return {"peak_rss_bytes": peak, "peak_anon_bytes": anon, "peak_file_bytes": file}


GROWING = [
    scan("quick", 2, seconds=1.0, **memory(30_000_000, 20_000_000, 10_000_000)),
    scan("quick", 16, seconds=2.0, **memory(50_000_000, 20_000_000, 30_000_000)),
    scan("lean", 2, seconds=0.5, **memory(4_000_000, 4_000_000, 0)),
    scan("lean", 16, seconds=4.0, **memory(8_000_000, 8_000_000, 0)),
]


def test_one_combination_of_parameters_is_a_ranking_and_several_are_a_grid():
    ranking, *none = tables([row("a", seconds=0.5), row("b", seconds=0.25)])
    assert (none, ranking.head[:5]) == ([], ("#", "transport", "median s", "avg s", "rows/s"))
    assert ranking.head[5:] == ("min", "max", "peak MB", "values")
    assert ranking.rows[0] == ("1?", "b", "0.250", "0.2500", "4,000", "4,000", "4,000", "", "exact")
    time, _ = tables(GROWING)
    assert time.head == ("transport", "2 files, 200 MB", "16 files, 1.60 GB")


def test_a_grid_has_the_medians_and_its_rows_are_in_the_order_of_the_largest_point():
    more = [scan("quick", 16, seconds=value) for value in (3.0, 3.1)]
    time, _ = tables([*GROWING, *more])
    assert time.rows == (("parquet.quick.scan", "1.00", "3.00"), ("parquet.lean.scan", "0.500", "4.00"))
    assert time.title == "Many files: Parquet scan, median seconds of up to 3 runs"


def test_the_best_of_every_point_is_set_off_and_ties_are_all_best():
    time, peak = tables(GROWING)
    assert time.best == {(1, 1), (0, 2)}
    assert peak.best == {(1, 1), (1, 2)}
    tied, *_ = tables([scan(client, files, seconds=1.0) for client in ("a", "b") for files in (1, 2)])
    assert tied.best == {(0, 1), (1, 1), (0, 2), (1, 2)}


def test_times_below_a_second_are_in_milliseconds():
    (time,) = tables([scan("a", 1, seconds=0.0123), scan("a", 2, seconds=0.9)])
    assert time.rows == (("parquet.a.scan", "12.3", "900"),)
    assert time.title.startswith("Many files: Parquet scan, median milliseconds")


def test_the_grid_of_memory_has_the_split_of_the_largest_point():
    _, peak = tables(GROWING)
    assert peak.title == "Many files: Parquet scan, peak memory in MB above the start, largest of 1 run"
    assert peak.head[-2:] == ("anonymous", "file-backed")
    assert peak.rows == (
        ("parquet.quick.scan", "30.0", "50.0", "20.0", "30.0"),
        ("parquet.lean.scan", "4.00", "8.00", "8.00", "<1"),
    )
    assert "16 files, 1.60 GB" in peak.notes[0]


def test_where_the_system_tells_no_split_there_is_none_and_without_peaks_no_grid_of_memory():
    _, peak = tables([scan("a", files, seconds=1.0, peak_rss_bytes=5_000_000) for files in (1, 2)])
    assert peak.rows == (("parquet.a.scan", "5.00", "5.00"),)
    assert len(tables([scan("a", files, seconds=1.0) for files in (1, 2)])) == 1


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failed_case_has_its_status_instead_of_a_figure_and_its_reason_below(status):
    time, peak = tables([*GROWING, scan("bad", 2, seconds=9.0), scan("bad", 16, status)])
    assert time.rows[-1] == ("parquet.bad.scan", "9.00", status)  # last: it has no figure at the largest point
    assert time.notes[-1] == f"{status}: it was {status} (parquet.bad.scan at 16 files, 1.60 GB)"
    assert peak.rows[-1] == ("parquet.bad.scan", "", status, "", "")


def test_a_case_that_is_not_in_the_plan_is_an_empty_cell():
    time, _ = tables([*GROWING, scan("part", 2, seconds=9.0)])
    assert time.rows[-1] == ("parquet.part.scan", "9.00", "")


def test_a_figure_of_some_ok_runs_only_has_a_star_that_is_explained():
    time, _ = tables([*GROWING, scan("lean", 2, Status.TIMEOUT)])
    assert column(time, "2 files, 200 MB") == ["1.00", "0.500*"]
    assert "* not every run is ok" in time.notes
    assert "ok 1, timeout 1: it was timeout (parquet.lean.scan at 2 files, 200 MB)" in time.notes


def test_what_all_points_share_and_how_values_came_back_is_below():
    time, _ = tables([*GROWING, scan("odd", 2, seconds=1.0, fidelity="converted: n (Float64)")])
    assert time.notes == ("the same at every point: scale 2", "converted: n (Float64) (parquet.odd.scan)")


def test_the_authors_seconds_are_in_a_grid_with_how_many_times_faster_we_are():
    published = (PublishedFigure("The lean way", rows=2_000, mean_seconds=1.0),)
    rows = [changed(one, published_row="The lean way") if one.client == "lean" else one for one in GROWING]
    *_, authors = tables(rows, published)
    assert authors.rows == (("The lean way", "1.00 ×2.0", ""),)
    assert authors.title.endswith("the author's mean seconds (× how many times faster the mean here is)")


def test_a_ranking_has_the_authors_rate_or_else_the_authors_seconds_and_no_columns_without():
    way = row("a", seconds=0.5, published_row="The way")
    by_rate, by_time, without = (
        tables([way], (PublishedFigure("The way", **figures),))[0]
        for figures in ({"mean_rows_per_s": 1_000.0, "mean_seconds": 1.0}, {"mean_seconds": 1.0}, {"rows": 1})
    )
    assert (column(by_rate, "published"), column(by_rate, "ratio")) == (["1,000"], ["2.00"])
    assert (column(by_time, "published s"), column(by_time, "ratio")) == (["1.00"], ["2.00"])
    assert "ratio" not in without.head


def test_a_ranking_of_more_than_rows_says_its_parameters_and_volume():
    (ranking,) = tables([scan("a", 2, seconds=1.0)])
    assert ranking.title == "Parquet scan: 2,000 rows, 200 MB, mean of 1 run, by median time"
    assert ranking.notes[0] == "parameters: scale 2, 2 files"


def test_the_experiment_is_named_where_there_are_several_and_nothing_is_said_twice():
    rows = [row("a", seconds=1.0, experiment=name) for name in ("one_by_one", "together")]
    assert [table.title.split(",")[0] for table in tables(rows)] == [
        "One by one: Postgres write: 1",
        "Together: Postgres write: 1",
    ]
    assert titled("equal", "stores_equal", "read") == "Stores equal read"


def test_ranks_that_are_shared_or_not_sure_say_so_below():
    tied = [row(name, seconds=value) for name in "ab" for value in (1.0, 1.01, 1.02)]
    (ranking,) = tables([*tied, row("c", seconds=9.0)])
    assert column(ranking, "#") == ["1=", "1=", "3?"]
    assert column(ranking, "median s, 95 %") == ["1.01 (0.985-1.04)", "1.01 (0.985-1.04)", "9.00"]
    assert [note[0] for note in ranking.notes] == ["=", "?"]


def test_a_control_is_called_so_and_has_no_rank_and_is_never_set_off():
    twins = [row("s.m.f", seconds=1.0, origin="published", published_row="The way"), row("slow", seconds=3.0)]
    (ranking,) = tables([*twins, row("s.m.f_control", seconds=0.9, origin="control")])
    assert column(ranking, "transport") == ["A/A control of s.m.f", "The way", "slow"]
    assert column(ranking, "#") == ["A/A", "1?", "2?"]
    control = [scan("a", files, seconds=0.1, origin="control") for files in (1, 2)]
    time, *_ = tables([*control, *(scan("b", files, seconds=1.0) for files in (1, 2))])
    assert time.best == {(1, 1), (1, 2)}


def test_at_each_point_every_way_that_no_other_is_shown_to_beat_is_set_off_and_a_note_says_so():
    rows = [
        scan(name, files, seconds=base * files + part)
        for name, base in (("a", 1.0), ("b", 1.01), ("c", 5.0))
        for files in (1, 2)
        for part in (0.0, 0.02, 0.04)
    ]
    time, *_ = tables(rows)
    assert time.best == {(0, 1), (0, 2), (1, 1), (1, 2)}
    assert any(note.startswith("set off at a point: the transports of rank 1") for note in time.notes)


def test_no_summaries_are_no_tables():
    assert rankings([]) == []


def test_every_row_has_a_cell_for_every_head():
    for table in (*tables(GROWING), *tables([row("a", seconds=1.0), row("b", Status.ERROR)])):
        assert {len(line) for line in table.rows} == {len(table.head)}
