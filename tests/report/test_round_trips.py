"""How many round trips a transport waits for: the slope of its time over the round trip."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.conclusions import counted, round_trip_tables, slope
from tests.report import cases

_TRIPS_MS = (0, 1, 10, 50)


def run(transport: str, rtt_ms: int, seconds: float, mbit_per_s: int = 0, **more: object) -> object:
    parameters = f"rows=1000; rtt_ms={rtt_ms}; mbit_per_s={mbit_per_s}"
    return cases.row(transport, seconds=seconds, experiment="networks", parameters=parameters, **more)


@given(st.floats(0.001, 10), st.integers(1, 100))
def test_a_line_is_found_whatever_the_server_takes(fixed: float, trips: int) -> None:
    found = slope([(rtt, fixed + trips * rtt) for rtt in (0.0, 0.001, 0.01, 0.05) for _ in range(3)])
    assert found.value == pytest.approx(trips, abs=1e-6)
    assert found.low - 1e-6 <= found.value <= found.high + 1e-6


def test_a_disturbed_run_does_not_move_it() -> None:
    points = [(rtt / 1e3, 0.1 + 2 * rtt / 1e3) for rtt in _TRIPS_MS for _ in range(3)]
    assert slope([*points[:-1], (0.05, 3.0)]).value == pytest.approx(2, abs=0.01)


def test_the_interval_holds_what_is_true_of_noisy_runs() -> None:
    drawn = random.Random(1)
    held = 0
    for _ in range(100):
        found = slope([(rtt / 1e3, 0.1 + 3 * rtt / 1e3 + drawn.gauss(0, 0.01)) for rtt in _TRIPS_MS for _ in range(3)])
        held += found.low <= 3 <= found.high
    assert held >= 88


@pytest.mark.parametrize(
    ("trips", "head"),
    [((0, 1, 10), "interval"), ((0, 1, 10, 50), "interval"), ((0, 0, 1, 10), "interval"), ((0, 1, 10, 50, 90), "95 %")],
)
def test_an_interval_is_called_95_percent_where_so_many_runs_can_tell_that(trips: tuple[int, ...], head: str) -> None:
    """Of 3 runs chance alone puts all in order in 2 of 6 cases, of 4 in 2 of 24, of 5 in 2 of 120."""
    (table,) = round_trip_tables([run("a.b.c", rtt, 0.5 + rtt, connect_seconds=0.1 + rtt) for rtt in trips])
    assert table.head == ("transport", "operation", "of a call", head, "of connecting", head)


def test_round_trips_are_counted_for_calls_and_connecting_without_a_limit_of_the_rate() -> None:
    rows = [run("a.b.c", rtt, 0.5 + 2 * rtt / 1e3, connect_seconds=0.01 + 4 * rtt / 1e3) for rtt in _TRIPS_MS]
    rows += [run("a.b.c", rtt, 9.0 - rtt / 1e3, mbit_per_s=100) for rtt in _TRIPS_MS]
    (one,) = counted(rows)
    assert one.call.value == pytest.approx(2)
    assert one.connecting is not None
    assert one.connecting.value == pytest.approx(4)
    (table,) = round_trip_tables(rows)
    assert table.title == "Round trips, 1,000 rows"
    assert table.rows == (("a.b.c", "write", "2.0", "2.0 to 2.0", "4.0", "4.0 to 4.0"),)


def test_two_different_round_trips_tell_nothing_nor_do_runs_without_links() -> None:
    assert counted([run("a.b.c", rtt, 1.0) for rtt in (0, 10)]) == []
    assert round_trip_tables([cases.row("a.b.c", seconds=1.0)]) == []
