"""The tables next to the transports of a cluster run: bounds, the memory of workers, and one process first."""

from dataclasses import replace

import pytest

from harness.model import LabError
from harness.report.answers import leaders
from harness.report.charts import cases_of
from harness.report.figures import quantity
from harness.report.rankings import rankings
from harness.report.summary import summarise
from tests.report.cluster_run import PARTS, PICTURES, STREAMS, bound, counted, measured, of_engine

MEMORY = PICTURES[0]


def test_a_load_is_set_against_the_bounds_of_writes_of_as_many_rows_and_an_unload_against_those_of_reads():
    read = "postgres.asyncpg.read_select"
    rows = [
        measured("postgres.a.load", 8.0, parameters="workers=2"),
        measured("postgres.a.unload", 5.0, operation="unload", parameters="workers=2"),
        measured("postgres.a.load", 40.0, rows=9_000_000),
        measured("postgres.a.load", 8.0, experiment="other"),
        bound(2.0, "engines"),
        bound(1.0, "engines", operation="read", transport=read),
        bound(3.0, "engines", "memory_mb=1"),
        bound(0.1, "elsewhere"),
        bound(0.1, "engines", transport="clickhouse.chdb.write_insert_select"),
    ]
    shares = {(one.experiment, one.operation, one.rows): one.share_of_limit for one in summarise(rows, ())}
    assert shares["engines", "load", 1_000_000] == pytest.approx(2.0 / 8.0)
    assert shares["engines", "unload", 1_000_000] == pytest.approx(1.0 / 5.0)
    assert shares["engines", "load", 9_000_000] is shares["other", "load", 1_000_000] is None


def test_a_write_is_still_set_against_the_bounds_at_its_own_parameters_alone():
    rows = [
        measured("postgres.a.write", 4.0, operation="write", parameters="profile=heap"),
        bound(2.0, "engines", "profile=heap"),
        bound(1.0, "engines", "profile=unlogged"),
    ]
    (share,) = (one.share_of_limit for one in summarise(rows, ()) if one.origin != "limit")
    assert share == pytest.approx(0.5)


def test_what_one_process_does_comes_first_in_every_table_whatever_it_takes():
    fast = [of_engine(PARTS, 2, 1.0, experiment="engines"), of_engine(PARTS, 2, 10.0, 10_000_000, "engines")]
    rows = [*fast, *(measured(way, 50.0, parameters="workers=2") for way in STREAMS)]
    for some in (rows, [run for run in rows if run.rows == 1_000_000]):
        for table in rankings(summarise(some, ())):
            names = [line[table.head.index("transport")] for line in table.rows]
            assert names.index(PARTS) == len(names) - 1 or names == [PARTS] * len(names), table.title


def test_a_ranking_says_how_many_workers_and_counts_their_memory():
    rows = [of_engine(PARTS, 2, 10.0, experiment="engines"), measured(STREAMS[0], 8.0, parameters="workers=2")]
    (ranking,) = rankings(summarise(rows, ()))
    place = {name: ranking.head.index(name) for name in ("transport", "workers", "peak MB")}
    lines = {line[place["transport"]]: (line[place["workers"]], line[place["peak MB"]]) for line in ranking.rows}
    assert lines == {PARTS: ("2", "1,400"), "postgres.psycopg.load_copy": ("", "180")}


def test_the_memory_of_an_engine_is_that_of_its_driver_and_of_its_workers():
    rows = [of_engine(PARTS, 2, 10.0), measured("postgres.psycopg.load_copy", 8.0, experiment="workers")]
    picture = replace(MEMORY, where=None)
    found = {point.name: point.y.middle for point in cases_of(picture, rows)}
    assert found == {PARTS: 180e6 + 2 * 610e6, "postgres.psycopg.load_copy": 180e6}
    nothing = replace(rows[0], peak_rss_bytes=None)
    assert cases_of(picture, [nothing])[0].y is None
    assert quantity(picture.y).name == "peak memory above the start, workers included"
    assert (quantity(picture.y).unit, quantity("cpu_seconds + seconds").name) == ("B", "CPU time + time")
    with pytest.raises(LabError, match="adds several units: "):
        quantity("seconds + peak_rss_bytes")


def test_neither_bounds_alone_nor_what_was_disturbed_has_a_fastest():
    disturbed = counted("postgres.dask.load_parts", 60_000, experiment="engines", parameters="kill=before")
    found = leaders(summarise([bound(1.0, "engines"), measured("postgres.a.load", 2.0)], ()))
    assert [line[0] for line in found.rows] == ["Postgres load"]
    assert leaders(summarise([bound(1.0, "engines"), disturbed], ())) is None
