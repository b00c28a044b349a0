"""How far more workers help: a prediction that can fail, and an extrapolation that says so."""

import heapq
import random
from dataclasses import replace

import pytest

from harness.model import Status
from harness.report.clusters import LINK_BYTES_PER_S, scalings
from harness.report.scaling_tables import said, tables
from harness.report.summarising import summarise
from tests.report.cases import changed
from tests.report.cluster_run import (
    MICRO,
    PARTS,
    ROWS,
    WORK,
    bound,
    curve,
    measured,
    of_engine,
)

JDBC = "postgres.spark.load_jdbc"


def scaling(rows, transport=PARTS, cores=2):
    return next(one for one in scalings(summarise(rows, ()), cores) if one.transport == transport)


def test_the_work_of_a_row_is_that_of_the_run_with_the_fewest_workers():
    wall, driver, of_workers, server = WORK[PARTS]
    work = scaling(ROWS).work
    found = (work.wall, work.driver, work.workers, work.server, work.client)
    assert found == pytest.approx([part * MICRO for part in (wall, driver, of_workers, server, driver + of_workers)])
    dearer = [of_engine(PARTS, 2, 1.0, cpu_seconds=99.0), *curve(16.5)]
    assert scaling(dearer).work.driver == pytest.approx(driver * MICRO)
    assert scaling(curve(16.5, 9.0, 8.0)[1:]).work.wall == pytest.approx(2 * 9.0 * MICRO)  # where nobody ran one


def test_a_prediction_is_what_workers_do_who_wait_for_one_another_at_the_cores():
    """Four processes of two workers at two cores: the shares of time with 0 to 4 of them there, by hand."""
    wall, driver, of_workers, server = WORK[PARTS]
    one = scaling(curve(wall, wall / 2, wall / 2))
    at_a_core = (driver + of_workers + server) / 2
    ratio = at_a_core / (wall - at_a_core)
    shares = [1, 4 * ratio, 6 * ratio**2, 6 * ratio**3, 3 * ratio**4]
    busy = (shares[1] + 2 * sum(shares[2:])) / sum(shares)
    assert one.predicted(1) == pytest.approx(1 / wall / MICRO)
    assert one.predicted(2) == pytest.approx(busy / (2 * at_a_core) / MICRO)
    rates = [one.predicted(many) for many in (1, 2, 3, 4, 8, 64)]
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(1 / at_a_core / MICRO)
    assert (one.end(one.here).workers, one.end(one.here).cap.name) == (3, "the 2 cores of this machine")


def test_where_there_are_cores_enough_or_nothing_is_known_of_them_nobody_waits():
    wall, *_ = WORK[PARTS]
    assert scaling(curve(wall, wall), cores=10_000).predicted(4) == pytest.approx(4 / wall / MICRO, rel=1e-3)
    bare = [changed(run, details="", cpu_seconds=None) for run in curve(wall, wall)]
    assert scaling(bare).predicted(4) == pytest.approx(4 / wall / MICRO)


def test_runs_of_two_workers_are_predicted_as_they_were_where_nobody_ran_one():
    """They have waited for one another already: so much of their time is taken to be waiting."""
    one = scaling([of_engine(PARTS, 2, 10.0), of_engine(PARTS, 4, 9.0)])
    assert (one.base, one.predicted(2)) == (2, pytest.approx(1 / 10.0 / MICRO))
    assert one.predicted(1) > one.predicted(2) / 2


def test_errors_are_of_the_runs_that_the_model_was_not_made_from_and_have_the_sign_of_what_was_predicted():
    one = scaling(curve(10.0, 5.0, 4.0), cores=10_000)  # 100,000, 200,000 and 250,000 rows/s
    assert one.errors == pytest.approx({2: 0.0, 4: 0.6}, abs=0.01)
    assert scaling(curve(10.0, 4.0), cores=10_000).errors == pytest.approx({2: -0.2}, abs=0.01)


def simulated(workers, cores, alone, at_a_core, source, rows=4_000):
    """Seconds a row of workers on some cores, first come, first served.

    A worker and the server's process for it are two who work at the same time: each is alone for a while and then needs
    a core, half of the time that a row takes there.
    """
    free, now = [0.0] * cores, 0.0
    coming = [(source.expovariate(1 / alone), number) for number in range(2 * workers)]
    for _ in range(2 * rows):
        now, number = heapq.heappop(coming)
        ended = max(now, heapq.heappop(free)) + source.expovariate(2 / at_a_core)
        heapq.heappush(free, ended)
        heapq.heappush(coming, (ended + source.expovariate(1 / alone), number))
    return now / rows


def test_a_machine_that_does_as_the_model_says_is_predicted_within_its_noise():
    """Workers that are simulated, of whom the model is told the run of one alone."""
    source = random.Random(1)
    _, driver, of_workers, server = WORK[PARTS]
    for alone in (1.0, 5.0, 25.0):
        for cores in (2, 4):
            seconds = [simulated(number, cores, alone, driver + of_workers + server, source) for number in (1, 2, 4)]
            errors = scaling(curve(*seconds), cores=cores).errors.values()
            assert len(errors) == 2
            assert max(map(abs, errors)) < 0.15, (alone, cores, errors)


def test_elsewhere_the_cores_of_the_server_and_what_it_can_do_are_the_end():
    wall, _, _, server = WORK[PARTS]
    one = scaling([*curve(wall, wall / 1.6), bound(1.9, "workers", "workers=1")])
    assert one.extrapolated(2) == pytest.approx(2 / wall / MICRO)  # each has a core of the server's
    assert one.extrapolated(4) < 4 / wall / MICRO
    assert one.extrapolated(64) == pytest.approx(2 / server / MICRO, rel=1e-3)
    assert one.end(one.elsewhere).cap.name == "the 2 cores of the server"
    assert one.server_cores(64) == pytest.approx(64 / wall * server)
    slow = scaling([*curve(wall, wall / 1.6), bound(8.0, "workers", "workers=1")])
    assert (slow.end(slow.elsewhere).cap.name, slow.extrapolated(64)) == ("the server's limit", pytest.approx(125_000))
    assert slow.predicted(4) == pytest.approx(125_000)


def test_a_limit_that_the_runs_went_past_is_none():
    """One statement on one connection is no law for several: the cores are."""
    one = scaling([*curve(16.5, 8.0), bound(10.0, "workers", "workers=1")])  # 100,000 rows/s; 125,000 were measured
    assert "the server's limit" not in [cap.name for cap in one.here]
    driven = [changed(run, cpu_seconds=9.0) for run in curve(16.5, 8.0)]  # 111,000 rows/s of a driver with one core
    assert [cap.name for cap in scaling(driven).here] == ["the 2 cores of this machine"]


def test_a_network_is_an_end_where_one_process_counted_the_bytes_of_the_same_payload():
    details = "sent_bytes=2000000000; received_bytes=1000"
    alone = measured("postgres.psycopg.load_copy", 9.0, payload="binary", details=details)
    rows = [*(changed(run, payload="binary") for run in curve(16.5, 10.0)), alone]
    caps = {cap.name: cap.rate for cap in scaling(rows).elsewhere}
    assert caps["a network of 10 Gbit/s"] == pytest.approx(LINK_BYTES_PER_S / 2_000)
    other = [*curve(16.5, 10.0), alone]
    assert "a network of 10 Gbit/s" not in [cap.name for cap in scaling(other).elsewhere]


def test_what_is_not_known_ends_nothing_and_stands_empty():
    """Of a server elsewhere nobody knows the CPU time, of workers elsewhere neither."""
    bare = [changed(run, details="", cpu_seconds=None) for run in curve(16.5, 10.0)]
    bare = [replace(run, cpu_seconds=0.0) for run in bare]
    one = scaling(bare)
    assert (one.here, one.elsewhere, one.end(one.here), one.server_cores(64)) == ((), (), None, None)
    assert one.predicted(4) == pytest.approx(4 / 16.5 / MICRO)
    here, elsewhere = tables([one])
    assert here.rows[0][1:3] == ("", "")
    assert here.rows[0][-2:] == elsewhere.rows[0][-2:] == ("", "not known")


def test_one_number_of_workers_and_what_needs_none_have_no_scaling():
    rows = [*curve(16.5), *(changed(run, engine="") for run in curve(20.0, 10.0, transport=JDBC))]
    assert scalings(summarise(rows, ()), 2) == []
    assert scalings(summarise(ROWS, ()), None) == []
    failed = [curve(16.5)[0], changed(curve(16.5, 9.0)[1], status=Status.ERROR)]
    assert scalings(summarise(failed, ()), 2) == []
    assert tables([]) == said([]) == []


def test_sentences_say_the_error_and_that_an_extrapolation_is_one():
    first, parts, *_ = said(scalings(summarise(ROWS, ()), 2))
    assert first == (
        "Scaling: the rate that is predicted from the runs with the fewest workers was 10 % away from the measured one "
        "in the median, 36 % at most, of 8 predictions"
    )
    assert parts == (
        "postgres.dask.load_copy_parts, 1,000,000 rows: on this machine more than 3 workers should bring nothing "
        "(the 2 cores of this machine let 136,000 rows/s through); measured: ×1.62 from 1 to 2, ×1.02 from 2 to 4 "
        "workers; predicted against measured: +10 % at 2, +34 % at 4. Extrapolated, not measured: with machines of "
        "their own more than 6 workers should bring nothing (the 2 cores of the server let 328,000 rows/s through)"
    )


def test_tables_set_the_prediction_beside_what_was_measured_and_mark_what_was_not():
    here, elsewhere = tables(scalings(summarise(ROWS, ()), 2))
    assert here.head[:8] == (
        "transport",
        "client µs",
        "server µs",
        "1 worker",
        "2 workers",
        "predicted",
        "4 workers",
        "predicted",
    )
    (line,) = (line for line in here.rows if line[0] == JDBC)
    assert line[1:] == (
        "21.6",
        "12.5",
        "35,700",
        "57,900",
        "54,800 (-5 %)",
        "59,300",
        "58,600 (-1 %)",
        "2",
        "the 2 cores of this machine",
    )
    assert elsewhere.title == "Scaling: rows/s EXTRAPOLATED, not measured, 1,000,000 rows"
    assert elsewhere.head[1:5] == ("8 workers", "16 workers", "32 workers", "64 workers")
    assert elsewhere.notes[0].startswith("no run stands behind these figures")
    assert {len(line) for line in elsewhere.rows} == {len(elsewhere.head)}
