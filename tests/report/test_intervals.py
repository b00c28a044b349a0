"""Bootstrap intervals: what they are of few runs, that they repeat, scale and contain the median, and how often."""

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.report.intervals import called, median_interval, overlap, ratio_interval

SECONDS = st.floats(1e-3, 1e3).map(lambda value: float(f"{value:.6g}"))
SAMPLE = st.lists(SECONDS, min_size=3, max_size=12)
few_examples = settings(max_examples=25)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0]])
def test_fewer_than_three_runs_have_no_interval(values):
    assert median_interval(values, "a") is None
    assert ratio_interval(values, [1.0, 2.0, 3.0], "a") is None
    assert ratio_interval([1.0, 2.0, 3.0], values, "a") is None


@pytest.mark.parametrize("count", [3, 4, 5])
def test_the_interval_of_three_to_five_runs_is_their_whole_range(count):
    values = [1.0, 1.5, 2.5, 9.0, 4.0][:count]
    assert median_interval(values, "a") == (min(values), max(values))


def test_the_interval_of_many_runs_is_narrower_than_their_range():
    low, high = median_interval([float(value) for value in range(1, 22)], "a")
    assert 5 <= low <= 8
    assert 14 <= high <= 17


@few_examples
@given(SAMPLE)
def test_the_interval_holds_the_median_and_stays_within_the_range(values):
    low, high = median_interval(values, "a")
    assert low <= statistics.median(values) <= high
    assert low >= min(values) * (1 - 1e-12)
    assert high <= max(values) * (1 + 1e-12)


@few_examples
@given(SAMPLE, st.randoms())
def test_the_same_runs_in_another_order_have_the_same_interval(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert median_interval(shuffled, "a") == median_interval(values, "a")
    assert ratio_interval(shuffled, values, "a") == ratio_interval(values, shuffled, "a")


@few_examples
@given(SAMPLE, st.integers(-8, 8))
def test_the_interval_scales_with_the_unit(values, power):
    low, high = median_interval(values, "a")
    assert median_interval([value * 2.0**power for value in values], "a") == (low * 2.0**power, high * 2.0**power)


@few_examples
@given(SAMPLE)
def test_the_interval_of_a_ratio_of_a_sample_to_itself_holds_one(values):
    low, high = ratio_interval(values, values, "a")
    assert low <= 1 <= high


def test_the_interval_of_a_ratio_of_steady_runs_is_the_ratio():
    assert ratio_interval([3.0] * 5, [2.0] * 5, "a") == (1.5, 1.5)


def test_five_runs_hold_the_true_median_as_often_as_the_documentation_says():
    drawn = np.random.default_rng(1).lognormal(0, 0.5, (2_000, 5))
    held = np.mean((drawn.min(axis=1) <= 1) & (drawn.max(axis=1) >= 1))
    assert held == pytest.approx(0.94, abs=0.02)


def test_intervals_that_touch_overlap():
    assert overlap((1, 2), (2, 3))
    assert overlap((1, 9), (2, 3))
    assert not overlap((1, 2), (2.1, 3))
    assert not overlap((2.1, 3), (1, 2))


@pytest.mark.parametrize(
    ("counts", "name"),
    [
        ([], ""),
        ([0, 1, 2], ""),
        ([3, 3, 0], "range of 3"),
        ([3, 5], "range of 3 to 5"),
        ([3, 6], "interval"),
        ([7, 7], "interval"),
        ([9, 10], "interval"),
        ([10, 30], "95 %"),
    ],
)
def test_an_interval_is_called_what_it_is_worth(counts, name):
    assert called(counts) == name
