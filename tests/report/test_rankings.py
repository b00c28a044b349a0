"""Rankings, grids and tables of details: cells from rows whose figures are worked out by hand, and as printed."""

from dataclasses import replace

import pytest

from harness.model import LabError, Status
from harness.report.answers import leaders
from harness.report.charts import cases_of
from harness.report.figures import detail, loss_marks, quantity, titled
from harness.report.rankings import MARKED, NOT_OK, losses, not_ok, published_tables, rankings, reasons
from harness.report.summary import Summary, points, summarise
from harness.report.terminal import printable
from harness.suites.suite import PublishedFigure
from tests.report.cases import changed, printed, row, scan
from tests.report.cluster_run import PARTS, PICTURES, STREAMS, bound, counted, measured, of_engine


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


def test_times_below_a_second_are_in_milliseconds_and_without_peaks_there_is_no_grid_of_memory():
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


def test_where_the_system_tells_no_split_there_is_none():
    _, peak = tables([scan("a", files, seconds=1.0, peak_rss_bytes=5_000_000) for files in (1, 2)])
    assert peak.rows == (("parquet.a.scan", "5.00", "5.00"),)


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
    assert authors.title.endswith("the author's mean seconds (× how many times as fast the mean here is)")


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


def shown(summaries, width=400):
    return printed([printable(table, width) for table in rankings(summaries)], width)


def grid(*points, width):
    """The output for a grid of two transports, the first of which has a long id."""
    names = ("polars_with_a_name.scan_forced_async", "duckdb")
    scans = [scan(name, files, seconds=files * 1.25) for name in names for files in points]
    return shown(summarise(scans, ()), width)


def test_missing_figures_are_empty_cells_and_never_0_and_failed_runs_are_counted():
    failed = row("c", Status.ERROR, published_row="The way")
    some = [row("b", seconds=0.6), row("b", Status.TIMEOUT)]
    rows = [row("a", seconds=0.5, peak_rss_bytes=0), *some, failed]
    (ranking,) = tables(rows, (PublishedFigure("The way", mean_rows_per_s=5_000.0),))
    assert column(ranking, "peak MB") == ["<1", "", ""]
    assert column(ranking, "values") == ["exact", "exact (ok 1, timeout 1)", "error"]
    assert dict(zip(ranking.head, ranking.rows[-1], strict=True)) == dict.fromkeys(ranking.head, "") | {
        "transport": "The way",
        "published": "5,000",
        "values": "error",
    }


@pytest.mark.parametrize("width", [80, 100, 116, 130, 200])
def test_a_table_fits_the_terminal_and_cuts_no_figure(width):
    way = Summary(
        parameters={"rows": "100000"},
        system="postgres",
        operation="write",
        published_row="SQLAlchemy over native driver INSERT FORMAT CSV from Polars delimited text",
        rows=100_000,
        status="ok",
        fidelity="converted: entity_key (Object)",
        n=3,
        rank=1,
        mean_seconds=0.51234,
        median_seconds=0.483,
        median_low_seconds=0.461,
        median_high_seconds=0.602,
        mean_rows_per_s=195182.6,
        min_rows_per_s=180_000.4,
        max_rows_per_s=210_000.0,
        peak_rss_bytes=81_600_000,
        published_mean_rows_per_s=1_257_641.76,
        ratio_to_published=0.757,
    )
    text = shown([way], width)
    assert max(map(len, text.splitlines())) <= width
    assert all(figure in text for figure in ("0.483 (0.461-0.602)", "195,183", "1,257,642", "0.76", "converted"))
    assert ("0.5123" in text) == (width >= 100)
    assert ("180,000" in text) == (width >= 116)
    assert ("too narrow to show:" in text) == (width < 116)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_grid_fits_the_terminal_and_drops_its_smallest_points_before_it_cuts_a_figure(width):
    text = grid(1, 2, 4, 8, 16, 32, 64, 128, 256, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "320" in text
    assert "256 files" in text
    assert ("too narrow to show: 1 file, 100 MB" in text) == (width < 200)


def test_an_id_that_is_too_long_is_broken_at_its_dots():
    words = grid(1, 2, 4, 8, 16, 32, 64, width=80).split()
    assert {"polars_with_a_name.", "scan_forced_async."} <= set(words)


def test_an_id_that_has_room_is_whole():
    assert "parquet.polars_with_a_name.scan_forced_async.scan " in grid(1, 2, width=100)


def test_the_best_figure_of_a_point_is_bold():
    (table,) = tables([scan("a", 1, seconds=1.0), scan("a", 2, seconds=9.0), scan("b", 2, seconds=5.0)])
    strings = list(printable(table, 200).renderables[1].columns[2].cells)
    assert [(str(text), text.style) for text in strings] == [("5.00", "bold"), ("9.00", "")]


@pytest.mark.parametrize(
    "reason",
    [
        "[libpq] could not connect",
        "[/tmp/file] is missing",
        "expected [bold]text[/bold]",
        "[Errno 111] refused",
        "type:key:value",
        "a \\[ b",
    ],
)
def test_brackets_and_colons_in_a_reason_are_printed_and_not_taken_for_markup(reason):
    cases = summarise([row("postgres.x.write_y", Status.ERROR, error=reason)], ())
    assert f"error: {reason} (postgres.x.write_y)" in shown(cases)


FIGURES = [
    PublishedFigure("an upload", detail="upload_bytes_per_s", detail_value=2.5e9),
    PublishedFigure("an upload", detail="upload_bytes_per_s", detail_value=4.8e9),
    PublishedFigure("an upload", detail="not_measured_seconds", detail_value=1.0),
]


def runs(transport, *passes, **more):
    return [
        row(transport, seconds=1.0, experiment="s3", operation="job", details=text, **({"pass": number} | more))
        for number, text in enumerate(passes, start=1)
    ]


ROWS = [
    *runs(
        "a.b.upload", *(f"write_seconds={n}; upload_bytes_per_s={n}e8" for n in (1, 2, 4)), published_row="an upload"
    ),
    *runs("a.b.copy", "output_bytes=1234567"),
    *runs("a.b.plain", None),
]


def test_a_summary_has_the_median_of_each_detail():
    found = {summary.transport: summary for summary in summarise(ROWS, FIGURES)}
    assert found["a.b.upload"].details == {"write_seconds": 2, "upload_bytes_per_s": 2e8}
    assert found["a.b.upload"].published_mean_seconds is None
    assert found["a.b.plain"].details == {}


def test_the_table_of_details_has_a_row_for_each_case_with_some():
    *_, table = rankings(summarise(ROWS, FIGURES))
    assert table.title == "S3: Postgres job: stages and rates, medians of up to 3 runs"
    assert sorted(table.head[2:]) == ["output bytes", "upload rate", "write"]
    rows = [dict(zip(table.head, line, strict=True)) for line in table.rows]
    assert {row["transport"]: (row["output bytes"], row["write"], row["upload rate"]) for row in rows} == {
        "a.b.copy": ("1.23 MB", "", ""),
        "an upload": ("", "2.00 s", "200 MB/s"),
    }


def test_the_authors_details_are_next_to_ours_each_with_what_was_measured_here():
    (table,) = published_tables(summarise(ROWS, FIGURES), FIGURES)
    assert table.title == "S3: stages and rates, the author's and ours"
    assert table.rows == (
        ("an upload", "upload rate", "2.50 GB/s", "200 MB/s"),
        ("an upload", "upload rate", "4.80 GB/s", "200 MB/s"),
        ("an upload", "not measured", "1.00 s", "not run"),
    )


def test_sizes_alone_have_no_separate_table():
    tables = rankings(summarise(runs("a.b.copy", "output_bytes=1234567"), []))
    assert not [table for table in tables if "stages" in table.title]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bytes_per_s", 3.3e11, "330 GB/s"),
        ("output_bytes", 5e6, "5.00 MB"),
        ("ctas_seconds", 0.0123, "0.0123 s"),
        ("output_files", 64.0, "64"),
        ("share_of_triad", 0.1234, "0.123"),
    ],
)
def test_a_detail_has_the_unit_its_name_ends_in(name, value, text):
    assert detail(name, value) == text


FIRST = PublishedFigure("First", "many_files", bytes=100_000_000_000, mean_seconds=40.0, peak_rss_bytes=1e9)
OTHER = PublishedFigure("Other", "many_files", bytes=100_000_000_000, mean_seconds=60.0, peak_rss_bytes=13e9)


def run(*sizes):
    """The first transport takes 2 s and 100 MB at every size, the other one 5 s and 500 MB."""
    return [
        scan(name.lower(), files, seconds=seconds, published_row=name, peak_rss_bytes=peak)
        for files in sizes
        for name, seconds, peak in (("First", 2.0, 100_000_000), ("Other", 5.0, 500_000_000))
    ]


def table(rows, *figures):
    (found,) = published_tables(summarise(rows, figures), figures)
    return [dict(zip(found.head, line, strict=True)) for line in found.rows]


def test_both_sides_are_in_one_row_with_their_multiples_of_the_first():
    assert table(run(1, 8), FIRST, OTHER) == [
        {
            "transport": "First",
            "author's\ndata GB": "100",
            "author's\npeak MB": "1,000 ×1.0",
            "author's\nseconds": "40 ×1.0",
            "here\ndata GB": "0.800",
            "here\npeak MB": "100 ×1.0",
            "here\nseconds": "2.00 ×1.0",
        },
        {
            "transport": "Other",
            "author's\ndata GB": "100",
            "author's\npeak MB": "13,000 ×13",
            "author's\nseconds": "60 ×1.5",
            "here\ndata GB": "0.800",
            "here\npeak MB": "500 ×5.0",
            "here\nseconds": "5.00 ×2.5",
        },
    ]


@pytest.mark.parametrize(
    ("wanted", "found"), [(1, "0.100"), (150_000_000, "0.200"), (500_000_000, "0.800"), (10**12, "0.800")]
)
def test_ours_is_of_the_size_nearest_to_the_authors(wanted, found):
    figure = PublishedFigure("First", "many_files", bytes=wanted, mean_seconds=1.0)
    assert table(run(1, 2, 8), figure)[0]["here\ndata GB"] == found


def test_figures_of_some_parameters_are_next_to_cases_with_those():
    def case(name, groups, seconds):
        label = f"files=1; group_rows={groups}"
        return scan(name.lower(), 1, seconds=seconds, published_row=name, parameters=label)

    rows = [case("First", 10, 4.0), case("Other", 10, 8.0), case("First", 20, 1.0), case("Other", 20, 3.0)]
    figures = [
        PublishedFigure(name, "many_files", bytes=10**9, mean_seconds=seconds, parameters={"group_rows": str(groups)})
        for name, groups, seconds in (("First", 10, 7.0), ("Other", 10, 17.0), ("First", 20, 4.0), ("Other", 20, 6.0))
    ]
    assert [(r["parameters"], r["author's\nseconds"], r["here\nseconds"]) for r in table(rows, *figures)] == [
        ("10 group rows", "7 ×1.0", "4.00 ×1.0"),
        ("10 group rows", "17 ×2.4", "8.00 ×2.0"),
        ("20 group rows", "4 ×1.0", "1.00 ×1.0"),
        ("20 group rows", "6 ×1.5", "3.00 ×3.0"),
    ]


def test_without_a_first_of_the_same_size_there_is_no_multiple():
    smaller = PublishedFigure("Other", "many_files", bytes=10**9, peak_rss_bytes=2e9)
    *_, last = table(run(8), FIRST, smaller)
    assert last["author's\npeak MB"] == "2,000"
    assert last["here\npeak MB"] == "500 ×5.0"  # here the first was run at this size


def test_a_column_without_a_figure_is_left_out():
    (line,) = table(run(8), PublishedFigure("First", "many_files", bytes=10**9, peak_rss_bytes=1e9))
    assert "author's\nseconds" not in line
    assert "parameters" not in line


def test_what_failed_here_has_its_status_and_what_was_not_asked_for_says_so():
    rows = [*run(8)[:1], scan("other", 8, Status.KILLED, published_row="Other")]
    absent = PublishedFigure("Absent", "many_files", bytes=10**11, mean_seconds=1.0)
    assert [line["here\nseconds"] for line in table(rows, FIRST, OTHER, absent)] == ["2.00 ×1.0", "killed", "not run"]


def test_a_figure_of_some_ok_runs_has_a_star():
    rows = [*run(8), scan("other", 8, Status.TIMEOUT, published_row="Other")]
    assert table(rows, FIRST, OTHER)[1]["here\nseconds"] == "5.00 ×2.5*"


def test_an_experiment_that_was_not_run_has_no_table_and_neither_have_figures_of_cases():
    cases = summarise([row("a", seconds=1.0)], ())
    assert published_tables(cases, (FIRST, PublishedFigure("a", rows=1_000, mean_seconds=1.0))) == []


def lines(rows):
    return [dict(zip(NOT_OK, line, strict=True)) for table in not_ok(rows) for line in table.rows]


def test_every_run_that_is_not_ok_is_in_a_line_with_its_passes():
    rows = [
        row("b", Status.ERROR, **{"pass": 3}),
        row("b", Status.ERROR, **{"pass": 1}),
        row("b", Status.ERROR, error="another reason", **{"pass": 2}),
        row("a", Status.TIMEOUT),
        row("a", seconds=1.0, **{"pass": 2}),
    ]
    assert [(line["transport"], line["status"], line["reason"], line["passes"]) for line in lines(rows)] == [
        ("a", "timeout", "it was timeout", "1"),
        ("b", "error", "another reason", "2"),
        ("b", "error", "it was error", "1, 3"),
    ]


def test_lines_are_by_experiment_transport_and_the_numbers_of_the_parameters():
    rows = [scan("a", files, Status.KILLED) for files in (16, 2, 4)]
    assert [line["parameters"] for line in lines([row("a", Status.KILLED), *rows])] == [
        "scale=2; files=2",
        "scale=2; files=4",
        "scale=2; files=16",
        "rows=1000",  # of the experiment "matrix"; the rest are of "many_files"
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [scan(client, files, Status.ERROR) for client in ("a", "b") for files in (1, 2)],
            "error: it was error (parquet.a.scan, parquet.b.scan)",
        ),
        (
            [scan("a", 1, Status.ERROR), scan("a", 2, seconds=1.0), scan("b", 2, Status.ERROR)],
            "error: it was error (parquet.a.scan at 1 file, 100 MB, parquet.b.scan at 2 files, 200 MB)",
        ),
        ([row("postgres.x.write_y", Status.UNSUPPORTED, error="")], "unsupported (postgres.x.write_y)"),  # without any
    ],
)
def test_a_reason_names_its_points_unless_it_holds_at_every_one(rows, said):
    cases = summarise(rows, ())
    assert reasons(cases, points(cases)) == (said,)


SUMMARIES = summarise(
    [
        row("postgres.a.write", seconds=0.5, lossy="nulls=changed; tab=refused; nan=changed"),
        row("postgres.b.write", seconds=0.25, lossy="zero_rows=hangs"),
        row("postgres.c.write", seconds=0.125),
    ],
    (),
)


def test_the_table_has_a_column_for_each_fate_there_is_and_a_line_for_each_way_that_loses():
    (table,) = losses(SUMMARIES)
    assert table.head == ("transport", "changed", "refused", "hangs")
    assert table.rows == (
        ("postgres.a.write", "nulls, nan", "tab", ""),
        ("postgres.b.write", "", "", "zero_rows"),
    )


def test_a_run_whose_transports_declare_nothing_has_no_table_no_mark_and_no_note():
    plain = summarise([row("postgres.c.write", seconds=0.125)], ())
    assert losses(plain) == []
    assert [one for table in rankings(plain) for one in table.notes if "†" in one] == []


def test_the_name_of_a_way_that_loses_is_marked_and_the_mark_explained():
    (table,) = rankings(SUMMARIES)
    assert [line[1] for line in table.rows] == ["postgres.c.write", "postgres.b.write ‡", "postgres.a.write †‡"]
    assert MARKED.format("† silently changes, ‡ refuses some kinds of values") in table.notes


@pytest.mark.parametrize(
    ("fates", "marked"),
    [
        ({}, ""),
        ({"nan": "changed"}, "†"),
        ({"nan": "refused", "tab": "refused"}, "‡"),
        ({"nan": "refused", "tab": "changed"}, "†‡"),
        ({"zero_rows": "hangs"}, "‡"),  # nothing arrives, and nothing was changed
    ],
)
def test_a_silent_change_and_a_refusal_are_never_one_mark(fates, marked):
    assert loss_marks(fates) == marked


def test_a_load_is_set_against_the_bounds_of_writes_of_as_many_rows_and_an_unload_against_those_of_reads():
    read = "postgres.asyncpg.read_select"
    rows = [
        measured("postgres.a.load", 8.0, parameters="workers=2"),
        measured("postgres.a.unload", 5.0, operation="unload", parameters="workers=2"),
        measured("postgres.a.load", 40.0, rows=9_000_000),
        measured("postgres.a.load", 8.0, experiment="other"),
        bound(2.0, "engines"),
        bound(1.0, "engines", operation="read", transport=read),
        bound(3.0, "engines", "memory_mb=1"),
        bound(0.1, "elsewhere"),
        bound(0.1, "engines", transport="clickhouse.chdb.write_insert_select"),
    ]
    shares = {(one.experiment, one.operation, one.rows): one.share_of_limit for one in summarise(rows, ())}
    assert shares["engines", "load", 1_000_000] == pytest.approx(2.0 / 8.0)
    assert shares["engines", "unload", 1_000_000] == pytest.approx(1.0 / 5.0)
    assert shares["engines", "load", 9_000_000] is shares["other", "load", 1_000_000] is None


def test_a_write_is_still_set_against_the_bounds_at_its_own_parameters_alone():
    rows = [
        measured("postgres.a.write", 4.0, operation="write", parameters="profile=heap"),
        bound(2.0, "engines", "profile=heap"),
        bound(1.0, "engines", "profile=unlogged"),
    ]
    (share,) = (one.share_of_limit for one in summarise(rows, ()) if one.origin != "limit")
    assert share == pytest.approx(0.5)


def test_what_one_process_does_comes_first_in_every_table_whatever_it_takes():
    fast = [of_engine(PARTS, 2, 1.0, experiment="engines"), of_engine(PARTS, 2, 10.0, 10_000_000, "engines")]
    rows = [*fast, *(measured(way, 50.0, parameters="workers=2") for way in STREAMS)]
    for some in (rows, [run for run in rows if run.rows == 1_000_000]):
        for table in rankings(summarise(some, ())):
            names = [line[table.head.index("transport")] for line in table.rows]
            assert names.index(PARTS) == len(names) - 1 or names == [PARTS] * len(names), table.title


def test_a_ranking_says_how_many_workers_and_counts_their_memory():
    rows = [of_engine(PARTS, 2, 10.0, experiment="engines"), measured(STREAMS[0], 8.0, parameters="workers=2")]
    (ranking,) = rankings(summarise(rows, ()))
    place = {name: ranking.head.index(name) for name in ("transport", "workers", "peak MB")}
    lines = {line[place["transport"]]: (line[place["workers"]], line[place["peak MB"]]) for line in ranking.rows}
    assert lines == {PARTS: ("2", "1,400"), "postgres.psycopg.load_copy": ("", "180")}


def test_the_memory_of_an_engine_is_that_of_its_driver_and_of_its_workers():
    rows = [of_engine(PARTS, 2, 10.0), measured("postgres.psycopg.load_copy", 8.0, experiment="workers")]
    picture = replace(PICTURES[0], where=None)
    found = {point.name: point.y.middle for point in cases_of(picture, rows)}
    assert found == {PARTS: 180e6 + 2 * 610e6, "postgres.psycopg.load_copy": 180e6}
    nothing = replace(rows[0], peak_rss_bytes=None)
    assert cases_of(picture, [nothing])[0].y is None
    assert quantity(picture.y).name == "peak memory above the start, workers included"
    assert (quantity(picture.y).unit, quantity("cpu_seconds + seconds").name) == ("B", "CPU time + time")
    with pytest.raises(LabError, match="adds several units: "):
        quantity("seconds + peak_rss_bytes")


def test_neither_bounds_alone_nor_what_was_disturbed_has_a_fastest():
    disturbed = counted("postgres.dask.load_parts", 60_000, experiment="engines", parameters="kill=before")
    found = leaders(summarise([bound(1.0, "engines"), measured("postgres.a.load", 2.0)], ()))
    assert [line[0] for line in found.rows] == ["Postgres load"]
    assert leaders(summarise([bound(1.0, "engines"), disturbed], ())) is None
