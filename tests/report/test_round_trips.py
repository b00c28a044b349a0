"""How many round trips a transport waits for: the slope of its time over the round trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.conclusions import round_trip_tables, slope
from harness.report.intervals import UNKNOWN, RunSpread
from tests.report import cases

_TRIPS_MS = (0, 1, 10, 50)


def run(transport: str, rtt_ms: int, seconds: float, mbit_per_s: int = 0, **more: object) -> object:
    parameters = f"rows=1000; rtt_ms={rtt_ms}; mbit_per_s={mbit_per_s}"
    return cases.row(transport, seconds=seconds, experiment="networks", parameters=parameters, **more)


@pytest.mark.long
@given(st.floats(0.001, 10), st.integers(1, 100))
def test_a_line_is_found_whatever_the_server_takes(fixed: float, trips: int) -> None:
    found = slope({rtt: [fixed + trips * rtt] * 3 for rtt in (0.0, 0.001, 0.01, 0.05)}, UNKNOWN, "a")
    assert found.value == pytest.approx(trips, rel=1e-3)
    assert found.interval[0] <= found.value <= found.interval[1]


def test_a_disturbed_run_does_not_move_it_but_widens_its_interval() -> None:
    points = {rtt / 1e3: [0.1 + 2 * rtt / 1e3] * 3 for rtt in _TRIPS_MS}
    disturbed = points | {0.05: [*points[0.05][:2], 3.0]}
    still, moved = (slope(each, RunSpread(0.02, 4.0), "a") for each in (points, disturbed))
    assert moved.value == pytest.approx(2, abs=0.01)
    assert moved.interval[1] > still.interval[1]


def test_few_runs_that_say_nothing_of_their_scatter_have_no_interval() -> None:
    (table,) = round_trip_tables([run("a.b.c", rtt, 0.5 + rtt, connect_seconds=0.1 + rtt) for rtt in (0, 1, 10)])
    assert table.head == ("transport", "operation", "of a call", "95 %", "of connecting", "95 %")
    assert table.rows[0][3] == "too few runs to tell"


def test_round_trips_are_counted_for_calls_and_connecting_without_a_limit_of_the_rate() -> None:
    rows = [run("a.b.c", rtt, 0.5 + 2 * rtt / 1e3, connect_seconds=0.01 + 4 * rtt / 1e3) for rtt in _TRIPS_MS * 2]
    rows += [run("a.b.c", rtt, 9.0 - rtt / 1e3, mbit_per_s=100) for rtt in _TRIPS_MS]
    (table,) = round_trip_tables(rows)
    assert table.title == "Round trips, 1,000 rows"
    assert table.rows == (("a.b.c", "write", "2.0", "2.0 to 2.0", "4.0", "4.0 to 4.0"),)


def test_two_different_round_trips_tell_nothing_nor_do_runs_without_links() -> None:
    assert round_trip_tables([run("a.b.c", rtt, 1.0) for rtt in (0, 10)]) == []
    assert round_trip_tables([cases.row("a.b.c", seconds=1.0)]) == []
