"""The cost of a call and of a row: the line through made-up runs of known costs, and runs that make no line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from harness.report.crossings import costs, directions, fitted
from harness.report.summary import summarise
from tests.report.curves import runs

SIZES = (1, 100, 10_000, 100_000, 1_000_000)


def cost(rows):
    (one,) = costs(directions(summarise(rows, ()), ["sizes"]))
    return one


@given(st.floats(1e-5, 10), st.floats(1e-9, 1e-3))
def test_a_line_without_noise_is_found_as_it_is(fixed, marginal):
    found = fitted(SIZES, [fixed + marginal * rows for rows in SIZES])
    assert found == pytest.approx((fixed, marginal), rel=1e-3)


@given(st.floats(1e-4, 1), st.floats(1e-8, 1e-4), st.lists(st.floats(0.5, 2), min_size=5, max_size=5))
def test_the_line_is_the_most_likely_one_of_seconds_with_a_constant_coefficient_of_variation(fixed, marginal, factors):
    """No other line has a smaller deviance, by the formula of the gamma distribution."""
    times = np.array([(fixed + marginal * rows) * factor for rows, factor in zip(SIZES, factors, strict=True)])

    def deviance(one, each):
        line = np.maximum(one + each * np.array(SIZES), 1e-300)
        return 2 * np.sum((times - line) / line - np.log(times / line))

    ours = tuple(map(float, fitted(SIZES, times)))
    assert min(ours) >= 0
    for start in ours, (fixed, marginal):
        units = np.maximum(start, (1e-9, 1e-15))
        best = minimize(lambda x, units=units: deviance(*np.exp(x) * units), (0, 0), method="Nelder-Mead")
        assert deviance(*ours) <= best.fun + 1e-3


def test_a_low_outlier_draws_the_line_no_further_than_a_high_one():
    level = [0.04, 0.04, 0.04, 0.04, 0.04]
    low, high = (float(fitted(SIZES, [*level[:1], one, *level[2:]])[0]) for one in (0.01, 0.07))
    assert low > 0.03
    assert (low + high) / 2 == pytest.approx(0.04, rel=0.1)


def test_each_line_of_an_array_is_fitted_as_if_it_were_alone():
    many = [[0.1 + 1e-6 * rows for rows in SIZES], [5.0 for _ in SIZES], [1e-5 * rows for rows in SIZES]]
    fixed, marginal = fitted(SIZES, many)
    assert fixed == pytest.approx([0.1, 5.0, 0.0], abs=1e-9)
    assert marginal == pytest.approx([1e-6, 0.0, 1e-5], abs=1e-12)


@pytest.mark.long
def test_the_intervals_mostly_hold_the_true_costs_of_noisy_runs_and_shrink_with_the_noise():
    """The intervals are those of 20 made-up runs with 15 passes, of two costs each."""
    held, widths = 0, {0.2: 0.0, 0.02: 0.0}
    for noise in widths:
        for seed in range(10):
            source = np.random.default_rng(seed)
            times = {rows: (0.01 + 2e-6 * rows) * np.exp(source.normal(0, noise, 15)) for rows in SIZES}
            one = cost(runs("postgres.a.write_polars_x", times))
            for interval, true in ((one.fixed_interval, 0.01), (one.marginal_interval, 2e-6)):
                held += interval[0] < true < interval[1]
            widths[noise] += one.fixed_interval[1] - one.fixed_interval[0]
    assert held >= 34
    assert widths[0.02] < widths[0.2] / 3


def test_what_is_no_line_says_how_far_off_it_is():
    straight = {rows: [0.01 + 2e-6 * rows] * 3 for rows in SIZES}
    assert cost(runs("postgres.a.write_polars_x", straight)).off == pytest.approx(1, abs=1e-6)
    bent = straight | {SIZES[-1]: [10.0] * 3}
    assert cost(runs("postgres.a.write_polars_x", bent)).off > 1.3


def test_half_of_the_rate_is_reached_where_the_rows_cost_as_much_as_the_call():
    one = cost(runs("postgres.a.write_polars_x", {rows: [0.02 + 4e-6 * rows] * 3 for rows in SIZES}))
    assert one.half_rate_rows == pytest.approx(5_000)
    assert 5_000 / one.seconds(5_000) == pytest.approx(0.5 / one.marginal)
    free = cost(runs("postgres.a.write_polars_x", {rows: [0.02] * 3 for rows in SIZES}))
    assert (free.marginal, free.half_rate_rows) == (0, None)


def test_fewer_than_four_sizes_are_no_curve_and_fewer_than_three_runs_have_no_interval():
    few = runs("postgres.a.write_polars_x", {rows: [0.1] * 3 for rows in SIZES[:3]})
    assert costs(directions(summarise(few, ()), ["sizes"])) == []
    once = cost(runs("postgres.a.write_polars_x", {rows: [0.01 + 1e-6 * rows] for rows in SIZES}))
    assert (once.fixed_interval, once.marginal_interval) == (None, None)
    assert once.fixed == pytest.approx(0.01)
