"""summary.csv by figures worked out by hand, and ranks: only a case shown to be slower is behind another."""

import csv
import math
import statistics
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import coverage
from harness.model import Status
from harness.report.intervals import (
    UNKNOWN,
    Estimate,
    RunSpread,
    draws,
    draws_of,
    estimate,
    interval,
    middle,
    p_value,
    ratio,
    spread_of,
)
from harness.report.summary import (
    COLUMNS,
    Summary,
    factors,
    is_slower,
    places,
    rank_shown,
    summarise,
    write_summaries,
)
from harness.suites.suite import PublishedFigure
from tests.report.cases import changed, row, scan

FIGURES = [name for name in COLUMNS if name.split("_")[0] in ("mean", "std", "median", "min", "max", "peak", "ratio")]


def figure(**more):
    return (PublishedFigure("the way", **more),)


def test_statistics_are_those_worked_out_by_hand():
    rows = [
        row("a", seconds=0.5, connect_seconds=0.3, peak_rss_bytes=10, peak_anon_bytes=0, peak_file_bytes=5),
        row("a", seconds=2.0, connect_seconds=0.1, peak_rss_bytes=30, peak_anon_bytes=0, peak_file_bytes=1),
        row("a", seconds=1.0, connect_seconds=0.2, peak_rss_bytes=20, peak_anon_bytes=0, peak_file_bytes=None),
    ]
    (summary,) = summarise(rows, ())
    assert summary.n == 3
    assert summary.mean_seconds == pytest.approx(3.5 / 3)
    assert summary.std_seconds == pytest.approx(statistics.pstdev((0.5, 2.0, 1.0)))  # of the population
    assert (summary.median_seconds, summary.min_seconds, summary.max_seconds) == (1.0, 0.5, 2.0)
    assert summary.mean_rows_per_s == pytest.approx((2_000 + 500 + 1_000) / 3)
    assert summary.median_rows_per_s == 1_000
    assert (summary.min_rows_per_s, summary.max_rows_per_s) == (500, 2_000)
    assert (summary.median_connect_seconds, summary.median_cpu_seconds) == (0.2, 0.5)
    assert (summary.peak_rss_bytes, summary.peak_anon_bytes, summary.peak_file_bytes) == (30, 0, 5)


def test_an_interval_holds_the_median_and_a_single_run_has_one_where_others_say_how_much_it_scatters():
    rows = [row(name, seconds=value) for name in "abc" for value in (1.0, 1.1, 1.3)] + [row("once", seconds=9.0)]
    *_, once = found = summarise(rows, ())
    assert all(one.median_low_seconds < one.median_seconds < one.median_high_seconds for one in found)
    assert (once.rank, once.tie) == (4, "")
    (alone,) = summarise([row("once", seconds=9.0)], ())
    assert (alone.interval, alone.estimate, alone.tie) == (None, None, "?")


def of_runs(*paces, calls=2, **cases):
    """Runs of the lab of these paces; a case has its seconds in each, and a tuple its factor in each run."""
    return [
        row(name, seconds=pace * (of[number] if isinstance(of, tuple) else of) * scatter, run_id=f"run{number}")
        for number, pace in enumerate(paces)
        for name, of in cases.items()
        for scatter in (0.99, 1.01)[:calls]
    ]


def test_of_several_runs_each_counts_once_and_its_pace_counts_for_nothing():
    steady = {"a": 1.0, "b": 2.0, "c": 3.0, "d": (4.0, 4.4, 4.2)}
    (a, *_, d), (quiet, *_, _) = (
        summarise(of_runs(*paces, **steady), ()) for paces in ((1.0, 1.5, 0.7), (1.0, 1.0, 1.0))
    )
    assert (a.n, a.medians) == (6, {"run0": pytest.approx(1.0), "run1": pytest.approx(1.5), "run2": pytest.approx(0.7)})
    assert a.estimate.error == pytest.approx(quiet.estimate.error)
    assert a.estimate.error < d.estimate.error
    many = summarise(of_runs(1.0, 1.0, 1.0, calls=1, **steady), ())
    assert d.estimate.error == pytest.approx(many[-1].estimate.error)  # as many runs, each of one call
    assert factors(d, a) == pytest.approx([4.0, 4.2, 4.4])


def test_what_only_one_of_several_runs_has_has_no_part_in_their_paces():
    rows = of_runs(1.0, 2.0, 1.5, a=1.0, b=2.0, c=(3.0, 3.1, 3.2))
    with_one = summarise([*rows, *(row("once", seconds=9.0, run_id="run1") for _ in range(2))], ())
    assert [case.estimate.mean for case in with_one[:3]] == pytest.approx(
        [case.estimate.mean for case in summarise(rows, ())]
    )
    assert with_one[3].medians == {"run1": 9.0}


def test_transports_are_in_the_order_of_their_medians_and_not_of_their_means():
    steady = [row("steady", seconds=1.0)] * 3
    lucky = [row("lucky", seconds=value) for value in (0.9, 0.9, 9.0)]
    ordered = summarise([*steady, *lucky], ())
    assert [summary.transport for summary in ordered] == ["lucky", "steady"]
    assert [(summary.rank, summary.tie) for summary in ordered] == [(1, "="), (1, "=")]


@pytest.mark.parametrize(
    ("rows", "ordered"),
    [
        (  # Postgres and writes first
            [
                row("d", seconds=1.0, operation="read"),
                row("c", seconds=3.0),
                row("b", seconds=2.0),
                row("a", seconds=9.0, system="clickhouse", operation="read"),
            ],
            [
                ("matrix", "b", "rows=1000", 1),
                ("matrix", "c", "rows=1000", 2),
                ("matrix", "d", "rows=1000", 1),
                ("matrix", "a", "rows=1000", 1),
            ],
        ),
        (
            [scan("slow", 10, seconds=9.0), scan("quick", 10, seconds=4.0), scan("slow", 2, seconds=2.0)],
            [
                ("many_files", "parquet.slow.scan", "scale=2; files=2", 1),
                ("many_files", "parquet.quick.scan", "scale=2; files=10", 1),
                ("many_files", "parquet.slow.scan", "scale=2; files=10", 2),
            ],
        ),
        (
            [scan("a", 2, seconds=1.0, experiment=name) for name in ("also", "first", "second")],
            [(name, "parquet.a.scan", "scale=2; files=2", 1) for name in ("first", "second", "also")],
        ),
        (
            [row(name, seconds=1.0, operation=name) for name in ("query", "read", "create")],
            [("matrix", name, "rows=1000", 1) for name in ("create", "read", "query")],
        ),
    ],
    ids=["databases and operations", "numbers of parameters", "experiments as asked for", "operations of a store"],
)
def test_cases_are_in_the_order_of_their_tables_and_ranks_are_counted_within_one(rows, ordered):
    found = summarise(rows, (), ["first", "second"])
    assert [(one.experiment, one.transport, one.label, one.rank) for one in found] == ordered


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_transport_without_ok_runs_has_no_figures_and_no_rank_and_is_last(status):
    bad = row("a", status, seconds=None)
    first, last = summarise([bad, bad, row("b", seconds=5.0)], ())
    assert first.transport == "b"
    assert (last.n, last.rank, last.status, last.error) == (0, None, status, f"it was {status}")
    assert {getattr(last, name) for name in FIGURES} == {None}


def test_numbers_in_a_row_that_is_not_ok_are_never_counted():
    wrong = changed(row("a", Status.MISMATCH), seconds=0.001, rows_per_s=1e6)
    (summary,) = summarise([wrong, row("a", seconds=1.0)], ())
    assert (summary.n, summary.mean_seconds, summary.max_rows_per_s) == (1, 1.0, 1_000)


def test_mixed_statuses_are_counted_and_each_different_reason_given_once():
    rows = [row("a", seconds=1.0), row("a", Status.TIMEOUT), row("a", Status.ERROR), row("a", seconds=2.0)]
    (summary,) = summarise([*rows, row("a", Status.TIMEOUT)], ())
    assert summary.status == "ok 2, error 1, timeout 2"
    assert summary.error == "it was timeout | it was error"
    assert summary.n == 2


def test_a_run_that_does_not_know_its_extent_does_not_hide_that_of_the_others():
    rows = [scan("a", 2, Status.UNAVAILABLE, rows=None, bytes=None), scan("a", 2, seconds=1.0)]
    (summary,) = summarise(rows, ())
    assert (summary.rows, summary.bytes) == (2_000, 200_000_000)


def test_different_fidelities_are_all_named_once():
    rows = [row("a", seconds=1.0, fidelity=text) for text in ("exact", "converted: k (Object)", "exact")]
    assert summarise(rows, ())[0].fidelity == "converted: k (Object) | exact"


RATED = {"mean_seconds": 0.25, "mean_rows_per_s": 4_000.0}


@pytest.mark.parametrize(
    ("rows", "figures", "expected"),
    [
        ([row("a", seconds=0.5, published_row="the way")], RATED, (0.25, 4_000, 0.5)),
        ([row("a", Status.ERROR, published_row="the way")], RATED, (0.25, 4_000, None)),
        ([row("a", seconds=0.5)], RATED, (None, None, None)),
        (
            [row("a", seconds=value, published_row="the way") for value in (1.0, 1.0, 4.0)],
            {"mean_seconds": 5.0},
            (5.0, None, 2.5),
        ),
    ],
    ids=["ok", "failed", "beyond the article", "the author gives seconds alone"],
)
def test_the_published_figures_are_next_to_ours_with_the_ratio_of_means(rows, figures, expected):
    (summary,) = summarise(rows, figure(**figures))
    assert (
        summary.published_mean_seconds,
        summary.published_mean_rows_per_s,
        summary.ratio_to_published,
    ) == expected


@pytest.mark.parametrize(
    ("conditions", "applies"),
    [
        ({}, True),
        ({"rows": 1_000}, True),
        ({"rows": 10_000}, False),
        ({"experiment": "matrix"}, True),
        ({"experiment": "other"}, False),
        ({"parameters": {"rows": "1000"}}, True),
        ({"parameters": {"rows": "10"}}, False),
        ({"parameters": {"rows": "1000", "files": "2"}}, False),
        ({"bytes": 1_000}, False),  # of another size than any case: it is in a separate table
    ],
)
def test_a_figure_is_next_to_cases_of_its_own_conditions_only(conditions, applies):
    published = figure(mean_seconds=1.0, **conditions)
    (summary,) = summarise([row("a", seconds=0.5, published_row="the way")], published)
    assert summary.published_mean_seconds == (1.0 if applies else None)


def test_the_file_has_missing_figures_empty_and_keeps_the_authors_figures_as_printed(tmp_path):
    published = figure(mean_seconds=0.0421, mean_rows_per_s=2_375_691.94)
    rows = [row("a", seconds=0.5, published_row="the way", peak_rss_bytes=0), row("b", Status.ERROR)]
    write_summaries(tmp_path / "summary.csv", summarise(rows, published))
    with (tmp_path / "summary.csv").open(encoding="utf-8") as file:
        ours, failed = csv.DictReader(file)
    assert list(ours) == list(COLUMNS)
    assert ours["published_mean_rows_per_s"] == "2375691.94"
    assert (ours["peak_rss_bytes"], ours["peak_anon_bytes"]) == ("0", "")
    assert {failed[name] for name in FIGURES} == {""}
    assert (failed["rank"], failed["n"]) == ("", "0")


def case(seconds, error=0.01, **more):
    known = {"median_seconds": seconds, "log_mean": math.log(seconds), "log_error": error, "log_freedom": 6.0}
    return Summary(**(known | {"n": 3, "origin": "beyond", "operation": "read"} | more))


def single(median, **more):
    return case(median, log_error=None, n=1, **more)


CASES = st.lists(st.builds(case, st.integers(1, 60), st.sampled_from((0.01, 0.05, 0.3))), max_size=9)


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([case(1.0), case(1.01), case(1.5), case(1.51), case(3)], [(1, "="), (1, "="), (3, "="), (3, "="), (5, "")]),
        ([case(1.0), case(1.04), case(1.08)], [(1, "="), (1, "="), (2, "")]),
        ([case(1.0), case(1.4), case(2, 0.5)], [(1, "="), (2, ""), (1, "=")]),
        ([case(1.0), case(1.05)], [(1, ""), (2, "")]),
        ([case(1.0), case(1.05), *(case(9.0) for _ in range(40))], [(1, "="), (1, "="), *[(3, "=")] * 40]),
        ([single(1.0), single(1.1), single(1.1), single(2.0)], [(1, "?"), (2, "?"), (2, "?"), (4, "?")]),
        ([case(2), single(2.5), single(3.5)], [(1, ""), (2, "?"), (3, "?")]),
        ([case(1.1, origin="limit"), case(3)], [(None, ""), (1, "")]),
        ([case(1.1, origin="limit", operation="call")], [(1, "")]),
        ([case(1.1, origin="control"), case(3), case(6)], [(None, ""), (1, ""), (2, "")]),
    ],
    ids=[
        *("ties share a rank", "a chain of ties is no tie of its ends", "one that scatters widely", "a small table"),
        *("a larger table takes more", "medians alone are in plain order", "an estimate before medians alone"),
        *("a bound", "a table of bounds alone", "a control"),
    ],
)
def test_a_rank_counts_what_is_shown_to_be_faster_and_is_shared_by_what_is_not_shown_to_differ(cases, expected):
    assert places(cases) == expected


@given(CASES)
def test_one_that_is_shown_to_be_slower_than_another_has_that_many_before_it(cases):
    for one, (rank, _) in zip(cases, places(cases), strict=True):
        assert rank == 1 + sum(is_slower(one, other, len(cases) - 1) for other in cases if other is not one)


@given(CASES, st.integers(-9, 9))
def test_ranks_do_not_change_with_the_unit(cases, power):
    scaled = [replace(c, median_seconds=c.took * 2.0**power, log_mean=c.log_mean + power * math.log(2)) for c in cases]
    assert places(scaled) == places(cases)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (case(2, rank=1), "1"),
        (case(2, rank=2, tie="="), "2="),
        (case(2, rank=3, tie="?"), "3?"),
        (case(2, rank=None), ""),
        (case(2, origin="control"), "A/A"),
    ],
)
def test_a_rank_is_shown_with_its_mark(one, text):
    assert rank_shown(one) == text


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


def test_an_interval_wider_than_floats_are_has_ends_all_the_same():
    low, high = interval(estimate([1e-9, 6e5], UNKNOWN), 1000)
    assert 0 < low < high < math.inf


def test_a_single_run_has_an_interval_where_the_others_of_its_run_say_how_much_it_scatters():
    low, high = interval(estimate([2.0], USUAL))
    assert high / 2 == pytest.approx(2 / low) == pytest.approx(math.exp(2.776445 * 0.1))  # t of 4 degrees of freedom


@few_examples
@given(SAMPLE, st.integers(-8, 8))
def test_an_interval_scales_with_the_unit(values, power):
    low, high = interval(estimate(values, USUAL))
    scaled = interval(estimate([value * 2.0**power for value in values], USUAL))
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
