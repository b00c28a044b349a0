"""Tables for a terminal: every cell is printed, letter by letter, whatever it contains."""

import io

import pytest
from rich.console import Console

from harness.model import Status
from harness.report.rankings import published_tables, rankings
from harness.report.summary import COLUMNS, Summary, summarise
from harness.report.terminal import printable
from tests.report.cases import as_fields, scan


def tables(summaries, width=200, published=()):
    return [printable(table, width) for table in (*rankings(summaries), *published_tables(summaries, published))]


def summary(**more):
    known = (
        {"experiment": "matrix", "parameters": {"rows": "100000"}}
        | {"transport": "postgres.x.write_y", "system": "postgres", "operation": "write", "rows": 100_000}
        | {"status": "ok", "n": 3, "rank": 1, "fidelity": "exact", "mean_seconds": 0.51234, "mean_rows_per_s": 195182.6}
        | {"median_seconds": 0.483, "median_low_seconds": 0.461, "median_high_seconds": 0.602}
        | {"min_rows_per_s": 180_000.4, "max_rows_per_s": 210_000.0, "peak_rss_bytes": 81_600_000}
    )
    return Summary(**(as_fields(known | more) | {name: None for name, value in more.items() if value is None}))


def failed(status="error", error="no", **more):
    figures = ("rank", *(name for name in COLUMNS if name.endswith(("_seconds", "_rows_per_s"))))
    numbers = {name: None for name in figures if not name.startswith("published")}
    return summary(
        **{"n": 0, "status": status, "error": error, "fidelity": "", "peak_rss_bytes": None} | numbers | more
    )


def printed(*summaries, width=400, published=()):
    file = io.StringIO()
    console = Console(file=file, width=width)
    for table in tables(list(summaries), width, published):
        console.print(table)
    return file.getvalue()


def rows(*summaries, width=400):
    """The first table as one dict of header and text a row, each also found in the output."""
    (group,) = tables(list(summaries), width)
    table = group.renderables[1]
    heads = [str(column.header) for column in table.columns]
    texts = [[str(cell) for cell in line] for line in zip(*(column.cells for column in table.columns), strict=True)]
    output = printed(*summaries)
    assert all(text in output for line in texts for text in line)
    return [dict(zip(heads, line, strict=True)) for line in texts]


def grid(*points, width):
    """The output for a grid of two transports, the first of which has a long id."""
    names = ("polars_with_a_name.scan_forced_async", "duckdb")
    scans = [scan(name, files, seconds=files * 1.25) for name in names for files in points]
    return printed(*summarise(scans, ()), width=width)


def test_every_cell_of_an_ok_way_is_printed():
    way = summary(published_row="the way", published_mean_rows_per_s=257_641.76, ratio_to_published=0.757)
    (row,) = rows(way)
    assert row == {
        "#": "1",
        "transport": "the way",
        "median s\n95 %": "0.483 (0.461-0.602)",
        "avg s": "0.5123",
        "rows/s": "195,183",
        "min": "180,000",
        "max": "210,000",
        "peak MB": "82",
        "published": "257,642",
        "ratio": "0.76",
        "values": "exact",
    }
    assert printed(way).strip().startswith("Postgres write: 100,000 rows, mean of up to 3 runs, by median time")


def test_missing_figures_are_empty_cells_and_never_0():
    beside = summary(published_mean_rows_per_s=5.0)
    assert rows(summary(peak_rss_bytes=None), beside)[0] | {"transport": ""} == {
        "#": "1",
        "transport": "",
        "median s\n95 %": "0.483 (0.461-0.602)",
        "avg s": "0.5123",
        "rows/s": "195,183",
        "min": "180,000",
        "max": "210,000",
        "peak MB": "",
        "published": "",
        "values": "exact",
    }
    assert rows(summary(peak_rss_bytes=0))[0]["peak MB"] == "<1"


@pytest.mark.parametrize("status", ["mismatch", "error", "timeout", "killed", "unavailable", "unsupported"])
def test_a_failed_way_has_its_status_and_no_figures_of_ours_and_its_reason_below(status):
    way = failed(status, "the reason", published_row="the way", published_mean_rows_per_s=5_000.0)
    (row,) = rows(way)
    assert {name: text for name, text in row.items() if text} == {
        "transport": "the way",
        "published": "5,000",
        "values": status,
    }
    assert f"{status}: the reason (postgres.x.write_y)" in printed(way)


def test_a_failed_way_without_a_reason_does_not_give_none_as_one():
    text = printed(failed("unsupported", None))
    assert "None" not in text
    assert "unsupported (postgres.x.write_y)" in text


def test_a_way_with_some_failed_runs_says_so_next_to_its_figures():
    (row,) = rows(summary(status="ok 2, timeout 1", n=2))
    assert row["values"] == "exact (ok 2, timeout 1)"


@pytest.mark.parametrize("width", [80, 100, 116, 130, 200])
def test_a_table_fits_the_terminal_and_cuts_no_figure(width):
    way = summary(
        published_row="SQLAlchemy over native driver INSERT FORMAT CSV from Polars delimited text",
        published_mean_rows_per_s=1_257_641.76,
        ratio_to_published=0.757,
        fidelity="converted: entity_key (Object)",
    )
    text = printed(way, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert all(figure in text for figure in ("0.483 (0.461-0.602)", "195,183", "1,257,642", "0.76", "converted"))
    assert ("0.5123" in text) == (width >= 100)
    assert ("180,000" in text) == (width >= 116)
    assert ("too narrow to show:" in text) == (width < 116)


def test_each_database_and_operation_has_its_own_table():
    text = printed(
        summary(system="clickhouse"), summary(system="clickhouse", operation="read"), summary(system="other")
    )
    assert [line.split(":")[0] for line in text.splitlines() if "by median time" in line] == [
        "ClickHouse write",
        "ClickHouse read",
        "Other write",
    ]


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
    group, *_ = tables(summarise([scan("a", 1, seconds=1.0), scan("a", 2, seconds=9.0), scan("b", 2, seconds=5.0)], ()))
    texts = list(group.renderables[1].columns[2].cells)
    assert [(str(text), text.style) for text in texts] == [("5.00", "bold"), ("9.00", "")]


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
    assert f"error: {reason} (postgres.x.write_y)" in printed(failed(error=reason))
    cases = summarise([scan("a", 1, Status.ERROR, error=reason), scan("a", 2, seconds=1.0)], ())
    assert f"error: {reason} (parquet.a.scan at 1 file, 100 MB)" in printed(*cases)
