"""report.md and its parts: all is there, no text is taken for markup, and it is the same each time."""

import re

import pytest

from harness.model import Status, strings
from harness.report import markdown
from harness.report.figures import (
    as_printed,
    described,
    gigabytes,
    in_common,
    in_order,
    megabytes,
    natural,
    significant,
    times,
    volume,
)
from harness.report.rankings import rankings
from harness.report.sections import sections
from harness.report.summary import Summary, points, summarise
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
    assert markdown.in_short(facts) == [
        "Run: 20260101T000000Z-host",
        "Suite: example, size default, 3 passes",
        "Lab: embedded",
        "Server postgres: 18.4",
        "Server clickhouse: 26.9",
        "Machine: 2 cores of A CPU, 8 GiB, Linux 6.1",
        "Filesystem of the data: ext4",
        "Python: 3.11.7",
        "Libraries: polars 2.1.0, duckdb 1.5.5, "
        "older than the newest: duckdb 1.5.5 for duckdb-extensions (2.0.1 is out)",
        "Code: commit 0123456789ab with changes",
    ]
    assert "; Lab: embedded; " in report([row("a", seconds=1.0)], lab="embedded")


def test_a_report_names_used_packages_that_are_older_than_the_newest_and_why():
    facts = environment(
        packages={"polars": "2.1.0", "duckdb": "1.5.5", "sqlalchemy": "2.0.58", "daft/ray": "2.59.1"},
        uses={"a": ["polars", "daft/ray"], "b": ["sqlalchemy"]},
    )
    said = (
        "polars 2.1.0, duckdb 1.5.5, older than the newest: sqlalchemy 2.0.58 for clickhouse-sqlalchemy (2.1.9 is out)"
    )
    assert ("Libraries", said) in markdown.facts(facts)


def test_the_conditions_do_without_what_an_environment_may_lack():
    assert markdown.in_short(environment(plan={"suite": "example", "passes": 1})) == [
        "Run: 20260101T000000Z-host",
        "Suite: example, 1 pass",
        "Lab: local",
        "Machine: 2 cores of A CPU, 8 GiB, Linux 6.1",
        "Python: 3.11.7",
        "Code: commit unknown",
    ]


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


THREE_DIGITS = [
    (None, ""),
    (0, "0"),
    (0.00040951, "0.000410"),
    (0.0123, "0.0123"),
    (1.234, "1.23"),
    (12.34, "12.3"),
    (123.4, "123"),
    (12345.6, "12,346"),
    (999.6, "1,000"),
    (1e-9, "0.00000000100"),
    (-1.5, "-1.50"),
]
RATIOS = [(None, ""), (0.577, "×0.58"), (1, "×1.0"), (13.07, "×13"), (2_345, "×2,345"), (0.00123, "×0.0012")]
# An author's figure gets no digits that it never had.
PRINTED = [(None, ""), (17_000.0, "17,000"), (45.0, "45"), (0.0332, "0.0332"), (1.5, "1.5")]
VOLUMES = [(0, "0 B"), (999, "999 B"), (2_048, "2.05 kB"), (210e6, "210 MB"), (5.04e9, "5.04 GB"), (2e12, "2.00 TB")]
MEGABYTES = [(81_600_000, "81.6"), (0, "<1"), (999_999, "<1"), (1e6, "1.00"), (None, "")]


@pytest.mark.parametrize(
    ("written", "value", "text"),
    [
        *((significant, *pair) for pair in THREE_DIGITS),
        *((times, *pair) for pair in RATIOS),
        *((as_printed, *pair) for pair in PRINTED),
        *((volume, *pair) for pair in VOLUMES),
        *((megabytes, *pair) for pair in MEGABYTES),
        *((gigabytes, *pair) for pair in [(5_040_000_000, "5.04"), (None, "")]),
    ],
)
def test_a_figure_is_written_with_its_digits_and_unit_and_a_missing_one_is_empty(written, value, text):
    assert written(value) == text


def case(label, rows=None, size=None):
    return Summary(parameters=strings(label), rows=rows, bytes=size)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("files", "8", "8 files"),
        ("files", "1", "1 file"),
        ("parts_per_file", "1", "1 part per file"),
        ("parts_per_file", "16", "16 parts per file"),
        ("row_group_rows", "300000", "300,000 row group rows"),
        ("rows", "1000000", "1,000,000 rows"),
        ("scale_factor", "24", "scale factor 24"),
        ("scale_factor", "0.2", "scale factor 0.2"),
        ("page_cache", "as found", "page cache as found"),
        ("memory_mb", "2000", "2,000 MB memory"),
        ("mbit_per_s", "100", "100 Mbit/s"),
        ("mbit_per_s", "0", "unlimited rate"),
    ],
)
def test_a_parameter_is_said_as_people_do(name, value, text):
    assert described(name, value) == text


@pytest.mark.parametrize(
    ("cases", "names"),
    [
        (
            [case("scale=2; files=1", 5, 2_100_000), case("scale=2; files=8", 40, 1_680_000_000)],
            ["1 file, 2.10 MB", "8 files, 1.68 GB"],
        ),
        ([case("files=1", 5, 100), case("files=8", 5, 100)], ["1 file", "8 files"]),
        ([case("files=8; scale=2", 5, 100)], [""]),  # the only one
        (
            [case("rows=1000", 1_000), case("rows=20", 20), case("rows=3", 3)],
            ["3 rows", "20 rows", "1,000 rows"],
        ),
        # More files of fewer rows each: the rows decide.
        ([case("files=1; rows=9", 9), case("files=2; rows=1", 2)], ["2 files, 1 row", "1 file, 9 rows"]),
        (
            [case("groups=4096", 7), case("groups=300000", 7), case("groups=20000", 7)],
            ["4,096 groups", "20,000 groups", "300,000 groups"],
        ),
    ],
)
def test_points_are_named_by_what_differs_in_the_order_of_their_rows_and_then_of_their_numbers(cases, names):
    assert [point.name for point in points(cases)] == names


def test_numbers_are_before_strings_in_the_order_of_labels():
    assert sorted(["b", "10", "9", "0.5"], key=natural) == ["0.5", "9", "10", "b"]
    nine, ten, text = {"n": "9", "m": "a"}, {"n": "10", "m": "9"}, {"n": "10", "m": "a"}
    assert sorted([text, ten, nine], key=in_order) == [nine, ten, text]


def test_the_extent_of_a_point_is_what_all_its_cases_agree_on():
    (same,) = points([case("a=1", 5, 100), case("a=1", None, None), case("a=1", 5, 100)])
    assert (same.rows, same.bytes) == (5, 100)
    (different,) = points([case("a=1", 5, 100), case("a=1", 5, 120)])
    assert different.bytes is None  # such as stores, whose sizes on disk differ


def test_what_all_points_share_is_said_once():
    where = [{"scale": "2", "files": "1", "parts": "4"}, {"scale": "2", "files": "8", "parts": "4"}]
    assert in_common(where) == "scale 2, 4 parts"
    assert in_common(where, but={"scale"}) == "4 parts"
    assert in_common([]) == ""
