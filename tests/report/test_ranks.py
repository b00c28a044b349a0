"""Ranks: only what the intervals separate is behind another, without chains, and a control is behind nobody."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.intervals import overlap
from harness.report.summary import Summary, places, rank_notes, rank_shown


def case(low, median, high, **more):
    ends = {"median_low_seconds": low, "median_seconds": median, "median_high_seconds": high}
    return Summary(**(ends | {"n": 3, "origin": "beyond", "operation": "read"} | more))


def single(median, **more):
    return case(None, median, None, n=1, **more)


CASES = st.lists(st.lists(st.integers(1, 60), min_size=3, max_size=3).map(lambda ends: case(*sorted(ends))), max_size=9)


def test_what_no_interval_separates_shares_a_rank_and_the_next_counts_all_before_it():
    cases = [case(1.0, 1.1, 1.2), case(1.1, 1.2, 1.3), case(1.4, 1.5, 1.6), case(1.5, 1.6, 1.7), case(2, 3, 4)]
    assert places(cases) == [(1, "="), (1, "="), (3, "="), (3, "="), (5, "")]


def test_a_chain_of_neighbours_that_overlap_is_no_tie_of_its_ends():
    cases = [case(1, 2, 3), case(2.5, 3.5, 4.5), case(4, 5, 6)]
    assert places(cases) == [(1, "="), (1, "="), (2, "")]


def test_one_that_scatters_widely_is_not_shown_to_be_slower_than_the_first():
    cases = [case(1.0, 1.1, 1.2), case(1.3, 1.4, 1.5), case(0.9, 2, 9)]
    assert places(cases) == [(1, "="), (2, ""), (1, "=")]


def test_fewer_than_three_runs_stand_for_their_median_in_plain_order_and_are_marked():
    assert places([single(1.0), single(1.1), single(1.1), single(2.0)]) == [(1, "?"), (2, "?"), (2, "?"), (4, "?")]
    assert places([case(1, 2, 3), single(2.5), single(3.5)]) == [(1, "="), (1, "?"), (3, "?")]


def test_a_case_without_an_ok_run_has_no_rank():
    assert places([case(1, 2, 3), case(None, None, None, n=0)]) == [(1, ""), (None, "")]


def test_neither_a_control_nor_a_bound_has_a_rank_or_takes_a_place():
    control = case(1, 1.1, 1.2, origin="control")
    assert places([case(1, 1.1, 1.2, origin="limit"), case(2, 3, 4)]) == [(None, ""), (1, "")]
    assert places([case(1, 1.1, 1.2, origin="limit", operation="call")]) == [(1, "")]
    assert places([control, case(2, 3, 4), case(5, 6, 7)]) == [(None, ""), (1, ""), (2, "")]
    assert rank_shown(control) == "A/A"


@given(CASES)
def test_two_of_one_rank_always_overlap_and_one_wholly_below_is_always_ahead(cases):
    ranked = list(zip(cases, (rank for rank, _ in places(cases)), strict=True))
    for one, rank in ranked:
        for other, behind in ranked:
            ends = [one.interval, other.interval]
            assert rank != behind or overlap(*ends)
            assert rank < behind or not ends[0][1] < ends[1][0]


@given(CASES, st.integers(-9, 9))
def test_ranks_do_not_change_with_the_unit(cases, power):
    names = ("median_low_seconds", "median_seconds", "median_high_seconds")
    scaled = [replace(c, **{name: getattr(c, name) * 2.0**power for name in names}) for c in cases]
    assert places(scaled) == places(cases)


@given(CASES)
def test_the_smallest_median_is_first_and_ranks_are_not_above_the_number_of_cases(cases):
    found = [rank for rank, _ in places(cases)]
    assert all(1 <= rank <= len(cases) for rank in found)
    if cases:
        assert found[min(range(len(cases)), key=lambda place: cases[place].took)] == 1


@given(CASES, st.integers(2, 5))
def test_the_same_case_several_times_always_ties(cases, times):
    same = case(10, 20, 30)
    found = places([*cases, *[replace(same) for _ in range(times)]])[len(cases) :]
    assert len(set(found)) == 1
    assert found[0][1] == "="


@pytest.mark.parametrize(("rank", "tie", "text"), [(1, "", "1"), (2, "=", "2="), (3, "?", "3?"), (None, "", "")])
def test_a_rank_is_shown_with_its_mark(rank, tie, text):
    assert rank_shown(case(1, 2, 3, rank=rank, tie=tie)) == text


def test_only_marks_that_are_there_are_explained():
    assert rank_notes([Summary()]) == ()
    assert [note[0] for note in rank_notes([Summary(tie=mark) for mark in "?=="])] == ["=", "?"]
