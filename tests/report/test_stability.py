"""Which runs are called unstable, by figures worked out by hand, and how tables say it."""

from dataclasses import replace

import pytest

from harness.model import texts
from harness.report.summary import Summary, summarise, unstable_note
from tests.report.cases import row


def runs(*seconds, **more):
    return [row("a", seconds=value, **({"pass": place} | more)) for place, value in enumerate(seconds, start=1)]


def unstable_reasons(rows):
    (case,) = summarise(rows, ())
    return case.unstable.split("; ") if case.unstable else []


STEADY = (1.0, 1.01, 1.02)


def test_steady_runs_are_not_unstable():
    assert unstable_reasons(runs(*STEADY)) == []
    assert unstable_reasons(runs(*STEADY, steal_seconds=0.0, throttled_seconds=0.0)) == []
    assert unstable_reasons(runs(1.0)) == []


@pytest.mark.parametrize(("column", "reason"), [("steal_seconds", "steal"), ("throttled_seconds", "throttled")])
def test_one_run_of_which_others_took_more_than_2_percent_is_enough(column, reason):
    steady = runs(*STEADY)
    assert unstable_reasons([*steady, *runs(1.0, **{column: 0.05, "pass": 4})]) == [reason]
    assert unstable_reasons([*steady, *runs(1.0, **{column: 0.03, "pass": 4})]) == []  # a hundredth may be rounding


def test_one_tick_of_a_short_call_may_be_rounding():
    assert unstable_reasons(runs(0.02, 0.02, 0.02, steal_seconds=0.01)) == []
    assert unstable_reasons(runs(0.02, 0.02, 0.02, steal_seconds=0.02)) == ["steal"]


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ((1.2, 1.0, 1.01), True),  # 0.19 above the median, which is 19 median absolute deviations
        ((1.1, 1.0, 1.01), False),  # 9 of them
        ((1.0, 1.2, 1.01), False),  # slow, but not the first
        ((0.8, 1.0, 1.01), False),  # fast
        ((1.2, 1.0), False),
        ((1.01, 1.0, 1.0), True),  # the others are equal
        ((1.0, 1.0, 1.0), False),
    ],
)
def test_a_slow_first_pass_is_an_outlier_by_the_rule_of_hyperfine(seconds, slow):
    assert ("slow first pass" in unstable_reasons(runs(*seconds))) == slow


def test_where_the_first_pass_has_no_ok_run_there_is_no_slow_first_pass():
    assert unstable_reasons([replace(one, pass_number=one.pass_number + 1) for one in runs(1.05, 1.0, 1.0)]) == []


@pytest.mark.parametrize(
    ("seconds", "uneven"),
    [
        ((0.9, 1.0, 1.1), True),  # a deviation of exactly 10 %
        ((0.91, 1.0, 1.09), False),
        ((1.0, 1.2), True),
        ((1.0,), False),
        ((*[1.0] * 40, 1.52), True),  # 50 % above the mean, with a deviation of 8 %
        ((*[1.0] * 40, 1.48), False),
        ((*[1.0] * 40, 0.48), True),
    ],
)
def test_the_spread_is_that_of_which_pyperf_warns(seconds, uneven):
    assert ("spread" in unstable_reasons(runs(*seconds))) == uneven


def test_the_most_frequent_reasons_are_said_once_and_others_with_their_cases():
    cases = [
        Summary(transport=name, parameters=texts(label), unstable=reason)
        for name, label, reason in (
            ("a", "files=1", "spread"),
            ("a", "files=2", "spread"),
            ("b", "files=1", "steal; spread"),
            ("c", "files=1", "throttled"),
            ("c", "files=2", "throttled"),
            ("d", "files=2", "spread"),
            ("e", "files=2", ""),
        )
    ]
    names = {"files=1": "1 file", "files=2": "2 files"}
    assert unstable_note(cases, names) == (
        "! unstable (spread | throttled: c at 1 file; 2 files | steal; spread: b at 1 file)",
    )
    assert unstable_note(cases[:2]) == ("! unstable (spread)",)
    assert unstable_note(cases[-1:]) == ()
