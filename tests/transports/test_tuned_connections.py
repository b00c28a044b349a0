"""The connections of the tuned transports stay usable: a hundred calls, good and refused ones in any order."""

import json
import random
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import clickhouse_driver
import polars as pl
import psycopg
import pytest
from arrow_wire import UnsupportedType
from psycopg.pq import TransactionStatus

from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.http_client import tuned as clickhouse_tuned
from harness.transports.postgres.psycopg import tuned

pytestmark = [pytest.mark.process, pytest.mark.long]

CALLS = 105
ROWS = 45_000  # enough for a slice on every connection
FRAME = pl.DataFrame(
    {
        "id": [str(uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % 2**128)) for n in range(ROWS)],
        "number": pl.Series(range(ROWS), dtype=pl.Int32),
        "text": [f"{n:>60}" for n in range(ROWS)],
    }
)
NO_UUID = FRAME.with_columns(pl.when(pl.col("number") == ROWS - 1).then(pl.lit("no")).otherwise("id").alias("id"))
Calls = dict[str, Callable[[], object]]


def in_any_order(calls: Calls, check: Callable[[str], None]) -> None:
    """Make every call about equally often, more than a hundred in all, each after every other call.

    Before them a table changes some times without a refusal between: only then a client keeps its prepared statements.
    """
    order = [name for name in calls for _ in range(-(-CALLS // len(calls)))]
    random.Random(20260407).shuffle(order)
    for name in ["changed"] * 8 + order:
        calls[name]()
        check(name)


def refused(error: type[Exception], text: str, function: Callable[..., object], *given: object) -> Callable[[], object]:
    def call() -> None:
        with pytest.raises(error, match=text):
            function(*given)

    return call


@pytest.fixture
def server(uri: str):
    """A connection apart from those of the transports, and a table to read."""
    with psycopg.connect(uri, autocommit=True) as connection:
        drop = "DROP TABLE IF EXISTS kept, changing, priced, endless, written CASCADE"
        connection.execute(drop)
        connection.execute("CREATE TABLE kept (id uuid, number integer, text text); CREATE TABLE changing (a integer)")
        connection.execute("CREATE TABLE priced (price point); CREATE TABLE endless (day date, text text)")
        connection.execute("CREATE TABLE written (id uuid PRIMARY KEY, number integer CHECK (number >= 0), text text)")
        connection.execute(
            "INSERT INTO endless SELECT CASE n WHEN 40000 THEN 'infinity' ELSE date '2026-01-01' END, "
            "repeat('x', 100) FROM generate_series(1, 50000) n"
        )
        connection.execute("CREATE VIEW broken AS SELECT 1 / (number - 40000) AS number, text FROM kept")
        with tuned.connect(uri) as connections:
            tuned.write_polars_tuned(connections, FRAME, "kept")
        yield connection
        connection.execute(drop)


def test_connections_of_the_postgres_read_survive_a_hundred_mixed_calls(uri: str, server: psycopg.Connection) -> None:
    with tuned.connect(uri) as connections:
        read = tuned.read_polars_tuned

        def good() -> None:
            assert read(connections, "kept").sort("number").equals(FRAME)

        def changed() -> None:
            columns = read(connections, "changing").columns
            server.execute("ALTER TABLE changing " + ("DROP b" if "b" in columns else "ADD b text DEFAULT 'new'"))
            assert read(connections, "changing").columns == (["a"] if "b" in columns else ["a", "b"])

        def anew() -> None:
            server.execute("DROP TABLE changing; CREATE TABLE changing (a double precision)")
            assert read(connections, "changing").schema == {"a": pl.Float64}

        calls: Calls = {
            "good": good,
            "changed": changed,
            "anew": anew,
            "missing": refused(psycopg.errors.UndefinedTable, "nothing", read, connections, "nothing"),
            "infinite": refused(ValueError, "has no infinity", read, connections, "endless"),
            "broken": refused(psycopg.DatabaseError, "division by zero", read, connections, "broken"),
        }
        in_any_order(calls, unharmed(connections))


def test_connections_of_the_postgres_write_survive_a_hundred_mixed_calls(uri: str, server: psycopg.Connection) -> None:
    with tuned.connect(uri) as connections:
        write = tuned.write_polars_tuned

        def good() -> None:
            write(connections, FRAME, "written")
            assert server.execute("SELECT count(*), sum(number) FROM written").fetchone() == (ROWS, sum(range(ROWS)))
            server.execute("TRUNCATE written")

        def changed() -> None:
            server.execute("DROP TABLE changing; CREATE TABLE changing (a integer)")
            write(connections, pl.DataFrame({"a": [1]}), "changing")
            server.execute("ALTER TABLE changing ALTER a TYPE double precision")
            write(connections, pl.DataFrame({"a": [1.5]}), "changing")
            assert server.execute("SELECT a FROM changing").fetchall() == [(1.0,), (1.5,)]

        def rejected(error: type[Exception], text: str, frame: pl.DataFrame, table: str) -> Callable[[], object]:
            return refused(error, text, write, connections, frame, table)

        negative = FRAME.with_columns(pl.when(pl.col("number") == 7).then(-1).otherwise("number").alias("number"))
        errors = psycopg.errors
        calls: Calls = {
            "good": good,
            "changed": changed,
            "unsupported": rejected(UnsupportedType, "price", pl.DataFrame({"price": [1.5]}), "priced"),
            "missing": rejected(errors.UndefinedTable, "nothing", FRAME, "nothing"),
            "no such column": rejected(errors.UndefinedColumn, "z", pl.DataFrame({"z": [1]}), "written"),
            "no uuid": rejected(ValueError, "id", NO_UUID, "written"),
            "duplicate": rejected(errors.UniqueViolation, "key", pl.concat([FRAME, FRAME.tail(1)]), "written"),
            "check": rejected(errors.CheckViolation, "number", negative, "written"),
        }
        in_any_order(calls, unharmed(connections))


def unharmed(connections: list[psycopg.Connection]) -> Callable[[str], None]:
    """Return a check that these are still the connections that were opened, and idle."""
    opened = [connection.info.backend_pid for connection in connections]

    def check(name: str) -> None:
        assert [connection.closed for connection in connections] == [False] * len(opened), f"closed after: {name}"
        assert [connection.info.backend_pid for connection in connections] == opened
        states = [connection.info.transaction_status for connection in connections]
        assert states == [TransactionStatus.IDLE] * len(opened), f"not idle after: {name}"

    return check


@pytest.fixture
def clickhouse_server(embedded_lab):
    with clickhouse_driver.Client.from_url(embedded_lab.endpoints["clickhouse_native"]) as client:
        make = (
            "CREATE DATABASE lasting",
            "USE lasting",
            "CREATE TABLE kept (id UUID, number Int32, text String) ENGINE = MergeTree ORDER BY number",
            "CREATE TABLE changing (a Int32) ENGINE = MergeTree ORDER BY ()",
            "CREATE TABLE priced (price AggregateFunction(sum, Int8)) ENGINE = MergeTree ORDER BY ()",
            "CREATE TABLE written (id UUID, number Int32, text String) ENGINE = MergeTree ORDER BY number",
            "CREATE VIEW broken AS SELECT throwIf(number = 40000, 'forty thousand') AS thrown, text FROM kept",
        )
        for statement in make:
            client.execute(statement)
        with clickhouse_tuned.connect(lasting(embedded_lab)) as connection:
            clickhouse_tuned.write_polars_tuned(connection, FRAME, "kept")
        yield client
        client.execute("DROP DATABASE lasting")


def lasting(lab) -> str:
    return clickhouse.transport_uri("clickhouse_http", lab.endpoints["clickhouse_http"]) + "&database=lasting"


def test_the_connection_of_the_clickhouse_read_survives_a_hundred_mixed_calls(
    embedded_lab, clickhouse_server: clickhouse_driver.Client
) -> None:
    server = clickhouse_server
    with clickhouse_tuned.connect(lasting(embedded_lab)) as connection:
        read = clickhouse_tuned.read_polars_tuned

        def good() -> None:
            assert read(connection, "kept").sort("number").equals(FRAME)

        def changed() -> None:
            columns = read(connection, "changing").columns
            server.execute("ALTER TABLE changing " + ("DROP COLUMN b" if "b" in columns else "ADD COLUMN b String"))
            assert read(connection, "changing").columns == (["a"] if "b" in columns else ["a", "b"])

        def anew() -> None:
            server.execute("DROP TABLE changing")
            server.execute("CREATE TABLE changing (a Float64) ENGINE = MergeTree ORDER BY ()")
            assert read(connection, "changing").schema == {"a": pl.Float64}

        calls: Calls = {
            "good": good,
            "changed": changed,
            "anew": anew,
            "unsupported": refused(UnsupportedType, "price", read, connection, "priced"),
            "missing": refused(RuntimeError, "nothing", read, connection, "nothing"),
            "broken": refused(RuntimeError, "forty thousand", read, connection, "broken"),
        }
        in_any_order(calls, lambda _: None)


def test_the_connections_of_the_clickhouse_write_survive_a_hundred_mixed_calls(
    embedded_lab, clickhouse_server: clickhouse_driver.Client
) -> None:
    server = clickhouse_server
    with clickhouse_tuned.connect(lasting(embedded_lab)) as connection:
        write = clickhouse_tuned.write_polars_tuned

        def good() -> None:
            server.execute("TRUNCATE TABLE written")  # rows written before a failure stay
            write(connection, FRAME, "written")
            assert server.execute("SELECT count(), sum(number) FROM written") == [(ROWS, sum(range(ROWS)))]

        def changed() -> None:
            server.execute("DROP TABLE changing")
            server.execute("CREATE TABLE changing (a Int64) ENGINE = MergeTree ORDER BY ()")
            write(connection, pl.DataFrame({"a": [1]}), "changing")
            server.execute("ALTER TABLE changing MODIFY COLUMN a Float64")
            write(connection, pl.DataFrame({"a": [1.5]}), "changing")
            assert sorted(server.execute("SELECT a FROM changing")) == [(1.0,), (1.5,)]

        def rejected(error: type[Exception], text: str, frame: pl.DataFrame, table: str) -> Callable[[], object]:
            return refused(error, text, write, connection, frame, table)

        calls: Calls = {
            "good": good,
            "changed": changed,
            "unsupported": rejected(UnsupportedType, "price", pl.DataFrame({"price": [1.5]}), "priced"),
            "missing": rejected(RuntimeError, "nothing", FRAME, "nothing"),
            "no such column": rejected(UnsupportedType, "z", pl.DataFrame({"z": [1]}), "written"),
            "no uuid": rejected(ValueError, "id", NO_UUID, "written"),
        }
        in_any_order(calls, lambda _: None)


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(
    embedded_lab, clickhouse_server: clickhouse_driver.Client
) -> None:
    with clickhouse_tuned.connect(lasting(embedded_lab)) as connection:
        for client in connection.clients:
            client.sock.shutdown(socket.SHUT_RDWR)
        assert len(clickhouse_tuned.read_polars_tuned(connection, "kept")) == ROWS
    with clickhouse_tuned.connect(lasting(embedded_lab)) as connection:
        for client in connection.clients:
            client.sock.shutdown(socket.SHUT_RDWR)
        clickhouse_tuned.write_polars_tuned(connection, FRAME, "written")
    assert clickhouse_server.execute("SELECT count() FROM written") == [(ROWS,)]


def test_a_password_is_sent_as_utf_8(tmp_path: Path) -> None:
    users = tmp_path / "users.json"
    users.write_text(json.dumps({"us€r": "pässwörd€"}), encoding="utf-8")
    command = [sys.executable, "-m", "harness.systems.clickhouse.gateway", "--path", str(tmp_path / "data")]
    with subprocess.Popen([*command, "--users-file", str(users)], stdout=subprocess.PIPE, text=True) as server:
        try:
            port = json.loads(server.stdout.readline())["http_port"]
            with clickhouse_tuned.connect(f"http://{quote('us€r')}:{quote('pässwörd€')}@127.0.0.1:{port}"):
                pass
        finally:
            server.terminate()
