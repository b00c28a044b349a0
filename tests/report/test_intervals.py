"""Intervals of times and ratios: estimates from few runs, with the scatter of the other cases of their run."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import coverage
from harness.report.intervals import (
    UNKNOWN,
    Estimate,
    RunSpread,
    draws,
    draws_of,
    estimate,
    interval,
    median_interval,
    middle,
    p_value,
    ratio,
    spread_of,
)

SECONDS = st.floats(1e-3, 1e3).map(lambda value: float(f"{value:.6g}"))
SAMPLE = st.lists(SECONDS, min_size=2, max_size=12)
USUAL = RunSpread(0.1, 4.0)
few_examples = settings(max_examples=25)


def test_the_scatter_of_a_run_and_how_much_its_cases_agree_are_found():
    chance = np.random.default_rng(1)
    spreads = 0.1 * np.sqrt(4.0 / chance.chisquare(4.0, 2_000))  # Smyth's model
    found = spread_of(np.exp(chance.normal(0, spreads[:, None], (2_000, 3))))
    assert found.prior == pytest.approx(0.1, rel=0.1)
    assert found.freedom == pytest.approx(4.0, rel=0.25)


def test_cases_that_all_scatter_alike_are_worth_all_their_runs():
    found = spread_of(np.exp(np.random.default_rng(1).normal(0, 0.05, (400, 3))))
    assert found.prior == pytest.approx(0.05, rel=0.1)
    assert found.freedom > 50


@pytest.mark.parametrize("samples", [[], [[1.0]] * 9, [[1.0, 2.0], [1.0, 2.0]], [[1.0, 1.0]] * 9])
def test_a_run_with_too_few_cases_that_scatter_says_nothing_of_its_scatter(samples):
    assert spread_of(samples) is UNKNOWN


def test_where_nothing_is_known_of_the_run_each_case_speaks_for_itself_and_a_single_run_not_at_all():
    one, other = [1.0, 1.1, 1.3], [2.0, 2.5, 2.6]
    found = estimate(one, UNKNOWN)
    logs = [math.log(value) for value in one]
    half = 4.302653 * statistics.stdev(logs) / math.sqrt(3)  # Student's t of 2 degrees of freedom: from tables
    assert interval(found) == pytest.approx((math.exp(found.mean - half), math.exp(found.mean + half)))
    assert ratio(estimate(other, UNKNOWN), found)[0] > 1
    assert estimate([1.0], UNKNOWN) is None
    assert median_interval([1.0], UNKNOWN) is None


def test_an_interval_wider_than_floats_are_has_ends_all_the_same():
    low, high = interval(estimate([1e-9, 6e5], UNKNOWN), 1000)
    assert 0 < low < high < math.inf


def test_a_single_run_has_an_interval_where_the_others_of_its_run_say_how_much_it_scatters():
    low, high = interval(estimate([2.0], USUAL))
    assert high / 2 == pytest.approx(2 / low) == pytest.approx(math.exp(2.776445 * 0.1))  # t of 4 degrees of freedom


@few_examples
@given(SAMPLE, st.integers(-8, 8))
def test_an_interval_holds_the_median_and_scales_with_the_unit(values, power):
    low, high = median_interval(values, USUAL)
    assert low <= statistics.median(values) <= high
    scaled = median_interval([value * 2.0**power for value in values], USUAL)
    assert scaled == pytest.approx((low * 2.0**power, high * 2.0**power))


@few_examples
@given(SAMPLE, SAMPLE)
def test_a_ratio_the_other_way_round_is_its_inverse_and_shown_where_p_is_below_a_twentieth(one, other):
    of, to = estimate(one, USUAL), estimate(other, USUAL)
    low, high = ratio(of, to)
    assert ratio(to, of) == pytest.approx((1 / high, 1 / low))
    assert (low > 1 or high < 1) == (p_value(of, to) < 0.05)


def test_intervals_that_hold_together_are_wider_the_more_there_are():
    of, to = estimate([2.0, 2.1, 2.2], USUAL), estimate([1.0, 1.1, 1.2], USUAL)
    widths = [high / low for low, high in (ratio(of, to, among) for among in (1, 5, 40))]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3


def test_runs_without_any_scatter_have_the_interval_they_show():
    of = Estimate(0.0, 0.0, 4.0)
    assert interval(of) == (1.0, 1.0)
    assert (p_value(of, of), p_value(of, Estimate(1.0, 0.0, 4.0))) == (1.0, 0.0)


def test_the_middle_of_the_times_drawn_is_the_interval_and_the_same_name_draws_the_same():
    of = estimate([1.0, 1.1, 1.3], USUAL)
    assert middle(draws(of, draws_of("a"))) == pytest.approx(interval(of), rel=0.02)
    assert list(draws(of, draws_of("a"))) == list(draws(of, draws_of("a")))


@pytest.mark.long
def test_what_the_lab_prints_holds_about_as_often_as_it_says():
    """The whole simulation, small: `python -m benchmarks.coverage` makes the table of the page."""
    found = coverage.shares(3, 24, coverage.lognormal)
    for kind in ("interval of a time", "ratio of two transports named beforehand", "ratio to the fastest of a table"):
        assert found[kind] >= 0.92, kind
    assert found["two equal transports appear different"] <= 0.1
    assert found["the truly fastest has rank 1"] >= 0.87
    assert found["two equal runs: any of 40 cases appears different"] <= 0.2


@pytest.mark.long
def test_a_scatter_taken_too_small_would_be_noticed(monkeypatch):
    monkeypatch.setattr(coverage, "spread_of", lambda samples, real=spread_of: RunSpread(real(samples).prior / 3, 30.0))
    found = coverage.shares(3, 3, coverage.lognormal)
    assert found["ratio of two transports named beforehand"] < 0.85


def test_the_page_has_the_table_of_the_simulation_and_the_spreads_of_the_reference_runs():
    """After a new reference, `python -m benchmarks.coverage --write` makes both again."""
    text = coverage.PAGE.read_text(encoding="utf-8")
    kinds = coverage.shares(3, 1, coverage.lognormal)
    assert all(f"| {kind} |" in text for kind in kinds)
    assert f"\n{coverage.spreads()}\n" in text
