"""Few rows: how often a call waits for the server, and calls during which another session replaces the table."""

import datetime as dt
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import psycopg
import pyarrow as pa
import pytest
from arrow_wire import (
    Conflict,
    Disconnected,
    Error,
    ServerError,
    UnsupportedType,
    clickhouse,
    clickhouse_read,
    clickhouse_write,
    postgres,
    postgres_read,
)

from clickhouse_server import DATABASE, Server

FRAME = pl.DataFrame({"number": pl.Series(range(100), dtype=pl.Int32), "text": [f"text {n}" for n in range(100)]})


class Turns:
    """Forwards connections to a server, and counts how often a client speaks after the server did.

    A connection breaks when the client sends more than `most` bytes over it.
    """

    def __init__(self, uri: str, most: int) -> None:
        parts = urlsplit(uri)
        self._to = (parts.hostname, parts.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        place = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.uri = uri.replace(f"{parts.hostname}:{parts.port}", place)
        self.turns, self._most = 0, most
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._to)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            last = [server]
            for source, to in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, to, client, last), daemon=True).start()

    def _forward(self, source: socket.socket, to: socket.socket, client: socket.socket, last: list[Any]) -> None:
        size = 0
        try:
            while data := source.recv(1 << 16):
                size += len(data)
                if source is client and size > self._most:
                    client.shutdown(socket.SHUT_RDWR)
                    break
                self.turns += source is client and last[0] is not client
                last[0] = source
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def of(self, call: Callable[[], Any]) -> int:
        before = self.turns
        call()
        return self.turns - before

    def close(self) -> None:
        self._listening.close()


@contextmanager
def counted(uri: str, most: int = 1 << 30) -> Iterator[Turns]:
    turns = Turns(uri, most)
    try:
        yield turns
    finally:
        turns.close()


@pytest.fixture
def few(addresses: Any) -> Iterator[psycopg.Connection]:
    with psycopg.connect(addresses.postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS few")
        connection.execute("CREATE TABLE few (number int, text text)")
        yield connection
        connection.execute("DROP TABLE few")


@pytest.fixture
def parted(addresses: Any, server: Server) -> Iterator[str]:
    columns = "number Int32, text LowCardinality(String)"
    server.ask(f"CREATE OR REPLACE TABLE {DATABASE}.few ({columns}) ENGINE = MergeTree ORDER BY number")
    yield f"{addresses.clickhouse}{'&' if '?' in addresses.clickhouse else '?'}database={DATABASE}"
    server.ask(f"DROP TABLE {DATABASE}.few SYNC")


def test_few_rows_of_postgres_take_two_round_trips(few: psycopg.Connection, addresses: Any) -> None:
    with counted(addresses.postgres) as turns, postgres.connect(turns.uri) as connections:
        assert turns.of(lambda: postgres.write(connections, "few", FRAME)) == 2
        assert turns.of(lambda: postgres.read(connections, "few", as_="polars")) == 2
        assert postgres.read(connections, "SELECT * FROM few ORDER BY 1", as_="polars").equals(FRAME)


@pytest.mark.parametrize("alteration", ["ALTER text TYPE int USING 7", "ADD more int DEFAULT 3", "DROP text"])
def test_a_table_that_changes_after_it_was_asked_for_is_read_as_it_is_then(
    alteration: str, few: psycopg.Connection, addresses: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.write(addresses.postgres, "few", FRAME)
    asked, alterations = postgres_read._few, [alteration]

    def then_altered(*given: Any) -> Any:
        found = asked(*given)
        if alterations:
            few.execute(f"ALTER TABLE few {alterations.pop()}")
        return found

    monkeypatch.setattr(postgres_read, "_few", then_altered)
    found = postgres.read(addresses.postgres, "few")
    assert found.column_names == [column.name for column in few.execute("SELECT * FROM few").description or ()]
    assert [tuple(row.values()) for row in found.to_pylist()] == few.execute("SELECT * FROM few").fetchall()


def test_a_value_that_fails_in_few_rows_leaves_the_connection_usable(few: psycopg.Connection, addresses: Any) -> None:
    with postgres.connect(addresses.postgres) as connections:
        with pytest.raises(ValueError, match='column "number": row 1'):
            postgres.write(connections, "few", pl.DataFrame({"number": [1, 1 << 40]}))
        with pytest.raises(psycopg.errors.UndefinedColumn):
            postgres.write(connections, "few", pl.DataFrame({"absent": [1]}))
        assert postgres.write(connections, "few", FRAME).rows == 100
        assert connections[0].info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert few.execute("SELECT count(*) FROM few").fetchone() == (100,)


def test_a_frame_that_cannot_be_converted_while_the_server_answers_leaves_the_connection_usable(
    few: psycopg.Connection, addresses: Any
) -> None:
    objects = pl.DataFrame({"number": pl.Series([object()], dtype=pl.Object)})
    with postgres.connect(addresses.postgres) as connections:
        with pytest.raises(UnsupportedType, match='column "number": its values are not of one type'):
            postgres.write(connections, "few", objects)
        with pytest.raises(psycopg.errors.UndefinedTable):  # the server's error comes first
            postgres.write(connections, "absent", objects)
        assert postgres.write(connections, "few", FRAME).rows == 100
    assert few.execute("SELECT count(*) FROM few").fetchone() == (100,)


def test_few_rows_of_an_enum_go_in(few: psycopg.Connection, addresses: Any) -> None:
    few.execute("CREATE TYPE mood AS ENUM ('good', 'bad'); ALTER TABLE few ADD mood mood")
    frame = FRAME.with_columns(mood=pl.lit("bad"))
    postgres.write(addresses.postgres, "few", frame)
    assert postgres.read(addresses.postgres, "few", as_="polars").equals(frame)
    few.execute("ALTER TABLE few DROP mood; DROP TYPE mood")


def test_few_rows_of_clickhouse_take_three_requests_in_and_one_out(parted: str) -> None:
    with counted(parted) as turns, clickhouse.connect(turns.uri) as server:
        assert turns.of(lambda: clickhouse.write(server, "few", FRAME)) == 3
        assert turns.of(lambda: clickhouse.read(server, "few", as_="polars")) == 1
        assert clickhouse.read(server, "few", as_="polars").equals(FRAME)


@pytest.mark.parametrize("key", ["number % 2", "text", "tuple()"])
def test_rows_that_turn_out_to_be_of_several_partitions_go_in_once(key: str, parted: str, server: Server) -> None:
    table = f"{DATABASE}.few (number Int32, text String) ENGINE = MergeTree PARTITION BY {key} ORDER BY number"
    server.ask(f"CREATE OR REPLACE TABLE {table}")
    assert clickhouse.write(parted, "few", FRAME.head(10)).rows == 10
    assert server.ask(f"SELECT count(), uniqExact(number) FROM {DATABASE}.few") == b"10\t10\n"


@pytest.mark.parametrize("few", [True, False])
def test_rows_of_several_partitions_go_straight_in_where_they_need_not_be_whole(
    few: bool, parted: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"{DATABASE}.few (number Int32, day Date) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY number"
    server.ask(f"CREATE OR REPLACE TABLE {table}")
    monkeypatch.setattr(clickhouse_write, "_staged", None)
    if not few:
        monkeypatch.setattr(clickhouse_write, "ONE_BLOCK_ROWS", 1)
    days = [dt.date(2025, month, 1) for month in range(1, 13)]
    frame = pl.DataFrame({"number": pl.Series(range(12), dtype=pl.Int32), "day": days})
    assert clickhouse.write(parted, "few", frame, atomic=False).rows == 12
    assert clickhouse.write(parted, "few", frame.clear(), atomic=False).rows == 0
    assert clickhouse.read(parted, "SELECT * FROM few ORDER BY number", as_="polars").equals(frame)
    with counted(parted) as turns, clickhouse.connect(turns.uri) as connected:
        assert turns.of(lambda: clickhouse.write(connected, "few", frame.head(1), atomic=False)) == 2


def test_one_row_takes_two_requests_of_clickhouse_and_then_one(parted: str) -> None:
    with counted(parted) as turns, clickhouse.connect(turns.uri) as server:
        assert turns.of(lambda: clickhouse.write(server, "few", FRAME.head(1))) == 2
        assert turns.of(lambda: clickhouse.write(server, "few", FRAME.head(1))) == 1
        assert turns.of(lambda: clickhouse.write(server, "few", FRAME.head(2))) == 2
        assert clickhouse.read(server, "few", as_="polars")["number"].sort().to_list() == [0, 0, 0, 1]


CHANGES = [
    ("Int32", 1, "Int64", 1 << 40, 1 << 40),
    ("Int32", 1, "UInt32", 2, 2),
    ("UInt8", 1, "Bool", 5, "5 does not fit Bool"),
    ("Array(UInt8)", [1], "Array(Bool)", [5], "does not fit"),
    ("Int64", 1, "Int8", 300, 'column "v": row 0: 300 does not fit Int8'),
    ("String", "a", "Nullable(String)", "b", "b"),
    ("Nullable(String)", "a", "String", "b", "b"),
    ("Nullable(String)", None, "String", None, 'column "v": String takes no null'),
    ("String", "a", "LowCardinality(String)", "b", "b"),
    ("Enum8('a' = 1, 'b' = 2)", "a", "Enum8('a' = 2, 'b' = 1)", "b", "b"),
    ("Enum8('a' = 1, 'b' = 2)", "a", "Enum8('a' = 1)", "b", "b' is not a value of Enum8"),
    ("DateTime64(6)", dt.datetime(2025, 1, 1), "DateTime64(3)", dt.datetime(2025, 1, 1, 0, 0, 0, 1), "exactly"),
    ("Decimal(9, 2)", 1, "Decimal(9, 1)", Decimal("1.25"), "exactly"),
    ("Array(Int32)", [1], "Array(Int64)", [1 << 40], [1 << 40]),
    ("Tuple(a Int32, b Int32)", {"a": 1, "b": 2}, "Tuple(b Int32, a Int32)", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ("String", "a", "", "b", 'column "v": the table has no such column'),
]


@pytest.mark.parametrize(("before", "first", "after", "second", "expected"), CHANGES)
@pytest.mark.parametrize("earlier", ["few", "earlier"])
def test_types_that_were_others_before_change_no_value(
    earlier: str, before: str, first: Any, after: str, second: Any, expected: Any, parted: str, server: Server
) -> None:
    def create(name: str, sql_type: str) -> None:
        columns = f"n Int32, v {sql_type}" if sql_type else "n Int32"
        server.ask(f"CREATE OR REPLACE TABLE {DATABASE}.{name} ({columns}) ENGINE = MergeTree ORDER BY n")

    def write(name: str, value: Any) -> None:
        clickhouse.write(connected, name, pa.table({"n": pa.array([1], pa.int32()), "v": pa.array([value])}))

    create(earlier, before)
    with clickhouse.connect(parted) as connected:
        write(earlier, first)
        create("few", after)
        if isinstance(expected, str) and len(expected) > 1:
            with pytest.raises(Error, match=re.escape(expected)):
                write("few", second)
            assert rows_of(server) == 0
        else:
            write("few", second)
            assert clickhouse.read(connected, "few")["v"].to_pylist() == [expected]
    server.ask(f"DROP TABLE IF EXISTS {DATABASE}.earlier SYNC")


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_blocks_say_what_the_server_says_of_their_columns(
    rows: int, parted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = (
        "number, toString(number) || repeat('x', number), toDateTime(number, 'Asia/Tokyo'), toDateTime64(1, 3, 'UTC'), "
    )
    values += "toNullable(toString(number)), if(number % 2 = 0, NULL, toDate(1)), toDecimal128(1, 5), [number], "
    values += "toLowCardinality('a'), CAST('a', 'Enum8(\\'a\\' = 1)'), toUUID('00000000-0000-0000-0000-000000000001')"
    for chosen in (values, ", ".join(part for part in values.split(", ")[:1]), values.partition(", toDateTime(")[0]):
        query = f"SELECT {chosen} FROM system.numbers LIMIT {rows}"
        found = clickhouse.read(parted, query)
        with monkeypatch.context() as patch:
            patch.setattr(clickhouse_read, "_columns_in", lambda data: None)
            assert clickhouse.read(parted, query).equals(found, check_metadata=True)
        assert found.num_rows == rows


YEAR = pl.DataFrame(
    {"number": pl.Series(range(12), dtype=pl.Int32), "day": [dt.date(2025, month, 1) for month in range(1, 13)]}
)


@pytest.fixture
def by_month(parted: str, server: Server) -> str:
    """The address of a table whose index fails for the number 11, which is of the last of twelve partitions."""
    columns = "number Int32, day Date, CONSTRAINT small CHECK number < 100, INDEX i intDiv(1, 11 - number) TYPE minmax"
    engine = "MergeTree PARTITION BY toYYYYMM(day) ORDER BY number SETTINGS parts_to_throw_insert = 2"
    server.ask(f"CREATE OR REPLACE TABLE {DATABASE}.few ({columns}) ENGINE = {engine}")
    return parted


def rows_of(server: Server) -> int:
    return int(server.ask(f"SELECT count() FROM {DATABASE}.few"))


def test_few_rows_of_several_partitions_take_three_requests(by_month: str, server: Server) -> None:
    with counted(by_month) as turns, clickhouse.connect(turns.uri) as connected:
        frame = YEAR.head(11)
        assert turns.of(lambda: clickhouse.write(connected, "few", frame)) == 3
        assert turns.of(lambda: clickhouse.write(connected, "few", frame, atomic=True)) > 3
    assert rows_of(server) == 22


@pytest.mark.parametrize(("atomic", "left"), [(None, False), (True, False), (False, True)])
def test_a_partition_that_the_server_cannot_write_leaves_no_other(
    atomic: bool | None, left: bool, by_month: str, server: Server
) -> None:
    with pytest.raises(ServerError, match="ILLEGAL_DIVISION"):
        clickhouse.write(by_month, "few", YEAR, atomic=atomic)
    assert (rows_of(server) > 0) == left


def test_a_row_that_a_constraint_refuses_leaves_no_row_of_another_partition(by_month: str, server: Server) -> None:
    frame = YEAR.with_columns(number=pl.Series([*range(10), 12, 100], dtype=pl.Int32))
    with pytest.raises(ServerError, match="VIOLATED_CONSTRAINT"):
        clickhouse.write(by_month, "few", frame)
    assert rows_of(server) == 0


def test_a_partition_with_too_many_parts_leaves_no_row_of_another(by_month: str, server: Server) -> None:
    server.ask(f"SYSTEM STOP MERGES {DATABASE}.few")
    for _ in range(2):
        clickhouse.write(by_month, "few", YEAR.head(1))
    with pytest.raises(Conflict, match="TOO_MANY_PARTS"):
        clickhouse.write(by_month, "few", YEAR.head(11).reverse())
    assert rows_of(server) == 2


def test_a_connection_that_breaks_leaves_no_partition_of_few_rows(by_month: str, server: Server) -> None:
    frame = pl.concat([YEAR.head(11)] * 1000).with_columns(number=pl.lit(12, pl.Int32))
    with counted(by_month, most=30_000) as turns, pytest.raises(Disconnected):
        clickhouse.write(turns.uri, "few", frame)
    assert rows_of(server) == 0
    assert clickhouse.write(by_month, "few", frame).rows == rows_of(server) == 11_000


@pytest.mark.parametrize(("key", "settings"), [("day", ""), ("toYYYYMM(day)", " SETTINGS min_rows_for_wide_part = 1")])
def test_few_rows_of_many_partitions_or_wide_parts_go_through_a_second_table(
    key: str, settings: str, parted: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"{DATABASE}.few (day Date) ENGINE = MergeTree PARTITION BY {key} ORDER BY day{settings}"
    server.ask(f"CREATE OR REPLACE TABLE {table}")
    staged, names = clickhouse_write._staged, []

    def noted(server: Any, parts: Any, *given: Any) -> Any:
        names.append(parts[-1])
        return staged(server, parts, *given)

    monkeypatch.setattr(clickhouse_write, "_staged", noted)
    days = pl.date_range(dt.date(2025, 1, 1), dt.date(2025, 4, 10), eager=True)
    assert clickhouse.write(parted, "few", pl.DataFrame({"day": days})).rows == rows_of(server) == 100
    assert names == ["few"]


def test_instants_of_several_months_go_as_one_block(
    parted: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"{DATABASE}.few (at DateTime('Asia/Tokyo')) ENGINE = MergeTree PARTITION BY toYYYYMM(at) ORDER BY at"
    server.ask(f"CREATE OR REPLACE TABLE {table}")
    monkeypatch.setattr(clickhouse_write, "_staged", None)
    clickhouse.write(parted, "few", YEAR.select(at=pl.col("day").cast(pl.Datetime("us", "UTC"))))
    assert server.ask(f"SELECT count(), uniqExact(toYYYYMM(at)) FROM {DATABASE}.few") == b"12\t12\n"


def test_days_of_two_months_are_not_sent_before_the_key_is_known(
    parted: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = f"{DATABASE}.few (number Int32, day Date) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY number"
    server.ask(f"CREATE OR REPLACE TABLE {table}")
    monkeypatch.setattr(clickhouse_write, "_insert_block", None)
    days = [dt.date(2025, 1, 1), dt.date(2025, 2, 1)]
    clickhouse.write(parted, "few", pl.DataFrame({"number": [1, 2], "day": days}), atomic=True)
    assert server.ask(f"SELECT count() FROM {DATABASE}.few") == b"2\n"
