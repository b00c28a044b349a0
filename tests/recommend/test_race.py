"""The race as rules: the transports that go on or drop out, and how seldom the wrong one does."""

import math
import random
from collections import defaultdict
from itertools import chain, pairwise
from statistics import median

import pytest

from harness.recommend.budget import FEWEST, Prices
from harness.recommend.race import DEFAULT_SPREAD, ENOUGH, LAST_PASSES, MOST_PASSES, Race
from harness.report.intervals import spread_of
from harness.results import runs_csv
from harness.settings import ROOT


def ran(race: Race, seconds: dict[str, float], spread: float = 0.0, seed: int = 1) -> list[tuple[str, int, int]]:
    """Run a race in which each transport takes about its given seconds for 100,000 rows; return its turns."""
    drawn, turns = random.Random(seed), []
    for turn in chain.from_iterable(race.passes()):
        turns.append((turn.transport, turn.rows, turn.number))
        race.tell(turn, seconds[turn.transport] * turn.rows / 100_000 * math.exp(drawn.gauss(0, spread)))
    return turns


def test_a_slow_one_is_out_after_the_first_slice_and_those_that_are_near_have_seven_passes() -> None:
    race = Race(["a", "b", "slow"], 100_000, 1)
    turns = ran(race, {"a": 1.0, "b": 1.1, "slow": 9.0})
    assert race.out == {"slow": "9.0 times as slow as the fastest of 10,000 rows"}
    assert {(name, rows): number for name, rows, number in turns} == {
        ("a", 10_000): 2,
        ("b", 10_000): 2,
        ("slow", 10_000): 1,
        ("a", 100_000): LAST_PASSES,
        ("b", 100_000): LAST_PASSES,
    }
    assert race.contenders == ["a", "b"]


@pytest.mark.parametrize(
    ("rows", "stages"),
    [
        (300, [300]),
        (19_999, [19_999]),
        (20_000, [10_000, 20_000]),
        (150_000, [10_000, 150_000]),
        (1_000_000, [10_000, 100_000, 1_000_000]),
    ],
)
def test_slices_are_much_smaller_than_all_rows(rows: int, stages: list[int]) -> None:
    assert Race(["a"], rows, 1).stages == stages


def test_a_single_transport_needs_no_slice() -> None:
    assert {rows for _, rows, _ in ran(Race(["a"], 1_000_000, 1), {"a": 1.0})} == {1_000_000}


def test_passes_are_whole_and_shuffled() -> None:
    names = list("abcdef")
    turns = ran(Race(names, 5_000, 1), dict.fromkeys(names, 1.0))
    orders = [[name for name, _, number in turns if number == one] for one in range(1, LAST_PASSES + 1)]
    assert all(sorted(order) == names for order in orders)
    assert len(set(map(tuple, orders))) > 1


def test_the_first_pass_begins_with_the_likely_ones_and_all_others_are_shuffled() -> None:
    names = [f"t{place:02d}" for place in range(20)]
    turns = ran(Race(names, 5_000, 1, likely=["t07", "elsewhere", "t03"]), dict.fromkeys(names, 1.0))
    first, second = ([name for name, _, number in turns if number == one] for one in (1, 2))
    assert first[:2] == ["t07", "t03"]
    assert sorted(first) == names
    assert first[2:] != sorted(first[2:])
    assert second[:2] != ["t07", "t03"]


def test_the_first_pass_goes_on_while_there_is_time_however_long_its_first_run_took() -> None:
    left, many = [40.0], 0
    race = Race([f"t{place:02d}" for place in range(44)], 300_000, 1, left=lambda: left[0])
    for turn in chain.from_iterable(race.passes()):
        if not race.affords(turn):
            break
        cost = 3.0 if many else 25.0  # it waits for tables
        left[0] -= cost
        many += 1
        race.tell(turn, 0.2, cost)
    assert many == 6


def test_a_failure_is_out_in_any_transport_and_has_no_time() -> None:
    race = Race(["a", "b", "usual"], 5_000, 1, frozenset({"usual"}))
    for turn in chain.from_iterable(race.passes()):
        if turn.transport in ("a", "usual") and turn.number == 2:
            race.fail(turn, "mismatch: it changed something")
        else:
            race.tell(turn, 1.0)
    assert race.out == dict.fromkeys(("a", "usual"), "mismatch: it changed something")
    assert race.told[5_000].keys() == {"b"}
    assert race.kept == frozenset()


def test_a_usual_one_that_is_out_runs_on_for_its_figure_but_not_where_it_is_very_slow() -> None:
    race = Race(["a", "usual", "worst"], 100_000, 1, frozenset({"usual", "worst"}))
    ran(race, {"a": 1.0, "usual": 9.0, "worst": 100.0})
    assert {rows: len(times["usual"]) for rows, times in race.told.items()} == {10_000: 1, 100_000: 3}
    assert {rows: len(times.get("worst", ())) for rows, times in race.told.items()} == {10_000: 1, 100_000: 0}
    assert race.leader(100_000) == "a"


def test_the_same_race_told_the_same_goes_the_same_way() -> None:
    names = [f"t{place}" for place in range(20)]
    seconds = {name: 1 + place / 10 for place, name in enumerate(names)}
    first, second = (ran(Race(names, 250_000, 7), seconds, 0.1) for _ in range(2))
    assert first == second


def test_it_goes_on_only_while_a_transport_could_be_much_faster() -> None:
    wide, narrow = (Race(["a", "b", "c"], 5_000, 1) for _ in range(2))
    ran(wide, {"a": 1.0, "b": 1.0, "c": 1.0}, 0.6)
    ran(narrow, {"a": 1.0, "b": 1.1, "c": 1.1}, 0.001)
    assert [len(race.told[5_000]["a"]) for race in (wide, narrow)] == [MOST_PASSES, LAST_PASSES]


def test_after_the_seventh_pass_only_transports_run_that_could_still_be_much_faster() -> None:
    race = Race(["leader", "wild", "steady"], 5_000, 1)
    for turn in chain.from_iterable(race.passes()):
        wild = 2.4 if turn.number % 2 else 0.6
        race.tell(turn, {"leader": 1.0, "wild": wild, "steady": 1.1}[turn.transport])
    assert {name: len(times) for name, times in race.told[5_000].items()} == {
        "leader": MOST_PASSES,
        "wild": MOST_PASSES,
        "steady": LAST_PASSES,
    }


class Clock:
    """A race of equal transports against a clock: a run costs half a second more than its call, many cost more.

    `beside_a_million` are the seconds that come with a call of a million rows, such as for verifying them.
    """

    def __init__(self, many: int, rows: int, call: float, budget: float, beside_a_million: float = 0.0) -> None:
        self.left, drawn = budget, random.Random(1)
        self.race = Race([f"t{place:02d}" for place in range(many)], rows, 1, left=lambda: self.left)
        self.fields: list[tuple[int, int]] = []  # rows and runs of each pass
        for turns in self.race.passes():
            self.fields += [(turns[0].rows, len(turns))] if turns else []
            for turn in turns:
                seconds = call * turn.rows / rows * math.exp(drawn.gauss(0, 0.02))
                cost = seconds + 0.5 + beside_a_million * turn.rows / 1_000_000
                assert self.race.affords(turn)
                self.left -= cost
                self.race.tell(turn, seconds, cost)


def test_where_passes_of_all_do_not_fit_the_field_is_cut_by_and_by_and_finalists_have_their_passes_in_time() -> None:
    clock = Clock(46, 100_000, 0.1, 100.0)
    on_all_rows = [many for rows, many in clock.fields if rows == 100_000]
    assert clock.left >= 0
    scouts = on_all_rows.pop(0)
    on_all_rows[0] += scouts
    assert (scouts, on_all_rows[0]) == (FEWEST, 46)
    assert on_all_rows[:LAST_PASSES] == sorted(on_all_rows[:LAST_PASSES], reverse=True)
    assert max(before / after for before, after in pairwise(on_all_rows[:LAST_PASSES])) < 2
    assert FEWEST <= len(clock.race.contenders) < 46
    assert clock.race.finished
    assert clock.race.out == {}
    assert len(clock.race.behind) == 46 - len(clock.race.contenders)


def test_what_a_run_on_all_rows_costs_next_to_its_call_is_found_out_before_many_have_run() -> None:
    clock = Clock(46, 1_000_000, 1.0, 170.0, beside_a_million=2.0)
    assert clock.left >= 0
    assert clock.race.finished


def test_one_run_that_waits_for_the_tables_does_not_make_all_runs_look_dear() -> None:
    prices = Prices()
    for name in "abcd":
        prices.note(name, 10_000, 0.1, 0.6)
    for name, beside in (("a", 5.0), ("b", 0.6), ("c", 0.6)):
        prices.note(name, 100_000, 1.0, 1.0 + beside)
    assert prices.of("d", 100_000) == pytest.approx(1.0 + 0.6)
    assert prices.of("a", 100_000) == pytest.approx(1.0 + 2 * 0.6)


def test_none_is_left_behind_where_all_passes_fit() -> None:
    assert Clock(46, 100_000, 0.1, 400.0).race.behind == set()
    assert Clock(46, 100_000, 0.1, math.inf).race.behind == set()


def test_the_budget_leaves_the_slowest_behind_and_one_later_shown_to_be_slower_is_out() -> None:
    left, left_behind = [60.0], set[str]()
    race = Race([f"t{place:02d}" for place in range(40)], 5_000, 1, left=lambda: left[0])
    for turns in race.passes():
        left_behind |= race.behind
        for turn in turns:
            seconds = 0.1 * 1.02 ** int(turn.transport[1:])
            left[0] -= seconds + 0.5
            race.tell(turn, seconds, seconds + 0.5)
    assert race.behind
    assert max(race.contenders) < min(race.behind)
    assert left_behind & race.out.keys()
    assert race.behind.isdisjoint(race.out)


def test_a_slice_whose_pass_is_no_cheaper_than_one_of_all_rows_has_one_pass_or_none() -> None:
    cheap, dear = Clock(10, 300_000, 20.0, math.inf), Clock(10, 300_000, 0.2, math.inf)
    assert [rows for rows, _ in cheap.fields[:5]] == [10_000, 10_000, 100_000, 100_000, 300_000]
    assert [rows for rows, _ in dear.fields[:2]] == [10_000, 300_000]


def after_finalists(many: int, budget: float, fails: bool = False) -> tuple[Race, float]:
    """Run a race whose leader is soon decided, on slices and all rows; return it and the rest of its budget."""
    left = [budget]
    race = Race([f"t{place:02d}" for place in range(many)], 100_000, 1, left=lambda: left[0])
    for turns in race.passes():
        for turn in turns:
            place = int(turn.transport[1:])
            assert race.affords(turn)
            seconds = (0.1 if place < 2 else 0.16 if place < 4 else 0.3) * turn.rows / 100_000
            left[0] -= seconds + 2.0
            if fails and turn.rows == 100_000 and place > 3:
                race.fail(turn, "mismatch: it changed something")
            else:
                race.tell(turn, seconds, seconds + 2.0)
    return race, left[0]


def test_transports_left_behind_run_on_all_rows_while_there_is_time_and_are_unknown_otherwise() -> None:
    race, left = after_finalists(20, 145.0)
    timed = {name for name, times in race.told[100_000].items() if times}
    assert {f"t{place:02d}" for place in range(20)} - timed <= race.behind
    assert 0 <= left < 20
    assert len(race.behind) < 3


def test_one_that_fails_where_it_runs_at_last_is_out_and_is_not_asked_again() -> None:
    race, left = after_finalists(20, 140.0, fails=True)
    assert left >= 0
    assert not race.behind & race.out.keys()


SHORTEST = 0.003  # seconds: below, the scatter is that of the machine's clock


def test_the_usual_spread_is_near_that_of_the_reference_run() -> None:
    runs: dict[str, dict[object, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in runs_csv.load(ROOT / "results/reference/matrix/runs.csv"):
        if row.ok and row.took > SHORTEST:
            runs[row.run_id][row.case].append(row.took)
    found = [spread_of(cases.values()) for cases in runs.values()]
    assert min(map(len, runs.values())) > 300
    prior = median(one.prior for one in found)
    assert DEFAULT_SPREAD.prior / 2 < prior < DEFAULT_SPREAD.prior * 2  # too large costs passes, too small errs
    assert DEFAULT_SPREAD.freedom < max(one.freedom for one in found)  # fewer only widen the intervals


def test_a_race_goes_by_its_own_scatter_once_there_are_enough_runs() -> None:
    race = Race([str(number) for number in range(ENOUGH)], 5_000, 1)
    assert race.spread == DEFAULT_SPREAD
    race.told = {5_000: {name: [1.0, 1.01 + int(name) / 1e4] for name in race.transports}}
    assert race.spread != DEFAULT_SPREAD
    assert race.spread.prior < 0.02
