"""Tables for a terminal: every cell is printed, letter by letter, whatever stands in it."""

import io

import pytest
from rich.console import Console

from harness.report.summary import COLUMNS
from harness.report.tables import tables


def summary(**more):
    return (
        dict.fromkeys(COLUMNS)
        | {"transport": "postgres.x.write_y", "system": "postgres", "direction": "write", "rows": 100_000}
        | {"status": "ok", "n": 3, "rank": 1, "fidelity": "exact", "mean_seconds": 0.51234, "mean_rows_per_s": 195182.6}
        | {"min_rows_per_s": 180_000.4, "max_rows_per_s": 210_000.0, "peak_rss_bytes": 81_600_000}
        | more
    )


def failed(status="error", error="no", **more):
    numbers = dict.fromkeys(("rank", "mean_seconds", "mean_rows_per_s", "min_rows_per_s", "max_rows_per_s"))
    return summary(n=0, status=status, error=error, fidelity=None, peak_rss_bytes=None, **numbers, **more)


def printed(*summaries, width=400):
    file = io.StringIO()
    console = Console(file=file, width=width)
    for table in tables(list(summaries), width):
        console.print(table)
    return file.getvalue()


def rows(*summaries, width=400):
    """The first table as one dict of header and text a row, each also found in what is printed."""
    (table,) = tables(list(summaries), width)
    heads = [str(column.header) for column in table.columns]
    texts = [[str(cell) for cell in line] for line in zip(*(column.cells for column in table.columns), strict=True)]
    output = printed(*summaries)
    assert all(text in output for line in texts for text in line)
    return [dict(zip(heads, line, strict=True)) for line in texts]


def test_every_cell_of_an_ok_way_is_printed():
    way = summary(published_row="the way", published_mean_rows_per_s=257_641.76, ratio_to_published=0.757)
    (row,) = rows(way)
    assert row == {
        "#": "1",
        "transport": "the way",
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
    (row,) = rows(summary(peak_rss_bytes=None))
    assert (row["peak MB"], row["published"], row["ratio"]) == ("", "", "")
    assert rows(summary(peak_rss_bytes=0))[0]["peak MB"] == "0"


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


def test_a_reason_that_several_ways_share_is_said_once():
    text = printed(failed(transport="postgres.x.a"), failed(transport="postgres.x.b"))
    assert "error: no (postgres.x.a, postgres.x.b)" in text


def test_a_failed_way_without_a_reason_does_not_give_none_as_one():
    assert "None" not in printed(failed("unsupported", None))


def test_a_way_with_some_failed_runs_says_so_beside_its_figures():
    (row,) = rows(summary(status="ok 2, timeout 1", n=2))
    assert row["values"] == "exact (ok 2, timeout 1)"


@pytest.mark.parametrize("width", [80, 100, 109, 110, 200])
def test_a_table_fits_the_terminal_and_cuts_no_figure(width):
    way = summary(
        published_row="SQLAlchemy over native driver INSERT FORMAT CSV from Polars delimited text",
        published_mean_rows_per_s=1_257_641.76,
        ratio_to_published=0.757,
        fidelity="converted: entity_key (Object)",
    )
    text = printed(way, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert all(figure in text for figure in ("0.5123", "195,183", "1,257,642", "0.76", "converted"))
    assert ("180,000" in text) == (width >= 110)


def test_each_database_and_direction_has_its_own_table():
    text = printed(
        summary(system="clickhouse"), summary(system="clickhouse", direction="read"), summary(system="other")
    )
    assert [line.split(":")[0] for line in text.splitlines() if "by median time" in line] == [
        "ClickHouse write",
        "ClickHouse read",
        "other write",
    ]


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


def test_no_summaries_are_no_tables():
    assert tables([]) == []
