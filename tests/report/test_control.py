"""The A/A control: a report says in one line whether one function under two ids came out as a tie."""

from harness.model import Status
from harness.report import markdown
from harness.report.conclusions import control_sentences
from harness.report.sections import sections
from harness.report.summary import summarise
from tests.report.cases import environment, row, suite

WAY, AGAIN = "postgres.made.read", "postgres.made.read_control"


def pair(ours, again):
    rows = [row(WAY, seconds=value, **{"pass": place}) for place, value in enumerate(ours, start=1)]
    return [
        *rows,
        *(row(AGAIN, seconds=v, origin="control", **{"pass": place}) for place, v in enumerate(again, start=1)),
    ]


def said(rows):
    return control_sentences(summarise(rows, ()))


def test_a_pair_that_ties_is_said_in_one_line():
    assert said(pair([1.0, 1.1, 1.2], [1.15, 1.25, 1.3])) == [
        "A/A control of postgres.made.read, 1,000 rows: a tie, as it must be (1.10 (1.00-1.20) and 1.25 (1.15-1.30) s; "
        "in brackets the range of 3); the medians of one function under two ids are 14% apart by chance alone."
    ]


def test_a_pair_that_does_not_tie_is_said_loudly_with_how_often_that_is_chance():
    (line,) = said(pair([1.0, 1.1, 1.2], [1.25, 1.3, 1.35]))
    assert line.startswith(
        "A/A CONTROL FAILED, postgres.made.read, 1,000 rows: one function under two ids came out as d"
    )
    assert "Do not believe differences of this size" in line
    assert line.endswith("; 3 and 3 runs of equal transports come out so in 10% of all cases.")
    (many,) = said(pair([1.0 + n / 100 for n in range(9)], [2.0 + n / 100 for n in range(9)]))
    assert many.startswith("A/A CONTROL FAILED")
    assert "of all cases" not in many


def test_the_control_may_not_come_out_faster_either():
    assert said(pair([1.25, 1.3, 1.35], [1.0, 1.1, 1.2]))[0].startswith("A/A CONTROL FAILED")


def test_too_few_runs_or_none_are_not_judged():
    assert "not judged, fewer than 3 runs (1.00 and 2.00 s)" in said(pair([1.0], [2.0]))[0]
    bad = row(WAY, Status.ERROR)
    assert "not judged, the two do not both have an ok run" in said([bad, *pair([], [1.0] * 3)])[0]
    assert "not judged, the two do not both have an ok run" in said(pair([], [1.0] * 3))[0]


def test_without_a_control_nothing_is_said():
    assert said([row(WAY, seconds=1.0)]) == []


def test_the_report_has_the_line():
    rows = pair([1.0, 1.1, 1.2], [1.25, 1.3, 1.35])
    text = markdown.report(suite(), environment(), sections(suite(), environment(), rows, summarise(rows, ())))
    assert "## What this run shows\n\n- A/A CONTROL FAILED, postgres.made.read" in text
