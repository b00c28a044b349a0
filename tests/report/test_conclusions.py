"""Sentences of a report: ratios with intervals, the A/A control, round trips, and no difference that is not shown."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Status
from harness.report import machine, markdown
from harness.report.conclusions import conclusions, control_sentences, ratio, round_trip_tables, slope
from harness.report.intervals import UNKNOWN, RunSpread
from harness.report.sections import sections
from harness.report.summary import summarise
from harness.suites.suite import Comparison, Sweep, Versus
from tests.report import cases
from tests.report.cases import changed, environment, row, suite

S3 = Comparison("S3", "storage", {"place": "s3"}, {"place": "local"})


def runs(place, seconds, transport="elt.duckdb.transform", rows=100, experiment="storage"):
    return [
        row(
            transport,
            seconds=value,
            experiment=experiment,
            parameters=f"rows={rows}; place={place}",
            **{"pass": number},
        )
        for number, value in enumerate(seconds, start=1)
    ]


def test_a_ratio_is_that_of_geometric_means_with_its_interval():
    found = ratio([1.1, 2.2, 3.6], [1.0, 2.0, 3.0], RunSpread(0.1, 4.0))
    assert found.value == pytest.approx((1.1 * 2.2 * 3.6 / 6) ** (1 / 3))
    assert found.interval[0] < found.value < found.interval[1]
    assert (found.n, found.differs) == (3, False)


@pytest.mark.parametrize(
    ("calls", "published", "said"),
    [
        (
            runs("s3", [1.069, 1.07, 1.071]) + runs("local", [0.999, 1.0, 1.001]),
            "",
            "elt.duckdb.transform, 100 rows: S3 took 7 % longer: "
            "1.07 times as long (95 % interval 1.07 to 1.07, 3 passes)",
        ),
        (
            [
                changed(one, run_id=run, seconds=pace * one.seconds, **{"pass": number})
                for number, (run, pace) in enumerate((("a", 1.0), ("b", 1.3), ("c", 0.8)), start=1)
                for one in runs("s3", [1.08, 1.06]) + runs("local", [0.99, 1.01])
            ],
            "",
            "S3 took 7 % longer: 1.07 times as long (95 % interval 1.07 to 1.07, 3 runs)",
        ),
        (
            runs("s3", [1.5]) + runs("local", [1.0]),
            "",
            "S3 took 1.50 times as long; 1 pass cannot say how sure that is",
        ),
        (runs("s3", [2.0]) + runs("local", [1.0]), "7 % longer", "how sure that is; published: 7 % longer"),
    ],
    ids=["a difference in percent", "each run of the lab counts once", "a single pass", "published"],
)
def test_a_comparison_says_how_much_longer_how_sure_that_is_and_what_the_author_found(calls, published, said):
    (line,) = conclusions(calls, [replace(S3, published=published)])
    assert line.endswith(said)


def test_what_the_interval_does_not_show_is_no_difference():
    (line,) = conclusions(runs("s3", [1.0, 1.2, 0.9]) + runs("local", [1.1, 1.0, 1.0]), [S3])
    assert "no difference shown: S3 took" in line


def test_only_runs_that_are_ok_count_and_each_way_and_size_has_its_own_sentence():
    rows = runs("s3", [2.0, 2.0, 9.0]) + runs("local", [1.0, 1.0, 1.0])
    rows[2] = changed(rows[2], status=Status.MISMATCH)
    rows += runs("s3", [3.0], rows=2_000) + runs("local", [1.0], rows=2_000)
    rows += runs("s3", [3.0], "elt.polars.transform") + runs("local", [1.0], "elt.polars.transform")
    rows += runs("s3", [3.0], "elt.chdb.transform") + runs("s3", [9.0], experiment="another")
    lines = conclusions(rows, [S3])
    assert [line.partition(":")[0] for line in lines] == [
        "elt.duckdb.transform, 100 rows",
        "elt.duckdb.transform, 2,000 rows",
        "elt.polars.transform, 100 rows",
    ]
    assert "2.00 times as long" in lines[0]
    assert "2 passes" in lines[0]


SWEEP = Sweep("threads", "threads")


def sweep(curve, source="table", figure=None):
    """Runs of a query: the seconds of its passes by the number of threads."""
    return [
        row(
            "tuning.duckdb.group_by",
            seconds=seconds,
            experiment="threads",
            parameters=f"source={source}; threads={threads}",
            details=figure and f"other=1; {figure}={seconds}",
            **{"pass": number},
        )
        for threads, passes in curve.items()
        for number, seconds in enumerate(passes, start=1)
    ]


def test_the_fastest_of_several_values_is_set_against_all_others():
    rows = sweep({1: [4.0, 4.1, 3.9], 4: [1.0, 1.01, 0.99], 16: [2.0, 2.02, 1.98], 8: [1.0, 1.1, 0.98]})
    (line,) = conclusions(rows, [SWEEP])
    assert line.startswith("tuning.duckdb.group_by, source table: 4 threads: 4.00 times as fast as 1 thread (")
    assert ", 2.00 times as fast as 16 threads (1.90 to 2.11)" in line
    assert line.endswith("; no difference shown to 8 threads (95 % intervals that hold together, 3 passes)")


def test_intervals_of_several_values_are_wider_so_that_all_hold_together():
    slow = [2.0, 2.2, 1.9]
    (line,) = conclusions(sweep({1: slow, 2: [1.0] * 3, 4: [5.0] * 3, 8: [6.0] * 3}), [SWEEP])
    wide, narrow = (ratio(slow, [1.0] * 3, UNKNOWN, among).interval for among in (3, 1))
    assert f"as 1 thread ({wide[0]:.2f} to {wide[1]:.2f})" in line
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_values_that_the_passes_do_not_tell_apart_have_no_fastest():
    (line,) = conclusions(sweep({1: [1.0, 1.3, 0.9], 2: [1.2, 1.0, 0.9]}), [SWEEP])
    assert line.endswith("no difference shown between 1 thread, the first, and 2 threads (3 passes)") or line.endswith(
        "no difference shown between 2 threads, the first, and 1 thread (3 passes)"
    )


def test_one_pass_of_several_values_cannot_say_which_is_the_fastest():
    (line,) = conclusions(sweep({1: [2.0], 2: [1.0]}), [SWEEP])
    assert line.endswith("2 threads came first of 2; 1 pass cannot say how sure that is")


def test_each_combination_of_other_parameters_has_its_own_fastest_and_one_value_none():
    rows = sweep({1: [2.0, 2.1], 2: [1.0, 1.0]}) + sweep({1: [1.0, 1.0], 2: [3.0, 3.1]}, "parquet")
    rows += sweep({1: [1.0, 1.0]}, "s3")
    lines = conclusions(rows, [SWEEP])
    assert ["source parquet: 1 thread: 3.0" in lines[0], "source table: 2 threads: 2.0" in lines[1]] == [True, True]
    assert len(lines) == 2


def test_of_rates_the_largest_is_the_fastest():
    rates = {1: [10.0, 10.1, 9.9], 2: [20.0, 20.2, 19.8]}
    (line,) = conclusions(sweep(rates, figure="bytes_per_s"), [Sweep("threads", "threads", "bytes_per_s")])
    assert "2 threads: 2.00 times as fast as 1 thread" in line


def ways(**seconds):
    return [
        row(
            f"tuning.{name}",
            seconds=value,
            experiment="s3",
            parameters="threads=2",
            details=f"upload_seconds={value / 10}",
            **{"pass": number},
        )
        for name, values in seconds.items()
        for number, value in enumerate(values, start=1)
    ]


def test_two_transports_are_set_against_each_other_at_the_same_parameters():
    rows = ways(crt=[1.0, 1.02, 0.98], classic=[2.0, 2.02, 1.98], third=[9.0, 9.0, 9.0])
    rows += [changed(one, parameters="threads=4") for one in ways(crt=[1.0])]
    (line,) = conclusions(rows, [Versus("an upload", "s3", "tuning.crt", "tuning.classic")])
    assert line.startswith("tuning.crt, 2 threads: an upload (tuning.classic) took 50 % less: 0.50 times as long (95 %")


def test_a_stage_of_one_transport_is_set_against_another_figure_of_the_other():
    rows = ways(crt=[1.0, 1.02, 0.98], classic=[2.0, 2.02, 1.98])
    versus = Versus("its upload", "s3", "tuning.crt", "tuning.classic", "upload_seconds", "seconds")
    (line,) = conclusions(rows, [versus])
    assert "its upload (tuning.classic) took 95 % less: 0.05 times as long" in line


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        (runs("s3", [1.0]), []),
        ([], [S3]),
        (sweep({1: [10.0] * 3, 2: [20.0] * 3}), [Sweep("threads", "threads", "bytes_per_s")]),
        (
            ways(crt=[1.0, 1.02], classic=[2.0, 2.02]),
            [Versus("a", "s3", "tuning.crt", "tuning.classic", "no_such_seconds")],
        ),
        (ways(crt=[1.0, 1.02], classic=[2.0, 2.02]), [Versus("a", "another", "tuning.crt", "tuning.classic")]),
    ],
    ids=["no comparison", "no rows", "no such rate", "no such figure", "another experiment"],
)
def test_without_comparisons_or_rows_with_their_figures_there_is_nothing_to_say(rows, asked):
    assert conclusions(rows, asked) == []


WAY, AGAIN = "postgres.made.read", "postgres.made.read_control"


def pair(ours, again):
    rows = [row(WAY, seconds=value, **{"pass": place}) for place, value in enumerate(ours, start=1)]
    return [
        *rows,
        *(row(AGAIN, seconds=v, origin="control", **{"pass": place}) for place, v in enumerate(again, start=1)),
    ]


def said(rows):
    return control_sentences(summarise(rows, ()))


def test_a_pair_that_ties_is_said_with_its_ratio_and_interval():
    (line,) = said(pair([1.0, 1.1, 1.2], [1.15, 1.25, 1.3]))
    assert line.startswith(
        "A/A control of postgres.made.read, 1,000 rows: 1.136 times as long as itself (95 % interval 0."
    )
    assert line.endswith("; 1.10 and 1.25 s, 3 and 3 runs).")


def test_a_pair_that_does_not_tie_is_said_loudly_with_how_often_that_is_chance():
    (line,) = said(pair([1.0, 1.01, 1.02], [1.25, 1.26, 1.27]))
    assert line.startswith(
        "A/A CONTROL FAILED, postgres.made.read, 1,000 rows: one function under two ids came out as d"
    )
    assert "1.248 times as long as itself (95 % interval 1.2" in line
    assert "Do not believe differences of this size" in line
    assert line.endswith("chance does this to about every twentieth control.")


def test_the_control_may_not_come_out_faster_either():
    assert said(pair([1.25, 1.26, 1.27], [1.0, 1.01, 1.02]))[0].startswith("A/A CONTROL FAILED")


def test_too_few_runs_or_none_are_not_judged():
    assert "2.000 times as long as itself; no interval of so few runs (1.00 and 2.00 s" in said(pair([1.0], [2.0]))[0]
    bad = row(WAY, Status.ERROR)
    assert "not judged, the two do not both have an ok run" in said([bad, *pair([], [1.0] * 3)])[0]
    assert "not judged, the two do not both have an ok run" in said(pair([], [1.0] * 3))[0]


def test_the_report_has_the_line():
    rows = pair([1.0, 1.01, 1.02], [1.25, 1.26, 1.27])
    text = markdown.report(suite(), environment(), sections(suite(), environment(), rows, summarise(rows, ())))
    assert "## What this run shows\n\n- A/A CONTROL FAILED, postgres.made.read" in text


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


STEADY = (1.0, 1.01, 1.02)
CALIBRATIONS = [
    {"now": {"cpu": 50.0, "disk": 9.0}, "best": {"cpu": 100.0, "disk": 9.0}},
    {"now": {"cpu": 80.0, "disk": 9.0}, "best": {"cpu": 100.0, "disk": 9.0}},
]


def passes(slow=(), factor=2.0, cases=10, **more):
    """Three passes over cases; the runs at these places take longer."""
    made = []
    for number, seconds in enumerate(STEADY, start=1):
        for case in range(cases):
            order = len(made) + 1
            took = seconds * (1 + case / 10) * (factor if order in slow else 1)
            made.append(row(f"a.b{case}.write", seconds=took, order=order, **{"pass": number}, **more))
    return made


def of_machine(rows, **facts):
    return machine.said(environment(**facts), rows, summarise(rows, ()))


def test_a_quiet_run_says_so_in_one_line():
    assert of_machine(passes(steal_seconds=0.0), calibrations=CALIBRATIONS) == [
        "The machine: slower than at its best, at most, in two seconds before and after: cpu 100%, disk 0%; the "
        "host or a CPU limit took 0.0% of the calls; no slow spell."
    ]


def test_a_run_that_was_not_calibrated_on_a_system_that_counts_no_steal_says_that():
    (line,) = of_machine(passes())
    assert line == "The machine: not calibrated; what the host took is not known; no slow spell."


def test_runs_one_after_the_other_that_take_long_are_a_slow_spell_and_scattered_ones_are_none():
    spell = of_machine(passes(slow=range(11, 21)))
    assert "; 1 slow spell with " in spell[0]
    assert len(spell) == 2
    assert of_machine(passes(slow=range(1, 31, 4)))[0].endswith("no slow spell.")


def test_a_run_of_the_lab_that_was_slower_than_those_it_is_kept_with_is_no_slow_spell():
    later = [replace(one, run_id="later", seconds=2 * one.seconds, order=one.order + 30) for one in passes()]
    assert of_machine([*passes(), *later])[0].endswith("no slow spell.")


def test_the_ranks_that_a_slow_spell_could_change_are_named():
    rows = passes()
    for number, one in enumerate(STEADY, start=1):  # quick but for the pass that a spell falls on
        took = 0.9 * one * (20 if number == 2 else 1)
        lost = 5.0 if number == 2 else 0.0
        rows.append(row("a.quick.write", seconds=took, order=number * 10, steal_seconds=lost, **{"pass": number}))
    lines = of_machine(rows)
    assert any(line.startswith("Without these runs the ranks of ") and "a.b0.write" in line for line in lines)


def test_without_an_ok_run_nothing_is_said():
    assert of_machine([]) == []
