"""Each failure is listed with its reason, whatever happened and how often."""

from harness.model import Status
from harness.report.rankings import NOT_OK, not_ok, reasons
from harness.report.summary import points, summarise
from tests.report.cases import row, scan


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


def test_a_run_without_a_reason_has_an_empty_one():
    assert lines([row("a", Status.KILLED, error="")])[0]["reason"] == ""


def test_runs_that_are_ok_are_no_lines():
    assert not_ok([row("a", seconds=1.0)]) == []


def test_a_reason_that_holds_at_every_point_is_said_without_them():
    cases = summarise([scan(client, files, Status.ERROR) for client in ("a", "b") for files in (1, 2)], ())
    assert reasons(cases, points(cases)) == ("error: it was error (parquet.a.scan, parquet.b.scan)",)


def test_a_reason_that_holds_at_one_point_names_it():
    rows = [scan("a", 1, Status.ERROR), scan("a", 2, seconds=1.0), scan("b", 2, Status.ERROR)]
    cases = summarise(rows, ())
    assert reasons(cases, points(cases)) == (
        "error: it was error (parquet.a.scan at 1 file, 100 MB, parquet.b.scan at 2 files, 200 MB)",
    )
