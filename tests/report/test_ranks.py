"""Ranks: only a case shown to be slower is behind another, without chains, and a control is behind no case."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.summary import Summary, is_slower, places, rank_notes, rank_shown


def case(seconds, error=0.01, **more):
    known = {"median_seconds": seconds, "log_mean": math.log(seconds), "log_error": error, "log_freedom": 6.0}
    return Summary(**(known | {"n": 3, "origin": "beyond", "operation": "read"} | more))


def single(median, **more):
    return case(median, log_error=None, n=1, **more)


CASES = st.lists(st.builds(case, st.integers(1, 60), st.sampled_from((0.01, 0.05, 0.3))), max_size=9)


def test_what_is_not_shown_to_differ_shares_a_rank_and_the_next_counts_all_before_it():
    cases = [case(1.0), case(1.01), case(1.5), case(1.51), case(3)]
    assert places(cases) == [(1, "="), (1, "="), (3, "="), (3, "="), (5, "")]


def test_a_chain_of_neighbours_that_tie_is_no_tie_of_its_ends():
    assert places([case(1.0), case(1.04), case(1.08)]) == [(1, "="), (1, "="), (2, "")]


def test_one_that_scatters_widely_is_not_shown_to_be_slower_than_the_first():
    assert places([case(1.0), case(1.4), case(2, 0.5)]) == [(1, "="), (2, ""), (1, "=")]


def test_in_a_larger_table_it_takes_more_to_be_shown_to_be_slower():
    assert places([case(1.0), case(1.05)])[1] == (2, "")
    assert places([case(1.0), case(1.05), *[case(9.0) for _ in range(40)]])[1] == (1, "=")


def test_cases_of_which_only_the_median_is_known_are_in_plain_order_and_marked():
    assert places([single(1.0), single(1.1), single(1.1), single(2.0)]) == [(1, "?"), (2, "?"), (2, "?"), (4, "?")]
    assert places([case(2), single(2.5), single(3.5)]) == [(1, ""), (2, "?"), (3, "?")]


def test_a_case_without_an_ok_run_has_no_rank():
    assert places([case(2), Summary(n=0)]) == [(1, ""), (None, "")]


def test_neither_a_control_nor_a_bound_has_a_rank_or_takes_a_place():
    control = case(1.1, origin="control")
    assert places([case(1.1, origin="limit"), case(3)]) == [(None, ""), (1, "")]
    assert places([case(1.1, origin="limit", operation="call")]) == [(1, "")]
    assert places([control, case(3), case(6)]) == [(None, ""), (1, ""), (2, "")]
    assert rank_shown(control) == "A/A"


@given(CASES)
def test_one_that_is_shown_to_be_slower_than_another_has_that_many_before_it(cases):
    for one, (rank, _) in zip(cases, places(cases), strict=True):
        assert rank == 1 + sum(is_slower(one, other, len(cases) - 1) for other in cases if other is not one)


@given(CASES, st.integers(-9, 9))
def test_ranks_do_not_change_with_the_unit(cases, power):
    scaled = [replace(c, median_seconds=c.took * 2.0**power, log_mean=c.log_mean + power * math.log(2)) for c in cases]
    assert places(scaled) == places(cases)


@given(CASES)
def test_one_is_first_and_ranks_are_not_above_the_number_of_cases(cases):
    found = [rank for rank, _ in places(cases)]
    assert all(1 <= rank <= len(cases) for rank in found)
    assert not cases or 1 in found


def test_the_same_case_several_times_always_ties():
    assert places([case(20) for _ in range(4)]) == [(1, "=")] * 4


@pytest.mark.parametrize(("rank", "tie", "text"), [(1, "", "1"), (2, "=", "2="), (3, "?", "3?"), (None, "", "")])
def test_a_rank_is_shown_with_its_mark(rank, tie, text):
    assert rank_shown(case(2, rank=rank, tie=tie)) == text


def test_only_marks_that_are_there_are_explained():
    assert rank_notes([Summary()]) == ()
    assert [note[0] for note in rank_notes([Summary(tie=mark) for mark in "?=="])] == ["=", "?"]
