"""Two labs on one server, each with a namespace of its own, do not touch one another."""

import threading
from contextlib import closing, contextmanager
from functools import partial

import httpx
import psycopg
import pytest

from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from harness.systems.postgres import client as postgres
from tests.waiting import until

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


def test_sessions_in_postgres_end_by_the_word_of_their_own_lab_alone(as_lab, embedded_lab):
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


def test_queries_in_clickhouse_end_by_the_word_of_their_own_lab_alone(as_lab, embedded_lab):
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
