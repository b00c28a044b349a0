"""The rig of stores on real files: right values are ok, wrong ones never, for any cause."""

import sqlite3
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.model import LabError, Status
from harness.results import runs_csv
from harness.run.execution import Worker
from harness.run.rigs import cluster, stores
from harness.systems.system import System
from tests.made_up import MadeUp
from tests.run.rigs.orders import case, order

# Stores of one Parquet file, named as a client whose stores are read back so; `broken` stores make a wrong one.
GOOD = """
@contextmanager
def connect(folder):
    yield folder + "/data.parquet"

def register(operation, change=lambda table: table, name=None):
    def function(store, *data):
        import pyarrow.compute as pc
        import pyarrow.parquet as pq
        if operation == "create":
            return pq.write_table(change(*data), store)
        table = pq.read_table(store)
        if operation == "query":
            table = table.filter((pc.field("col1") > 100) & (pc.field("col97") < 1000))
        return change(table)
    function.__name__, function.__module__ = name or operation, __name__
    transport("", "", operation=operation, frame="pyarrow")(function)

def one_more(table):
    changed = table["col7"].to_pylist()
    changed[-1] += 1
    return table.set_column(7, "col7", [changed])

register("create")
register("read")
register("query")
register("read", lambda table: table.slice(1), "read_short")
register("read", lambda table: table.slice(0, 0), "read_nothing")
register("read", one_more, "read_changed")
register("read", lambda table: table.take(list(range(len(table)))[::-1]), "read_backwards")
register("create", one_more, "create_changed")
register("create", lambda table: table.slice(0, 3), "create_short")
register("create", lambda table: table.drop_columns(["col3"]), "create_narrow")

@transport("", "", frame="pyarrow")
def query_everything(store):
    import pyarrow.parquet as pq
    return pq.read_table(store)

@transport("", "", frame="pyarrow")
def create_nothing(store, data):
    pass
"""
BROKEN = GOOD.replace('register("create")', 'register("create", one_more)')


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Have the stores `made.pyarrow`, which are good except for the fault in a name, and `made.polars`, made wrong."""
    made = MadeUp(tmp_path, pyarrow=GOOD, polars=BROKEN)
    made.join(monkeypatch)


@pytest.mark.long
@pytest.mark.process
def test_good_stores_are_ok_and_nothing_of_them_is_left(perform, made_up):
    names = ("create", "read", "query", "read_backwards")
    rows = perform(stores, *(case(f"made.pyarrow.{name}") for name in names))
    assert [(row.status, row.error) for row in rows] == [(Status.OK, "")] * 4
    assert {(row.rows, row.bytes, row.label, row.lab) for row in rows} == {(20, None, "rows=20", "local")}


@pytest.mark.long
@pytest.mark.process
def test_the_rig_finds_wrong_values_and_a_store_that_cannot_be_read_or_was_made_wrong(perform, made_up):
    made_wrong = "made.polars.create made a store with wrong values: col7: 1 of 1000 values differ"
    expected = {
        "pyarrow.create_changed": (Status.MISMATCH, "col7: 1 of 20 values differ"),
        "pyarrow.create_short": (Status.MISMATCH, "expected 20 rows, found 3"),
        "pyarrow.read_changed": (Status.MISMATCH, "col7: 1 of 20 values differ"),
        "pyarrow.read_short": (Status.MISMATCH, "expected 20 rows, found 19"),
        "pyarrow.read_nothing": (Status.MISMATCH, "expected 20 rows, found 0"),
        "pyarrow.query_everything": (Status.MISMATCH, "expected 0 rows, found 20"),
        "pyarrow.create_narrow": (Status.ERROR, ""),
        "pyarrow.create_nothing": (Status.ERROR, ""),
        "polars.read": (Status.ERROR, made_wrong),
        "polars.query": (Status.ERROR, made_wrong),
    }
    for row, (status, said) in zip(
        perform(stores, *(case(f"made.{name}") for name in expected)), expected.values(), strict=True
    ):
        assert (row.status, row.seconds) == (status, None), row.transport
        assert said in row.error


@contextmanager
def prepared(settings, name):
    """A case with its rig and job, ready for the worker, as the runner does it."""
    chosen = case(name)
    with stores.opened(order(settings, chosen)) as rig:
        yield rig, chosen, rig.prepare(chosen)


def measured(job, tmp_path):
    answer = Worker(tmp_path / "log").ask(job, 120.0).answer
    assert answer.status is Status.OK, answer
    return answer


SQLITE = partial(sqlite3.connect, isolation_level=None)


def change_table(connect, path):
    with closing(connect(str(path))) as connection:
        connection.execute("UPDATE benchmark SET col7 = col7 + 1 WHERE rowid = 5")


def change_parquet(path):
    table = pq.read_table(path)
    column = table["col7"].to_pylist()
    column[5] += 1
    place = table.column_names.index("col7")
    pq.write_table(table.set_column(place, "col7", pa.array([column]).flatten()), path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "pattern", "change"),
    [
        ("stores_equal.sqlite.create", "*.sqlite", partial(change_table, SQLITE)),
        ("stores_published.sqlite.create", "*.sqlite", partial(change_table, SQLITE)),
        ("stores_equal.duckdb.create", "*.duckdb", partial(change_table, duckdb.connect)),
        ("stores_equal.pyarrow.create", "*.parquet", change_parquet),
        ("stores_equal.delta.create", "*.parquet", change_parquet),
    ],
)
def test_one_value_that_changed_on_disk_after_a_create_is_found(settings, tmp_path, name, pattern, change):
    with prepared(settings, name) as (rig, chosen, job):
        answer = measured(job, tmp_path)
        (path,) = (tmp_path / "state" / "stores" / "created").rglob(pattern)
        change(path)
        (line,) = rig.check(chosen, job, answer).wrong
        assert line.startswith("col7: 1 of 20 values differ")
        assert path.exists()  # and was not put where reads look for it


@pytest.mark.long
def test_a_file_of_a_store_that_is_cut_off_after_a_create_does_not_pass(settings, tmp_path):
    with prepared(settings, "stores_equal.pyarrow.create") as (rig, chosen, job):
        answer = measured(job, tmp_path)
        (path,) = (tmp_path / "state" / "stores" / "created").rglob("*.parquet")
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(duckdb.Error):
            rig.check(chosen, job, answer)


@pytest.mark.long
def test_a_store_that_was_created_and_verified_is_the_one_that_reads_and_queries_use(settings, tmp_path):
    with prepared(settings, "stores_equal.sqlite.create") as (rig, chosen, job):
        answer = measured(job, tmp_path)
        (path,) = (tmp_path / "state" / "stores" / "created").rglob("*.sqlite")
        made = path.stat().st_ino
        assert rig.check(chosen, job, answer).wrong == []
        rig.settle(chosen)
        folders = {rig.prepare(case(f"stores_equal.sqlite.{name}")).folder for name in ("read", "query")}
        assert [(folder / path.name).stat().st_ino for folder in map(Path, folders)] == [made]
        assert (rig.prepare(chosen).folder, list(path.parent.iterdir())) == (str(path.parent), [])


@pytest.mark.long
def test_every_create_starts_with_empty_folders_and_every_read_with_the_same_store(settings):
    create, read = (case(f"stores_equal.pyarrow.{operation}") for operation in ("create", "read"))
    with stores.opened(order(settings, create, read)) as rig:
        folder = settings.state_dir / "stores"
        for _ in range(2):
            job = rig.prepare(create)
            assert [list((folder / name).iterdir()) for name in ("created", "warmup")] == [[], []]
            (folder / "created" / "left").touch()
        rig.settle(create)
        assert not (folder / "created").exists()
        job = rig.prepare(read)
        (path,) = (folder / "stores_equal.pyarrow-20").rglob("*.parquet")
        made_at = path.stat().st_mtime_ns
        assert rig.prepare(read) == job
        assert path.stat().st_mtime_ns == made_at
        rig.settle(read)
        assert path.exists()


def test_the_rig_announces_its_disk_and_what_a_killed_run_left_is_gone(settings):
    said, old = [], settings.state_dir / "stores" / "stores_equal.pyarrow-20"
    old.mkdir(parents=True)
    (old / "data.parquet").write_text("of another time")
    with stores.opened(order(settings, case("stores_equal.pyarrow.read"), say=said.append)):
        assert ["GB of disk" in line for line in said] == [True]
        assert not old.exists()


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, SystemExit, OSError])
def test_the_folder_is_removed_however_a_run_ends(settings, stopped_by):
    def stop_in_the_middle():
        with prepared(settings, "stores_equal.pyarrow.create"):
            assert (settings.state_dir / "stores" / "created").exists()
            raise stopped_by

    with pytest.raises(stopped_by):
        stop_in_the_middle()
    assert not (settings.state_dir / "stores").exists()


SUITE = """
name = "beside"
title = "What is done beside a run"
rig = "cluster"

[defaults]
dataset = "analytics_metrics"
passes = 1
time_limit_seconds = 120

[[sizes.smoke.experiments]]
name = "kill"
select = "*.dask.load_copy, *.dask.load_copy_once"
parameters = { rows = [300_000], workers = [2], kill = ["after"] }

[[sizes.smoke.experiments]]
name = "kill_clickhouse"
select = "*.dask.load_insert, *.dask.load_insert_once"
parameters = { rows = [1_000_000], workers = [2], kill = ["after"] }

[[sizes.smoke.experiments]]
name = "change"
select = "*.dask.unload_by_parts, *.dask.unload_one_moment"
parameters = { rows = [400_000], workers = [2], change = ["during"] }
"""
LOAD, STREAM = "postgres.dask.load_copy", "postgres.adbc.load_ingest"


@pytest.mark.parametrize(
    ("transport", "parameters", "found"),
    [
        (LOAD, {"rows": 10}, "the parameters are rows; give rows, workers, and any of change, .*, profile"),
        (STREAM, {"rows": 10, "threads": 2}, "the parameters are rows, threads; give rows, and any of"),
        (LOAD, {"rows": 10, "workers": 2, "kill": "often"}, "kill 'often': choose before or after"),
    ],
)
def test_parameters_that_are_unknown_are_refused(transport, parameters, found):
    with pytest.raises(LabError, match=found):
        cluster.require_parameters(case(transport, "analytics_metrics", **parameters))


def test_a_way_of_one_process_needs_no_workers():
    cluster.require_parameters(case(STREAM, "analytics_metrics", rows=10))
    cluster.require_parameters(case(STREAM, "analytics_metrics", rows=10, memory_mb=100))


@pytest.mark.parametrize(
    ("lacks", "parameters", "found"),
    [
        ("", {"change": "during"}, ""),
        ("sums", {}, "no sums"),
        ("concurrent_changes", {}, ""),
        ("concurrent_changes", {"kill": "after"}, "no concurrent_changes"),
        ("concurrent_changes", {"change": "during"}, "no concurrent_changes"),
    ],
)
def test_a_database_that_cannot_sum_or_be_watched_is_left_out(monkeypatch, lacks, parameters, found):
    monkeypatch.setattr(System, "lacks", lambda of, part: f"no {part}" if part == lacks else "")
    assert cluster.lacking(case(LOAD, "analytics_metrics", rows=10, workers=1, **parameters)) == found


PLAIN = {"postgres.dask.load_copy", "clickhouse.dask.load_insert"}
BY_PARTS = {"postgres.dask.unload_by_parts", "clickhouse.dask.unload_by_parts"}
ONCE = {"postgres.dask.load_copy_once", "clickhouse.dask.load_insert_once"}
ONE_MOMENT = {"postgres.dask.unload_one_moment", "clickhouse.dask.unload_one_moment"}
TOO_LATE = "no worker was killed"  # in the short time between its commit and its word to the engine
TRIES = 3


@pytest.mark.long
@pytest.mark.alone  # on a busy machine the right time is over before the test sees it
@pytest.mark.timeout(2_000)
def test_killed_workers_and_changed_tables_come_out_as_they_should(lab_process, environment, tmp_path):
    """Some tries see rows twice, or rows of two points in time; careful transports never show either."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "beside.toml").write_text(SUITE)
    still = PLAIN | BY_PARTS | ONCE | ONE_MOMENT
    for number in range(TRIES):
        results = tmp_path / f"results-{number}"
        own = environment | {"LAB_SUITES_DIR": str(tmp_path / "suites"), "LAB_RESULTS_DIR": str(results)}
        lab_process("run", "beside", "--size", "smoke", "--only", ",".join(sorted(still)), env=own, timeout=600)
        (folder,) = results.iterdir()
        rows = {row.transport: row for row in runs_csv.load(folder / "runs.csv")}
        assert rows.keys() == still
        assert not (folder / "unloaded").exists()
        for name in still - (PLAIN | BY_PARTS):
            assert rows[name].ok or (name in ONCE and TOO_LATE in rows[name].error), (name, rows[name].error)
        still = {name for name, row in rows.items() if row.ok == (name in PLAIN | BY_PARTS) or TOO_LATE in row.error}
        for name in rows.keys() - still:
            details = rows[name].details
            assert (details["found_rows"] == details["expected_rows"]) == rows[name].ok, (name, details)
            assert rows[name].experiment == "change" or details["killed"] == 1
        if not still:
            return
    pytest.fail(f"expected a worker that was killed in time and a change that was seen in {TRIES} tries of {still}")
