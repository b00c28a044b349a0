"""Every transport of Spark on real databases, on its own workers: rows arrive, and nothing is left afterwards."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import psutil
import pytest
from pyarrow import parquet

from harness.check import sums
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab import jars
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Operation, Transport, Workers
from harness.registry import Unsupported, connect_of, one, select
from harness.systems import SYSTEMS, System
from harness.transports import workers as workers_module
from harness.transports.postgres import spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("pyspark") is None, reason="PySpark is not installed"),
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java"),
]
DATASET = store.specification("analytics_metrics")
ROWS, GROUPS, TABLE = 2_000, 4, "made_by_spark"
ENTRIES = select("*.spark.*")
NEEDS_JARS = pytest.mark.skipif(bool(jars.missing(jars.locked())), reason=jars.missing(jars.locked()) or "")
REFUSED = "clickhouse.spark.load_jdbc"  # the table has a UUID


@dataclass
class Spark:
    """A database, and the first arguments of Spark's transports."""

    system: System
    uri: str
    client: Any
    connection: Any = field(repr=False)

    def create(self, definition: str | None = None) -> None:
        made = definition or self.system.tables.definition(DATASET, PLAIN)
        assert made
        self.system.client.create(self.client, TABLE, made)

    def differences(self, file: Path) -> list[str]:
        found = self.system.sums.sums(self.client, TABLE, DATASET.logical_types)
        return sums.differences(sums.of_parquet(file, DATASET.logical_types), found)


@pytest.fixture(scope="module")
def file(dataset_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of several row groups."""
    built = store.ensure(dataset_folder, DATASET.name, ROWS, 1)
    path = tmp_path_factory.mktemp("spark") / "rows.parquet"
    parquet.write_table(parquet.read_table(built.path), path, row_group_size=ROWS // GROUPS)
    return path


@pytest.fixture(scope="module")
def databases(embedded_lab: EmbeddedLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Spark]]:
    """Two executors for all tests, and each database; no process and no file of Spark's is left afterwards."""
    made, folder = {}, tmp_path_factory.mktemp("workers")
    for name, system in SYSTEMS.items():
        client, endpoint = system.client.open_connection(embedded_lab.endpoints), of_system(name).endpoint
        system.client.ensure_namespace(client)
        uri = system.client.transport_uri(endpoint, embedded_lab.endpoints[endpoint])
        made[name] = Spark(system, uri, client, None)
    before = {process.pid for process in below()}
    with connect_of(of_system("postgres"))(made["postgres"].uri, Workers(2, "", "", str(folder))) as of_spark:
        for one_of_them in made.values():
            uri = one_of_them.uri
            one_of_them.connection = SimpleNamespace(session=of_spark.session, uri=uri, workers_uri=uri)
        yield made
        started = [process for process in below() if process.pid not in before]
        assert len(executors()) == 2
    for one_of_them in made.values():
        one_of_them.system.client.drop(one_of_them.client, TABLE)
    assert psutil.wait_procs(started, 10)[1] == []
    assert [*folder.iterdir()] == []


@pytest.fixture
def postgres(databases: dict[str, Spark]) -> Spark:
    return databases["postgres"]


@pytest.fixture
def clickhouse(databases: dict[str, Spark]) -> Spark:
    return databases["clickhouse"]


def of_system(name: str) -> Transport:
    """A transport of Spark: all of a database have one `connect`."""
    return select(f"{name}.spark.*")[0]


def below() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def executors() -> list[psutil.Process]:
    """The processes of executors; each does a worker's work, and the driver is not one of them."""
    found = []
    for process in below():
        try:
            if any("CoarseGrainedExecutorBackend" in argument for argument in process.cmdline()):
                found.append(process)
        except psutil.NoSuchProcess:
            pass
    return found


def of(operation: Operation) -> Any:
    """Give a test every transport of an operation."""
    entries = [entry for entry in ENTRIES if entry.operation is operation and entry.id != REFUSED]
    given = [pytest.param(entry, id=entry.id, marks=[NEEDS_JARS] if "jdbc" in entry.id else []) for entry in entries]
    return pytest.mark.parametrize("entry", given)


def test_executors_of_another_version_are_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before all other tests: a process has one session of Spark at a time.
    monkeypatch.setattr(workers_module, "versions", lambda names: {"python": "3.11.0", "pyspark": "1"})
    connect = connect_of(of_system("clickhouse"))
    with (
        pytest.raises(RuntimeError, match=r"a worker runs .*, and the driver .*pyspark 1"),
        connect("", Workers(1, "", "", str(tmp_path))),
    ):
        pass
    assert executors() == []
    assert [*tmp_path.iterdir()] == []
    assert "SPARK_HOME" not in os.environ


def test_an_error_of_a_task_says_what_is_wrong_after_the_driver_has_ended(tmp_path: Path) -> None:
    connect = connect_of(of_system("postgres"))
    with (
        pytest.raises(RuntimeError, match=r"^ZeroDivisionError: division by zero$"),
        connect("", Workers(1, "", "", str(tmp_path))) as connection,
    ):
        connection.session.sparkContext.parallelize([0], 1).foreach(lambda number: 1 / number)
    assert executors() == []


@of(Operation.LOAD)
def test_what_is_loaded_is_what_is_in_the_file(databases: dict[str, Spark], entry: Transport, file: Path) -> None:
    spark = databases[entry.system]
    spark.create()
    entry.function(spark.connection, str(file), TABLE)
    assert spark.differences(file) == []


@of(Operation.UNLOAD)
def test_what_is_unloaded_is_what_is_in_the_table(
    databases: dict[str, Spark], entry: Transport, file: Path, tmp_path: Path
) -> None:
    spark = databases[entry.system]
    spark.create()
    spark.system.client.load(spark.client, TABLE, str(file), DATASET.logical_types)
    entry.function(spark.connection, TABLE, str(tmp_path))
    found, expected = pl.read_parquet(tmp_path / "*.parquet"), pl.read_parquet(file)
    if found.schema["entity_key"] == pl.Binary:
        expected = expected.with_columns(pl.col("entity_key").str.replace_all("-", "").str.decode("hex"))
    found = found.select(pl.col(name).cast(dtype) for name, dtype in expected.schema.items())
    assert found.sort("entity_key").equals(expected.sort("entity_key"))


@NEEDS_JARS
def test_jdbc_refuses_a_uuid_of_clickhouse_before_a_row_is_stored(clickhouse: Spark, file: Path) -> None:
    clickhouse.create()
    with pytest.raises(Unsupported, match=r"UNRECOGNIZED_SQL_TYPE.* UUID"):
        one(REFUSED).function(clickhouse.connection, str(file), TABLE)
    assert clickhouse.system.sums.sums(clickhouse.client, TABLE, DATASET.logical_types).rows == 0


@NEEDS_JARS
def test_jdbc_loads_other_types_of_clickhouse(clickhouse: Spark, file: Path) -> None:
    definition = clickhouse.system.tables.definition(DATASET, PLAIN)
    assert definition
    clickhouse.create(definition.replace("UUID", "String"))
    one(REFUSED).function(clickhouse.connection, str(file), TABLE)
    found, expected = pl.from_arrow(clickhouse.system.client.fetch(clickhouse.client, TABLE)), pl.read_parquet(file)
    assert isinstance(found, pl.DataFrame)
    found = found.select(pl.col(name).cast(dtype) for name, dtype in expected.schema.items())
    assert found.sort("entity_key").equals(expected.sort("entity_key"))


@pytest.mark.parametrize(
    ("name", "divide"),
    [pytest.param("unload_jdbc_one_moment", "_predicates", marks=NEEDS_JARS), ("unload_one_moment", "part_queries")],
)
def test_what_is_written_after_the_snapshot_is_in_no_part(
    postgres: Spark, name: str, divide: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.create(postgres.system.tables.definition(DATASET, "heap"))
    postgres.system.client.load(postgres.client, TABLE, str(file), DATASET.logical_types)
    again = f"INSERT INTO {TABLE} SELECT * FROM {TABLE} RETURNING 1"
    parts = getattr(spark, divide)
    monkeypatch.setattr(
        spark, divide, lambda *asked: (postgres.system.client.query(postgres.client, again), parts(*asked))[1]
    )
    one(f"postgres.spark.{name}").function(postgres.connection, TABLE, str(tmp_path))
    assert len(pl.read_parquet(tmp_path / "*.parquet")) == ROWS


SLOW = (  # a statement, not a row, takes a second: an executor can be killed in the middle of a load
    "CREATE FUNCTION wait_a_second() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END'",
    f"CREATE TRIGGER slow AFTER INSERT ON {TABLE} FOR EACH STATEMENT EXECUTE FUNCTION wait_a_second()",
)


@pytest.fixture
def slowly(postgres: Spark) -> Iterator[None]:
    """Have every COPY into the table take a second."""
    postgres.create()
    for statement in SLOW:
        postgres.system.client.query(postgres.client, statement)
    yield
    postgres.system.client.query(postgres.client, "DROP FUNCTION wait_a_second CASCADE")


def test_an_executor_that_is_killed_is_replaced_and_every_row_is_there_once(
    postgres: Spark, slowly: None, file: Path
) -> None:
    killed = executors()[0]
    killing = threading.Thread(target=when(lambda: busy(postgres), lambda: os.kill(killed.pid, signal.SIGKILL)))
    killing.start()
    one("postgres.spark.load_copy_once").function(postgres.connection, str(file), TABLE)
    killing.join()
    assert not killed.is_running()
    assert postgres.differences(file) == []
    assert until(lambda: len(executors()) == 2)


def busy(spark: Spark) -> bool:
    asked = "SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid) JOIN pg_class c ON c.oid = l.relation "
    asked += f"WHERE c.relnamespace = '{namespace()}'::regnamespace AND a.query LIKE 'COPY%' AND a.state = 'active'"
    return bool(spark.system.client.query(spark.client, asked)[0][0])


def when(ready: Callable[[], bool], act: Callable[[], None]) -> Callable[[], None]:
    return lambda: act() if until(ready) else None


def until(ready: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not (found := ready()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
