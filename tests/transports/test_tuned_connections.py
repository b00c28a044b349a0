"""The connections of the tuned transports stay usable: a hundred calls, good and refused ones in any order."""

import json
import random
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import polars as pl
import psycopg
import pytest
from arrow_wire import UnsupportedType
from psycopg.pq import TransactionStatus

from harness.lab.embedded import EmbeddedLab
from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.http_client import tuned as clickhouse_tuned
from harness.transports.postgres.psycopg import tuned as postgres_tuned
from tests.transports.tuned_calls import own_database

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
NEGATIVE = FRAME.with_columns(pl.when(pl.col("number") == 7).then(-1).otherwise("number").alias("number"))
MERGE_TREE = "ENGINE = MergeTree ORDER BY ()"
# By system: the transports, the end of a table's definition, tables, and refused reads and writes.
OF = {
    "postgres": {
        "tuned": postgres_tuned,
        "rest": "",
        "floats": "ALTER TABLE changing ALTER a TYPE double precision",
        "tables": (
            "DROP TABLE IF EXISTS kept, changing, priced, endless, written CASCADE",
            "CREATE TABLE kept (id uuid, number integer, text text)",
            "CREATE TABLE changing (a integer)",
            "CREATE TABLE priced (price point)",
            "CREATE TABLE endless AS SELECT CASE n WHEN 40000 THEN 'infinity' ELSE date '2026-01-01' END AS day, "
            "repeat('x', 100) AS text FROM generate_series(1, 50000) n",
            "CREATE TABLE written (id uuid PRIMARY KEY, number integer CHECK (number >= 0), text text)",
            "CREATE VIEW broken AS SELECT 1 / (number - 40000) AS number, text FROM kept",
        ),
        "reads": {
            "nothing": (psycopg.errors.UndefinedTable, "nothing"),
            "endless": (ValueError, "has no infinity"),
            "broken": (psycopg.DatabaseError, "division by zero"),
        },
        "writes": {
            "unsupported": (UnsupportedType, "price", pl.DataFrame({"price": [1.5]}), "priced"),
            "missing": (psycopg.errors.UndefinedTable, "nothing", FRAME, "nothing"),
            "no such column": (psycopg.errors.UndefinedColumn, "z", pl.DataFrame({"z": [1]}), "written"),
            "no uuid": (ValueError, "id", NO_UUID, "written"),
            "duplicate": (psycopg.errors.UniqueViolation, "key", pl.concat([FRAME, FRAME.tail(1)]), "written"),
            "check": (psycopg.errors.CheckViolation, "number", NEGATIVE, "written"),
        },
    },
    "clickhouse": {
        "tuned": clickhouse_tuned,
        "rest": MERGE_TREE,
        "floats": "ALTER TABLE changing MODIFY COLUMN a Float64",
        "tables": (
            "CREATE TABLE kept (id UUID, number Int32, text String) ENGINE = MergeTree ORDER BY number",
            f"CREATE TABLE changing (a Int32) {MERGE_TREE}",
            f"CREATE TABLE priced (price AggregateFunction(sum, Int8)) {MERGE_TREE}",
            "CREATE TABLE written (id UUID, number Int32, text String) ENGINE = MergeTree ORDER BY number",
            "CREATE VIEW broken AS SELECT throwIf(number = 40000, 'forty thousand') AS thrown, text FROM kept",
        ),
        "reads": {
            "priced": (
                UnsupportedType,
                r'"price": AggregateFunction\(sum, Int8\) is not a type that can be read',
            ),
            "nothing": (RuntimeError, "nothing"),
            "broken": (RuntimeError, "forty thousand"),
        },
        "writes": {
            "unsupported": (UnsupportedType, "price", pl.DataFrame({"price": [1.5]}), "priced"),
            "missing": (RuntimeError, "nothing", FRAME, "nothing"),
            "no such column": (UnsupportedType, "z", pl.DataFrame({"z": [1]}), "written"),
            "no uuid": (ValueError, "id", NO_UUID, "written"),
        },
    },
}


@pytest.fixture(params=OF)
def server(request: pytest.FixtureRequest, uri: str, embedded_lab: EmbeddedLab) -> Iterator[SimpleNamespace]:
    """What is above of a system, its address, and a connection apart from those of the transports."""
    if request.param == "postgres":
        with psycopg.connect(uri, autocommit=True) as connection:
            of = SimpleNamespace(**OF["postgres"], uri=uri, say=connection.execute)
            of.rows = lambda query: connection.execute(query).fetchall()
            yield filled(of)
            of.say(of.tables[0])
    else:
        url = clickhouse.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])
        with own_database(embedded_lab, "lasting") as client:
            yield filled(
                SimpleNamespace(
                    **OF["clickhouse"], uri=f"{url}&database=lasting", say=client.execute, rows=client.execute
                )
            )


def filled(of: SimpleNamespace) -> SimpleNamespace:
    for statement in of.tables:
        of.say(statement)
    with of.tuned.connect(of.uri) as connection:
        of.tuned.write_polars_tuned(connection, FRAME, "kept")
    return of


def in_any_order(calls: dict[str, Callable[[], object]], connections: object) -> None:
    """Make every call about equally often, more than a hundred in all, each after every other call.

    Before them a table changes some times without a refusal between: only then a client keeps its prepared statements.
    Connections of Postgres are those that were opened, and idle, after each.
    """
    order = [name for name in calls for _ in range(-(-CALLS // len(calls)))]
    random.Random(20260407).shuffle(order)
    states = partial(states_of, connections if isinstance(connections, list) else [])
    before = states()
    for name in ["changed"] * 8 + order:
        calls[name]()
        assert states() == before, name
    assert {idle for _, _, idle in before} <= {TransactionStatus.IDLE}


def states_of(connections: list[psycopg.Connection]) -> list[tuple[bool, int, TransactionStatus]]:
    return [(one.closed, one.info.backend_pid, one.info.transaction_status) for one in connections]


def refused(call: Callable[..., object], error: type[Exception], text: str, *given: object) -> None:
    with pytest.raises(error, match=text):
        call(*given)


def test_the_connections_of_a_read_survive_a_hundred_mixed_calls(server: SimpleNamespace) -> None:
    with server.tuned.connect(server.uri) as connections:
        read = partial(server.tuned.read_polars_tuned, connections)

        def good() -> None:
            assert read("kept").sort("number").equals(FRAME)

        def changed() -> None:
            columns = read("changing").columns
            server.say("ALTER TABLE changing " + ("DROP COLUMN b" if "b" in columns else "ADD COLUMN b text"))
            assert read("changing").columns == (["a"] if "b" in columns else ["a", "b"])

        def anew() -> None:
            server.say("DROP TABLE changing")
            server.say(f"CREATE TABLE changing (a double precision) {server.rest}")
            assert read("changing").schema == {"a": pl.Float64}

        refusals = {table: partial(refused, read, *said, table) for table, said in server.reads.items()}
        in_any_order({"good": good, "changed": changed, "anew": anew, **refusals}, connections)


def test_the_connections_of_a_write_survive_a_hundred_mixed_calls(server: SimpleNamespace) -> None:
    with server.tuned.connect(server.uri) as connections:
        write = partial(server.tuned.write_polars_tuned, connections)

        def good() -> None:
            write(FRAME, "written")
            assert server.rows("SELECT count(*), sum(number) FROM written") == [(ROWS, sum(range(ROWS)))]
            server.say("TRUNCATE TABLE written")

        def changed() -> None:
            server.say("DROP TABLE changing")
            server.say(f"CREATE TABLE changing (a integer) {server.rest}")
            write(pl.DataFrame({"a": [1]}), "changing")
            server.say(server.floats)
            write(pl.DataFrame({"a": [1.5]}), "changing")
            assert sorted(server.rows("SELECT a FROM changing")) == [(1.0,), (1.5,)]

        refusals = {name: partial(refused, write, *given) for name, given in server.writes.items()}
        in_any_order({"good": good, "changed": changed, **refusals}, connections)


@pytest.mark.parametrize("server", ["clickhouse"], indirect=True)
def test_a_connection_that_the_server_closed_meanwhile_is_opened_again(server: SimpleNamespace) -> None:
    for name, given in (("read", ["kept"]), ("write", [FRAME, "written"])):
        with clickhouse_tuned.connect(server.uri) as connection:
            for client in connection.clients:
                client.sock.shutdown(socket.SHUT_RDWR)
            found = getattr(clickhouse_tuned, f"{name}_polars_tuned")(connection, *given)
            assert found is None or len(found) == ROWS
    assert server.rows("SELECT count() FROM written") == [(ROWS,)]


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
