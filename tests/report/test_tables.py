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


def printed(*summaries):
    file = io.StringIO()
    console = Console(file=file, width=400)
    for table in tables(list(summaries)):
        console.print(table)
    return file.getvalue()


def cells(text):
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]


def test_every_cell_of_an_ok_way_is_printed():
    text = printed(summary(published_row="the way", published_mean_rows_per_s=257_641.76, ratio_to_published=0.757))
    assert cells(text) == [
        ["1", "the way", "0.5123", "195,183", "180,000", "210,000", "82", "257,642", "0.76", "exact"]
    ]
    assert text.startswith("Postgres write: 100,000 rows, mean of up to 3 runs, by median time")


def test_missing_figures_are_empty_cells_and_never_0():
    assert cells(printed(summary(peak_rss_bytes=None)))[0][6:9] == ["", "", ""]
    assert cells(printed(summary(peak_rss_bytes=0)))[0][6] == "0"


@pytest.mark.parametrize("status", ["mismatch", "error", "timeout", "killed", "unavailable", "unsupported"])
def test_a_failed_way_has_its_status_and_reason_and_no_figures_of_ours(status):
    text = printed(failed(status, "the reason", published_row="the way", published_mean_rows_per_s=5_000.0))
    assert cells(text) == [["", "the way", "", "", "", "", "", "5,000", "", f"{status}: the reason"]]


def test_a_failed_way_without_a_reason_does_not_give_none_as_one():
    assert "None" not in printed(failed("unsupported", None))


def test_a_way_with_some_failed_runs_says_so_beside_its_figures():
    assert cells(printed(summary(status="ok 2, timeout 1", n=2)))[0][9] == "exact (ok 2, timeout 1)"


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
    assert cells(printed(failed(error=reason)))[0][9] == f"error: {reason}"


def test_no_summaries_are_no_tables():
    assert tables([]) == []
