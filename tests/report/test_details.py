"""Stages and rates of jobs are in a table with their units, the author's figures below ours."""

import pytest

from harness.report.figures import detail
from harness.report.rankings import detail_rows, published_tables, rankings
from harness.report.summary import summarise
from harness.suites.suite import PublishedFigure
from tests.report.cases import row

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


def test_cases_without_details_have_no_such_table():
    assert detail_rows(summarise(runs("a.b.plain", None), FIGURES), {"rows=1000": ""}) == ((), ())


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
