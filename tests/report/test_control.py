"""The A/A control: a report says in one line whether one function under two ids came out as different."""

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


def test_a_pair_that_ties_is_said_with_its_ratio_and_interval():
    (line,) = said(pair([1.0, 1.1, 1.2], [1.15, 1.25, 1.3]))
    assert line.startswith(
        "A/A control of postgres.made.read, 1,000 rows: 1.136 times as long as itself (95 % interval 0."
    )
    assert line.endswith("; 1.10 and 1.25 s, 3 and 3 runs).")


def test_a_pair_that_does_not_tie_is_said_loudly_with_how_often_that_is_chance():
    (line,) = said(pair([1.0, 1.01, 1.02], [1.25, 1.26, 1.27]))
    assert line.startswith(
        "A/A CONTROL FAILED, postgres.made.read, 1,000 rows: one function under two ids came out as d"
    )
    assert "1.248 times as long as itself (95 % interval 1.2" in line
    assert "Do not believe differences of this size" in line
    assert line.endswith("chance does this to about every twentieth control.")


def test_the_control_may_not_come_out_faster_either():
    assert said(pair([1.25, 1.26, 1.27], [1.0, 1.01, 1.02]))[0].startswith("A/A CONTROL FAILED")


def test_too_few_runs_or_none_are_not_judged():
    assert "2.000 times as long as itself; no interval of so few runs (1.00 and 2.00 s" in said(pair([1.0], [2.0]))[0]
    bad = row(WAY, Status.ERROR)
    assert "not judged, the two do not both have an ok run" in said([bad, *pair([], [1.0] * 3)])[0]
    assert "not judged, the two do not both have an ok run" in said(pair([], [1.0] * 3))[0]


def test_without_a_control_nothing_is_said():
    assert said([row(WAY, seconds=1.0)]) == []


def test_the_report_has_the_line():
    rows = pair([1.0, 1.01, 1.02], [1.25, 1.26, 1.27])
    text = markdown.report(suite(), environment(), sections(suite(), environment(), rows, summarise(rows, ())))
    assert "## What this run shows\n\n- A/A CONTROL FAILED, postgres.made.read" in text
