"""Curves over the number of rows: made-up ones with known costs and crossings, and runs that do not show any."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize

from harness.report.crossings import costs, crossing, crossing_tables, curves, directions, fitted, winners
from harness.report.summary import summarise
from harness.suites.suite import CrossingsWanted
from tests.report.cases import changed, line, runs, suite

SIZES = (1, 100, 10_000, 1_000_000)
QUICK, STRONG, MIDDLE = (f"postgres.{name}.write_polars_x" for name in ("quick", "strong", "middle"))
WANTED = ["sizes", "sizes_large"]
drawn_costs = st.tuples(st.floats(1e-4, 1.0), st.floats(1e-8, 1e-4))


def of(rows):
    (one,) = (winners(direction) for direction in directions(summarise(rows, ()), WANTED))
    return one


def tables(rows):
    """The fastest at each number of rows, and the costs."""
    about = replace(suite(), crossings=CrossingsWanted(WANTED))
    (fastest,), costs = crossing_tables(curves(about, summarise(rows, ())))
    return fastest, costs[0] if costs else None


@given(drawn_costs, drawn_costs)
def test_two_straight_lines_cross_where_algebra_says(first, second):
    assume(all(abs(one - other) > 0.01 * max(one, other) for one, other in zip(first, second, strict=True)))
    at = float(crossing(SIZES, *([one + each * rows for rows in SIZES] for one, each in (first, second))))
    wins = [first[0] + first[1] * rows > second[0] + second[1] * rows for rows in SIZES]
    if not wins[-1]:
        assert math.isinf(at)
    elif all(wins):
        assert at == 0
    else:
        assert at == pytest.approx((second[0] - first[0]) / (first[1] - second[1]), rel=1e-5)


@given(st.lists(st.floats(0.1, 10), min_size=8, max_size=8))
def test_from_the_crossing_on_the_second_is_the_faster_at_every_size(times):
    first, second = times[:4], times[4:]
    at = float(crossing(SIZES, first, second))
    for rows, one, other in zip(SIZES, first, second, strict=True):
        if rows > at:
            assert other < one
    last = [rows for rows, one, other in zip(SIZES, first, second, strict=True) if one <= other]
    assert at >= max(last, default=0)


def test_the_cheapest_call_gives_way_to_the_cheapest_row_within_the_interval():
    rows = runs(QUICK, line(0.001, 1e-4, SIZES)) + runs(STRONG, line(0.021, 2e-6, SIZES))
    found = of(rows)
    assert [(span.transport, span.sizes) for span in found.spans] == [(QUICK, SIZES[:2]), (STRONG, SIZES[2:])]
    (one,) = found.crossings
    assert one.rows == pytest.approx(0.02 / 9.8e-5, rel=1e-6)
    assert one.interval[0] < one.rows < one.interval[1] < 1.1 * one.rows
    assert one.shown


def test_a_change_that_the_runs_do_not_show_is_none_and_the_tie_is_reported():
    rows = runs(QUICK, line(0.019, 2e-6, SIZES, (0.8, 1.0, 1.2))) + runs(
        STRONG, line(0.020, 1.9e-6, SIZES, (0.8, 1, 1.2))
    )
    found = of(rows)
    (span,) = found.spans
    assert (span.transport, span.sizes, found.crossings) == (QUICK, SIZES, ())
    assert span.ties == {STRONG: SIZES}
    (line_of_all,) = tables(rows)[0].rows
    assert line_of_all[2:] == (QUICK, "", "", f"{STRONG} at 1, 100, 10,000 and 1,000,000 rows")


def test_the_fewest_transports_are_named_that_are_fastest_everywhere():
    """By its medians, the middle one is the fastest at one size only, and there its interval overlaps the other two."""
    middle = {rows: [t * 1.5 for t in every] for rows, every in line(0.001, 1e-4, SIZES).items()}
    middle[100] = [0.0105, 0.0108, 0.0109]
    rows = runs(QUICK, line(0.001, 1e-4, SIZES)) + runs(STRONG, line(0.021, 2e-6, SIZES)) + runs(MIDDLE, middle)
    found = of(rows)
    assert [span.transport for span in found.spans] == [QUICK, STRONG]
    assert found.spans[0].ties == {MIDDLE: (100,)}


def test_only_exact_transports_win_and_a_single_one_is_called_so():
    wrong = [changed(row, fidelity="converted: a String") for row in runs(QUICK, line(0.001, 1e-4, SIZES))]
    rows = wrong + runs(STRONG, line(0.021, 2e-6, SIZES))
    assert [span.transport for span in of(rows).spans] == [STRONG]
    assert tables(rows)[0].rows[0][-1] == "the only exact one"
    bounds = [changed(row, origin="limit") for row in runs(QUICK, line(0.0001, 1e-9, SIZES))]
    assert [span.transport for span in of(bounds + rows).spans] == [STRONG]


def test_experiments_make_one_curve_and_a_transport_not_run_at_a_size_does_not_win_there():
    small, large = SIZES[:3], SIZES[3:]
    rows = runs(QUICK, line(0.001, 1e-6, small)) + runs(STRONG, line(0.021, 2e-6, small))
    rows += runs(STRONG, line(0.021, 2e-6, large), experiment="sizes_large")
    found = of(rows)
    assert [(span.transport, span.sizes) for span in found.spans] == [(QUICK, small), (STRONG, large)]
    assert found.crossings[0].rows is None
    assert [line[3] for line in tables(rows)[0].rows] == ["", "not known"]


def test_one_run_a_size_shows_no_crossing_and_its_medians_are_called_that():
    rows = runs(QUICK, line(0.001, 1e-4, SIZES, [1])) + runs(STRONG, line(0.021, 2e-6, SIZES, [1]))
    found = of(rows)
    assert [span.transport for span in found.spans] == [QUICK, STRONG]
    assert found.crossings[0].interval is None
    assert all(span.unsure for span in found.spans)
    table, costs = tables(rows)
    assert [line[3] for line in costs.rows] == ["", ""]  # too few runs to tell
    assert "? so few runs of a size show nothing: by the medians alone" in table.notes
    assert [line[2:5] for line in table.rows] == [(f"{QUICK} ?", "", ""), (f"{STRONG} ?", "not known", "")]


def test_a_loser_of_few_runs_takes_nothing_from_what_the_others_show():
    few = [one for one in runs(MIDDLE, line(0.1, 1e-3, SIZES)) if one.pass_number < 3]
    found = of(few + runs(QUICK, line(0.001, 1e-4, SIZES)) + runs(STRONG, line(0.021, 2e-6, SIZES)))
    assert [(span.transport, span.unsure) for span in found.spans] == [(QUICK, False), (STRONG, False)]
    assert found.crossings[0].shown


def test_the_tables_give_the_crossing_its_interval_and_the_costs_theirs():
    rows = runs(QUICK, line(0.001, 1e-4, SIZES)) + runs(STRONG, line(0.0208, 2e-6, SIZES))
    fastest, costs = tables(rows)
    assert costs.best == {(0, 2), (1, 4)}  # the lowest cost of a call, and of a row
    assert [line[2:4] for line in fastest.rows] == [(QUICK, ""), (STRONG, "200 rows")]
    assert [line[:3] for line in costs.rows] == [
        ("polars to Postgres", QUICK, "1.00"),
        ("polars to Postgres", STRONG, "20.8"),
    ]
    assert costs.rows[1][6] == "10,000"


def test_directions_that_differ_in_parameters_or_data_are_distinguished_and_not_mixed():
    rows = []
    for delay in (1, 50):
        extra = {"extra": f"; rtt_ms={delay}"}
        rows += runs(QUICK, line(0.001 * delay, 1e-6 * delay, SIZES), **extra)
        rows += runs(STRONG, line(0.021, 5e-6, SIZES), **extra)
    rows += runs(QUICK, line(0.001, 1e-6, SIZES), dataset="wide", experiment="sizes_large")
    subjects = {line[0] for line in tables(rows)[0].rows}
    assert subjects == {
        "polars to Postgres, analytics_metrics, 1 ms rtt",
        "polars to Postgres, analytics_metrics, 50 ms rtt",
        "polars to Postgres, wide",
    }


def test_a_suite_that_asks_for_no_crossings_has_none():
    rows = runs(QUICK, line(0.001, 1e-4, SIZES))
    found = curves(suite(), summarise(rows, ()))
    assert crossing_tables(found) == ([], [])


def test_transports_not_shown_to_cost_more_are_set_off_too_and_those_without_a_line_are_not():
    rows = runs(QUICK, line(0.019, 2e-6, SIZES, (0.8, 1.0, 1.2))) + runs(
        STRONG, line(0.020, 1e-5, SIZES, (0.8, 1, 1.2))
    )
    bent = line(0.0001, 2e-6, SIZES)
    bent[SIZES[2]] = [9.0] * 3
    for more in ([], runs(MIDDLE, bent)):
        _, costs = tables(rows + more)
        names = [line_of_one[1] for line_of_one in costs.rows]
        quick, strong = names.index(QUICK), names.index(STRONG)
        assert costs.best == {(quick, 2), (strong, 2), (quick, 4)}


OF_COSTS = (1, 100, 10_000, 100_000, 1_000_000)


def cost(rows):
    (one,) = costs(directions(summarise(rows, ()), ["sizes"]))
    return one


@given(st.floats(1e-5, 10), st.floats(1e-9, 1e-3))
def test_a_line_without_noise_is_found_as_it_is(fixed, marginal):
    found = fitted(OF_COSTS, [fixed + marginal * rows for rows in OF_COSTS])
    assert found == pytest.approx((fixed, marginal), rel=1e-3)


@given(st.floats(1e-4, 1), st.floats(1e-8, 1e-4), st.lists(st.floats(0.5, 2), min_size=5, max_size=5))
def test_the_line_is_the_most_likely_one_of_seconds_with_a_constant_coefficient_of_variation(fixed, marginal, factors):
    """No other line has a smaller deviance, by the formula of the gamma distribution."""
    times = np.array([(fixed + marginal * rows) * factor for rows, factor in zip(OF_COSTS, factors, strict=True)])

    def deviance(one, each):
        line = np.maximum(one + each * np.array(OF_COSTS), 1e-300)
        return 2 * np.sum((times - line) / line - np.log(times / line))

    ours = tuple(map(float, fitted(OF_COSTS, times)))
    assert min(ours) >= 0
    for start in ours, (fixed, marginal):
        units = np.maximum(start, (1e-9, 1e-15))
        best = minimize(lambda x, units=units: deviance(*np.exp(x) * units), (0, 0), method="Nelder-Mead")
        assert deviance(*ours) <= best.fun + 1e-3


def test_each_line_of_an_array_is_fitted_as_if_it_were_alone():
    many = [[0.1 + 1e-6 * rows for rows in OF_COSTS], [5.0 for _ in OF_COSTS], [1e-5 * rows for rows in OF_COSTS]]
    fixed, marginal = fitted(OF_COSTS, many)
    assert fixed == pytest.approx([0.1, 5.0, 0.0], abs=1e-9)
    assert marginal == pytest.approx([1e-6, 0.0, 1e-5], abs=1e-12)


@pytest.mark.long
def test_the_intervals_mostly_hold_the_true_costs_of_noisy_runs_and_shrink_with_the_noise():
    """The intervals are those of 20 made-up runs with 15 passes, of two costs each."""
    held, widths = 0, {0.2: 0.0, 0.02: 0.0}
    for noise in widths:
        for seed in range(10):
            source = np.random.default_rng(seed)
            times = {rows: (0.01 + 2e-6 * rows) * np.exp(source.normal(0, noise, 15)) for rows in OF_COSTS}
            one = cost(runs("postgres.a.write_polars_x", times))
            for interval, true in ((one.fixed_interval, 0.01), (one.marginal_interval, 2e-6)):
                held += interval[0] < true < interval[1]
            widths[noise] += one.fixed_interval[1] - one.fixed_interval[0]
    assert held >= 34
    assert widths[0.02] < widths[0.2] / 3


def test_what_is_no_line_says_how_far_off_it_is():
    straight = {rows: [0.01 + 2e-6 * rows] * 3 for rows in OF_COSTS}
    assert cost(runs("postgres.a.write_polars_x", straight)).off == pytest.approx(1, abs=1e-6)
    bent = straight | {OF_COSTS[-1]: [10.0] * 3}
    assert cost(runs("postgres.a.write_polars_x", bent)).off > 1.3


def test_half_of_the_rate_is_reached_where_the_rows_cost_as_much_as_the_call():
    one = cost(runs("postgres.a.write_polars_x", {rows: [0.02 + 4e-6 * rows] * 3 for rows in OF_COSTS}))
    assert one.half_rate_rows == pytest.approx(5_000)
    assert 5_000 / one.seconds(5_000) == pytest.approx(0.5 / one.marginal)
    free = cost(runs("postgres.a.write_polars_x", {rows: [0.02] * 3 for rows in OF_COSTS}))
    assert (free.marginal, free.half_rate_rows) == (0, None)


def test_fewer_than_four_sizes_are_no_curve_and_fewer_than_three_runs_have_no_interval():
    few = runs("postgres.a.write_polars_x", {rows: [0.1] * 3 for rows in OF_COSTS[:3]})
    assert costs(directions(summarise(few, ()), ["sizes"])) == []
    once = cost(runs("postgres.a.write_polars_x", {rows: [0.01 + 1e-6 * rows] for rows in OF_COSTS}))
    assert (once.fixed_interval, once.marginal_interval) == (None, None)
    assert once.fixed == pytest.approx(0.01)
