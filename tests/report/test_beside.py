"""The author's figures at the author's sizes next to ours at the nearest one."""

import pytest

from harness.model import Status, label
from harness.report.rankings import published_tables
from harness.report.summary import summarise
from harness.settings import ROOT
from harness.suites.suite import PublishedFigure
from harness.suites.suite_files import load
from tests.report.cases import row, scan

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


def test_the_published_scan_benchmark_is_quoted_with_its_headline_figures():
    published = load(ROOT / "suites", "scan").published
    quoted = {
        (f.description, f.experiment, label(f.parameters), f.bytes): (f.mean_seconds, f.peak_rss_bytes)
        for f in published
    }
    assert len(quoted) == len(published)
    assert quoted["DuckDB", "growing_file", "", 140 * 10**9] == (None, 1.3e9)
    assert quoted["Polars (default)", "growing_file", "", 140 * 10**9] == (None, 17e9)
    assert quoted["Polars (forced async)", "growing_file", "", 140 * 10**9] == (None, 750e6)
    assert quoted["Polars (default)", "row_groups", "row_group_rows=122880", 2 * 10**12] == (170.0, None)
    assert {name for name, *_ in quoted} == {"DuckDB", "Polars (default)", "Polars (forced async)"}
