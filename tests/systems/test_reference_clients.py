"""The reference clients on real engines: their tables, refusals and results, and two labs on one server."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import psycopg
import pytest

from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.machine.variables import namespace
from harness.model import MARK, LabError
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from harness.systems.postgres import client as postgres
from harness.systems.system import System
from tests.waiting import until

SPEC = store.specification("analytics_metrics")
BOTH = pytest.mark.parametrize("system", SYSTEMS)
WITH_SUMS = pytest.mark.parametrize("system", [name for name, of in SYSTEMS.items() if not of.lacks("sums")])


@pytest.fixture
def tables(embedded_lab: EmbeddedLab, dataset_folder: Path) -> Iterator[Tables]:
    dataset, warmup = (store.ensure(dataset_folder, SPEC.name, rows, 1) for rows in (3_000, 1_000))
    made = Tables(References(embedded_lab.endpoints), SPEC, dataset, warmup)
    yield made
    made.references.close(made.drop)


def connection(system: str, lab: EmbeddedLab) -> Any:
    opened = SYSTEMS[system].client.open_connection(lab.endpoints)
    SYSTEMS[system].client.ensure_namespace(opened)
    return opened


def test_a_table_of_another_profile_is_filled_anew(tables: Tables) -> None:
    for profile, indexes in (("keyed", 1), ("heap", 0), ("heap", 0), ("keyed", 1)):
        table, _ = tables.for_read("postgres", profile)
        asked = f"SELECT count(*) FROM pg_indexes WHERE schemaname = '{namespace()}' AND tablename = '{table}'"
        assert tables.references.ask("postgres", postgres.query, asked) == [(indexes,)]
        assert tables.differences_in_table("postgres", table) == []


@BOTH
def test_one_changed_value_in_the_table_is_found(system: str, tables: Tables) -> None:
    table, _ = tables.for_read(system)
    frame = pl.read_parquet(tables.dataset.path)
    key = frame["entity_key"][1234]
    change = {
        "postgres": f"UPDATE {namespace()}.{table} SET metric_3 = -1 WHERE entity_key = '{key}'",
        "clickhouse": f"ALTER TABLE {namespace()}.{table} UPDATE metric_3 = -1 WHERE entity_key = '{key}' "
        "SETTINGS mutations_sync = 1",
    }
    tables.say(system, change[system])
    (line,) = tables.differences_in_table(system, table)
    assert line.startswith("metric_3: 1 of 3000 values differ")
    assert key in line


@WITH_SUMS
def test_many_rows_are_compared_by_sums_without_a_copy_of_them(
    system: str, tables: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "_summed_above", 2_000)
    monkeypatch.setattr(SYSTEMS[system].client, "fetch", None)
    table, _ = tables.for_read(system)
    assert tables.differences_in_table(system, table) == []
    frame, back = pl.read_parquet(tables.dataset.path), tmp_path / "back.arrow"
    frame.sample(fraction=1, shuffle=True, seed=1).write_ipc(back)
    assert tables.differences_in_file(str(back), "pandas") == []
    frame.with_columns(metric_3=-pl.col("metric_3")).write_ipc(back)
    assert tables.differences_in_file(str(back), "polars") == ["metric_3: other values than expected"]
    key = frame["entity_key"][7]
    tables.say(system, f"DELETE FROM {namespace()}.{table} WHERE entity_key = '{key}'")
    assert tables.differences_in_table(system, table) == ["expected 3000 rows, found 2999"]


@BOTH
def test_many_rows_of_a_database_that_cannot_sum_them_are_compared_value_by_value(
    system: str, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_summed_above", 2_000)
    monkeypatch.setattr(System, "lacks", lambda of, part: f"no {part}")
    table, _ = tables.for_read(system)
    assert tables.differences_in_table(system, table) == []


@pytest.mark.long
@BOTH
def test_what_a_database_may_have_lost_with_its_server_is_loaded_again(
    system: str, tables: Tables, embedded_lab: EmbeddedLab
) -> None:
    names = tables.for_read(system)
    for name in names:
        SYSTEMS[system].client.drop(connection(system, embedded_lab), name)
    tables.references.forget(system)
    assert tables.for_read(system) == names
    assert tables.differences_in_table(system, names[0]) == []


@BOTH
def test_tables_for_writes_are_empty_again_each_time(system: str, tables: Tables, embedded_lab: EmbeddedLab) -> None:
    table, _ = tables.for_write(system)
    opened = connection(system, embedded_lab)
    SYSTEMS[system].client.load(opened, table, tables.dataset.path, SPEC.logical_types)
    tables.for_write(system)
    assert tables.differences_in_table(system, table) == ["expected 3000 rows, found 0"]


@BOTH
def test_a_table_without_the_labs_mark_is_never_touched(system: str, embedded_lab: EmbeddedLab) -> None:
    opened = connection(system, embedded_lab)
    definition = {
        "postgres": f"CREATE TABLE {namespace()}.precious (id integer)",
        "clickhouse": f"CREATE TABLE {namespace()}.precious (id Int32) ENGINE = MergeTree ORDER BY id",
    }
    SYSTEMS[system].client.say(opened, definition[system])
    try:
        SYSTEMS[system].client.say(opened, f"INSERT INTO {namespace()}.precious VALUES (1)")
        for refused in (
            lambda: SYSTEMS[system].client.drop(opened, "precious"),
            lambda: SYSTEMS[system].client.create(opened, "precious", SYSTEMS[system].tables.definition(SPEC, "keyed")),
        ):
            with pytest.raises(LabError, match="was not made by the lab"):
                refused()
        assert SYSTEMS[system].client.fetch(opened, "precious").num_rows == 1
    finally:
        SYSTEMS[system].client.say(opened, f"DROP TABLE {namespace()}.precious")


def test_a_table_that_could_not_be_marked_is_not_left_in_postgres(
    embedded_lab: EmbeddedLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, definition = connection("postgres", embedded_lab), "CREATE TABLE {table} (a INTEGER)"
    try:
        with monkeypatch.context() as broken:
            broken.setattr(postgres, "MARK", "cut off here: \0")
            with pytest.raises(Exception, match="unterminated quoted string"):
                postgres.create(opened, "half_made", definition)
        postgres.create(opened, "half_made", definition)  # the lab would refuse it if it existed without a mark
        assert postgres.fetch(opened, "half_made").num_rows == 0
        postgres.drop(opened, "half_made")
    finally:
        opened.close()


@BOTH
def test_a_namespace_without_the_labs_mark_is_refused(system: str, embedded_lab: EmbeddedLab) -> None:
    opened = connection(system, embedded_lab)
    strip, restore = {
        "postgres": (f"COMMENT ON SCHEMA {namespace()} IS NULL", f"COMMENT ON SCHEMA {namespace()} IS '{MARK}'"),
        "clickhouse": (
            f"ALTER DATABASE {namespace()} MODIFY COMMENT ''",
            f"ALTER DATABASE {namespace()} MODIFY COMMENT '{MARK}'",
        ),
    }[system]
    SYSTEMS[system].client.say(opened, strip)
    try:
        with pytest.raises(LabError, match="was not made by the lab"):
            SYSTEMS[system].client.ensure_namespace(opened)
    finally:
        SYSTEMS[system].client.say(opened, restore)


def test_the_table_has_the_published_shape_in_postgres(tables: Tables) -> None:
    table, _ = tables.for_write("postgres")
    ask = partial(tables.references.ask, "postgres", postgres.query)
    columns = ask(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        f"WHERE table_schema = '{namespace()}' AND table_name = '{table}' ORDER BY ordinal_position"
    )
    of = f"'{namespace()}.{table}'::regclass"
    key = ask(f"SELECT array_length(conkey, 1) FROM pg_constraint WHERE contype = 'p' AND conrelid = {of}")
    assert [name for name, _, _ in columns] == list(SPEC.logical_types)
    assert {name: sql_type for name, sql_type, _ in columns}["entity_key"] == "uuid"
    assert {nullable for _, _, nullable in columns} == {"NO"}
    assert key == [(9,)]


def test_the_table_has_the_published_shape_in_clickhouse(tables: Tables, embedded_lab: EmbeddedLab) -> None:
    table, _ = tables.for_write("clickhouse")
    client = clickhouse.open_connection(embedded_lab.endpoints)
    ((engine, partition, sorting),) = client.query(
        "SELECT engine, partition_key, sorting_key FROM system.tables "
        f"WHERE database = '{namespace()}' AND name = '{table}'"
    ).result_rows
    types = dict(
        client.query(
            f"SELECT name, type FROM system.columns WHERE database = '{namespace()}' AND table = '{table}'"
        ).result_rows
    )
    assert (engine, partition, sorting.count(",") + 1) == ("MergeTree", "toYYYYMM(event_date)", 9)
    assert (types["dimension_a"], types["dimension_b"]) == ("LowCardinality(String)", "String")
    assert (types["entity_key"], types["event_date"]) == ("UUID", "Date")


SERVERS = ("postgres", "clickhouse")
ONE, OTHER = "one_of_two_labs", "other_of_two_labs"
DEFINITION = {"postgres": "CREATE TABLE {table} (n int)", "clickhouse": "CREATE TABLE {table} (n Int32) ENGINE Memory"}
A_MINUTE = "SELECT sleepEachRow(0.05) FROM numbers(1200) SETTINGS max_block_size = 1"


@pytest.fixture
def as_lab(monkeypatch, embedded_lab):
    """Connect as the lab of a namespace; both namespaces go at the end."""

    @contextmanager
    def opened(system, name):
        monkeypatch.setenv("LAB_NAMESPACE", name)
        client = SYSTEMS[system].client
        with closing(client.open_connection(embedded_lab.endpoints)) as connection:
            client.ensure_namespace(connection)
            yield client, connection

    yield opened
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as connection:
        for name in (ONE, OTHER):
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    with closing(clickhouse.open_connection(embedded_lab.endpoints)) as client:
        for name in (ONE, OTHER):
            client.command(f"DROP DATABASE IF EXISTS {name} SYNC")


@pytest.mark.parametrize("system", SERVERS)
def test_a_table_of_one_lab_is_none_of_the_other(as_lab, system):
    for name in (ONE, OTHER):
        with as_lab(system, name) as (client, connection):
            client.create(connection, "same", DEFINITION[system])
            client.fill(connection, "same", f"INSERT INTO {{table}} VALUES ({len(name)})")
    with as_lab(system, ONE) as (client, connection):
        assert client.fetch(connection, "same").to_pydict() == {"n": [len(ONE)]}
        client.drop(connection, "same")
    with as_lab(system, OTHER) as (client, connection):
        assert client.fetch(connection, "same").to_pydict() == {"n": [len(OTHER)]}


def test_each_lab_holds_its_own_namespace_of_a_server(as_lab, monkeypatch):
    with as_lab("postgres", ONE) as (_, first), as_lab("postgres", OTHER) as (_, second):
        monkeypatch.setenv("LAB_NAMESPACE", ONE)
        assert postgres.hold(first, "run-1") == ""
        assert postgres.hold(second, "run-2") == "run-1"
        monkeypatch.setenv("LAB_NAMESPACE", OTHER)
        assert postgres.hold(second, "run-2") == ""
        assert postgres.hold(first, "run-1") == "run-2"


def test_only_its_own_lab_ends_a_session_in_postgres(as_lab, embedded_lab):
    with as_lab("postgres", ONE) as (client, connection):
        client.create(connection, "locked", DEFINITION["postgres"])
        uri = client.transport_uri("postgres", embedded_lab.endpoints["postgres"])
        with closing(psycopg.connect(uri)) as worker:
            worker.execute("LOCK TABLE locked")
            with as_lab("postgres", OTHER) as (_, neighbour):
                client.settle(neighbour)
            assert worker.execute("SELECT 1").fetchone() == (1,)
            with as_lab("postgres", ONE):
                client.settle(connection)
            with pytest.raises(psycopg.OperationalError):
                worker.execute("SELECT 1")


def test_only_its_own_lab_ends_a_query_in_clickhouse(as_lab, embedded_lab):
    with as_lab("clickhouse", ONE) as (client, connection):
        uri = client.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])
        asking = threading.Thread(target=partial(httpx.post, uri, content=A_MINUTE, timeout=90), daemon=True)
        asking.start()
        running = f"SELECT count() FROM system.processes WHERE current_database = '{ONE}'"
        until(lambda: connection.command(running))
        with as_lab("clickhouse", OTHER) as (_, neighbour):
            client.settle(neighbour)
        assert connection.command(running)
        with as_lab("clickhouse", ONE):
            client.settle(connection)
        until(lambda: not connection.command(running))
        asking.join()
