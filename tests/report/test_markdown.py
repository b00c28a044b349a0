"""report.md and its parts: it is complete, nothing is taken for markup, and it is the same each time."""

import re

import pytest

from harness.model import Status
from harness.report import markdown
from harness.report.page import facts as facts_of_page
from harness.report.rankings import rankings
from harness.report.sections import sections
from harness.report.summary import summarise
from harness.report.table import Chart
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import environment, row, scan, suite

SIZED = PublishedFigure("The way", "many_files", bytes=10**11, mean_seconds=7.5)


def report(rows, *published, pictures=(), titles=(), **facts):
    about = suite(*published, pictures=[Picture(f"p{title}", title, "bars", y="seconds") for title in titles])
    found = sections(about, environment(**facts), rows, summarise(rows, published), charts=pictures)
    return markdown.report(about, environment(**facts), found)


def lines(text, start):
    return [line for line in text.splitlines() if line.startswith(start)]


def test_the_conditions_say_what_was_asked_and_where_it_ran():
    facts = environment(
        lab="embedded",
        servers={"postgres": {"version": "18.4"}, "clickhouse": {"version": "26.9"}},
        server_filesystem="ext4",
        packages={"polars": "2.1.0", "duckdb": "1.5.5", "other": "1"},
        code={"commit": "0123456789abcdef", "modified": True},
    )
    assert markdown.conditions(facts) == (
        "Suite example, size default, 3 passes, lab: embedded (postgres 18.4, clickhouse 26.9); "
        "2 cores of A CPU, 8 GiB, Linux 6.1, ext4; Python 3.11.7, polars 2.1.0, duckdb 1.5.5, "
        "older than the newest: duckdb 1.5.5 for duckdb-extensions (2.0.1 is out); "
        "commit 0123456789ab with changes, run 20260101T000000Z-host."
    )


def test_a_report_names_used_packages_that_are_older_than_the_newest_and_why():
    facts = environment(
        packages={"polars": "2.1.0", "duckdb": "1.5.5", "sqlalchemy": "2.0.58", "daft/ray": "2.59.1"},
        uses={"a": ["polars", "daft/ray"], "b": ["sqlalchemy"]},
    )
    said = (
        "polars 2.1.0, duckdb 1.5.5, older than the newest: sqlalchemy 2.0.58 for clickhouse-sqlalchemy (2.1.9 is out);"
    )
    assert said in markdown.conditions(facts)
    assert ("Libraries", said.rstrip(";")) in facts_of_page(facts)


def test_the_conditions_do_without_what_an_environment_may_lack():
    assert markdown.conditions(environment(plan={"suite": "example", "passes": 1})) == (
        "Suite example, 1 pass, lab: local (no server); 2 cores of A CPU, 8 GiB, Linux 6.1; "
        "Python 3.11.7; commit unknown, run 20260101T000000Z-host."
    )


def test_a_report_says_how_much_of_own_data_was_compared_and_with_what():
    rows = [scan("a", 1, seconds=1.0)]
    assert "compared before the run" not in report(rows)
    assert "The data were compared before the run: 5 of 60 rows, with a second reading." in report(
        rows, compared="5 of 60 rows, with a second reading"
    )


def test_a_report_has_its_parts_in_order():
    pictures = [Chart("time", "Time", "median of 3 runs", {}, "<svg/>")]
    rows = [scan("a", 1, seconds=1.0), scan("a", 2, seconds=1.0)]
    text = report(rows, SIZED, pictures=pictures, titles=["Time", "Memory"])
    assert lines(text, "#") == [
        "# An example",
        "## Results",
        "## The published figures next to ours",
        "## Pictures",
        "### Time",
        "## What did not run, and why",
        "## How to read this",
    ]
    assert "![Time](pictures/time.svg)\n\nmedian of 3 runs" in text
    assert "Not drawn, because no ok run fits them: Memory." in text
    assert 'Published figures: A. Uthor, "The way", 2026-01-01; on the author\'s machine.' in text


def test_parts_that_have_nothing_to_say_are_left_out():
    text = report([row("a", seconds=1.0)])
    assert [line for line in lines(text, "## ") if "next to" in line or "Pictures" in line] == []
    assert "Not drawn" not in text
    assert "All 1 runs are ok." in text


def test_a_run_with_fewer_passes_than_planned_says_so():
    assert "This run is not complete" in report([row("a", seconds=1.0)])
    assert "not complete" not in report([row("a", seconds=1.0, **{"pass": number}) for number in (1, 2, 3)])


def test_the_best_figures_are_bold_and_figures_are_aligned_right():
    rows = [scan(client, files, seconds=seconds) for client, seconds in (("a", 1.0), ("b", 2.5)) for files in (1, 2)]
    text = markdown.text_table(rankings(summarise(rows, ()))[0])
    assert text.splitlines()[2:6] == [
        "| transport | 1 file, 100 MB | 2 files, 200 MB |",
        "|---|---:|---:|",
        "| parquet.a.scan | **1.00** | **1.00** |",
        "| parquet.b.scan | 2.50 | 2.50 |",
    ]


def test_of_a_table_for_which_there_is_no_room_the_first_rows_are_there_and_where_all_are():
    names = [f"{'long_name_' * 30}{number:02}" for number in range(70)]
    rows = [row(f"{does}_{name}", seconds=1.0, operation=does) for does in ("read", "write") for name in names]
    text = report(rows)
    assert text.count("(the first 10 of 70; all: summary.csv)") == 1
    assert len(lines(text, "| 1")) == 70 + 10


def test_tables_for_which_there_is_no_room_are_counted():
    text = report([row("a" * 500, seconds=1.0, experiment=f"e{number:02}") for number in range(70)])
    assert re.search(r"^\d+ more tables are in the page \(report.html\); all figures: summary.csv.$", text, re.M)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("a | b", "a \\| b"),
        ("__init__() got", "\\_\\_init\\_\\_() got"),
        ("write_polars_copy", "write_polars_copy"),
        ("2*3*4 `x` [a](b)", "2\\*3\\*4 `x` \\[a\\](b)"),
        ("`a[0]` and `b", "\\`a\\[0\\]\\` and \\`b"),  # no name, and none that ends
        ("a &lt; b & c", "a &amp;lt; b & c"),
        ("\\N", "\\\\N"),
    ],
)
def test_a_reason_is_shown_letter_by_letter(text, escaped):
    report_text = report([row("a", Status.ERROR, error=text)])
    assert f"| error | {escaped} | a |" in report_text
    assert f"- error: {escaped.replace(chr(92) + '|', '|')} (a)" in report_text


def test_a_table_whose_row_has_another_number_of_cells_than_its_head_is_refused():
    with pytest.raises(ValueError, match="shorter"):
        markdown.table(("a", "b"), [("1",)])


def test_a_report_is_the_same_whatever_the_order_of_the_rows():
    rows = [scan(client, files, seconds=files / 3) for client in ("b", "a") for files in (2, 1)]
    rows += [row("a", Status.ERROR, **{"pass": number}) for number in (1, 2)]
    assert report(rows) == report(rows[::-1])
