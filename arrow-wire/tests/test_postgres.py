"""The interface to Postgres: frames of every library in and out, in the caller's transaction, in each mode."""

import datetime as dt
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from arrow_wire import Conflict, Disconnected, Error, ServerError, UnsupportedType, WrongValue, postgres

SCHEMA = "arrow_wire_tests"
FRAME = pl.DataFrame(
    {
        "number": pl.Series([1, 2, None], dtype=pl.Int32),
        "text": ["a", None, 'say "x"'],
        "day": [dt.date(2025, 1, 1), None, dt.date(1969, 12, 31)],
    }
)


@pytest.fixture
def uri(addresses: Any) -> str:
    return addresses.postgres


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(f"CREATE TABLE {SCHEMA}.orders (number int PRIMARY KEY, text text, day date)")
        connection.execute(f"ALTER TABLE {SCHEMA}.orders DROP CONSTRAINT orders_pkey, ALTER number DROP NOT NULL")
        yield connection
        connection.execute(f"DROP SCHEMA {SCHEMA} CASCADE")


def stored(server: psycopg.Connection, table: str = "orders") -> list[tuple[Any, ...]]:
    return server.execute(f'SELECT * FROM {SCHEMA}."{table}" ORDER BY 1').fetchall()


FRAMES = {
    "polars": FRAME,
    "pandas": FRAME.to_pandas().assign(number=pd.array([1, 2, None], "Int32"), day=FRAME["day"].to_list()),
    "pyarrow": FRAME.to_arrow(),
    "a reader": FRAME.to_arrow().to_reader(),
    "a record batch": FRAME.to_arrow().to_batches()[0],
}


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "a reader"])
def test_a_frame_of_any_library_goes_in_and_comes_out(name: str, uri: str, server: psycopg.Connection) -> None:
    written = postgres.write(uri, f"{SCHEMA}.orders", FRAMES[name])
    assert (written.rows, written.bytes > 60) == (3, True)
    assert stored(server) == FRAME.sort("number", nulls_last=True).rows()
    assert postgres.read(uri, f"{SCHEMA}.orders", as_="polars").equals(FRAME)
    assert postgres.read(uri, (SCHEMA, "orders")).to_pylist() == FRAME.to_dicts()
    assert list(postgres.read(uri, f"{SCHEMA}.orders", as_="pandas")["text"])[::2] == ["a", 'say "x"']


@pytest.mark.parametrize("name", FRAMES)
def test_no_rows_are_written_in_the_order_of_a_key_too(name: str, uri: str, server: psycopg.Connection) -> None:
    server.execute(f"CREATE TABLE {SCHEMA}.ordered (number int PRIMARY KEY, text text, day date)")
    table = FRAME[:0].to_arrow()
    none = {
        "polars": FRAME[:0],
        "pandas": table.to_pandas(),
        "pyarrow": table,
        "a reader": pa.RecordBatchReader.from_batches(table.schema, [pa.RecordBatch.from_pylist([], table.schema)]),
        "a record batch": pa.RecordBatch.from_pylist([], table.schema),
    }
    assert postgres.write(uri, f"{SCHEMA}.ordered", none[name]).rows == 0
    assert stored(server, "ordered") == []


def test_a_query_takes_values(uri: str, server: psycopg.Connection) -> None:
    postgres.write(uri, f"{SCHEMA}.orders", FRAME)
    query = f"SELECT number + 1 AS n, text FROM {SCHEMA}.orders WHERE day >= %s AND text LIKE 'a%%' ORDER BY 1;"
    assert postgres.read(uri, query, [dt.date(2025, 1, 1)]).to_pylist() == [{"n": 2, "text": "a"}]
    descending = postgres.read(uri, f"SELECT number FROM {SCHEMA}.orders ORDER BY number DESC NULLS LAST -- so")
    assert descending["number"].to_pylist() == [2, 1, None]


def test_a_stream_hands_out_batches(uri: str, server: psycopg.Connection) -> None:
    query = "SELECT n, 'text ' || n AS text FROM generate_series(1, 200000) n"
    reader = postgres.stream(uri, query)
    assert reader.schema.names == ["n", "text"]
    batches = list(reader)
    assert sum(map(len, batches)) == 200_000
    assert max(map(len, batches)) <= 65_536
    assert postgres.write(uri, (SCHEMA, "made"), postgres.stream(uri, query), mode="create").rows == 200_000
    assert server.execute(f"SELECT count(*), min(text) FROM {SCHEMA}.made").fetchone() == (200_000, "text 1")


def test_a_stream_that_is_left_early_leaves_the_connection_usable(uri: str) -> None:
    with psycopg.connect(uri) as mine:
        reader = postgres.stream(mine, "SELECT n FROM generate_series(1, 3000000) n")
        assert reader.read_next_batch().num_rows
        reader.close()
        del reader
        assert mine.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_connection_of_the_caller_stays_in_its_transaction(
    autocommit: bool, uri: str, server: psycopg.Connection
) -> None:
    before = server.execute("SELECT count(*) FROM pg_stat_activity").fetchone()
    with psycopg.connect(uri, autocommit=autocommit, row_factory=psycopg.rows.dict_row) as mine:
        mine.execute("BEGIN" if autocommit else "SELECT 1")
        postgres.write(mine, (SCHEMA, "orders"), FRAME)
        assert stored(server) == [], "nobody else sees rows of a transaction that is open"
        assert postgres.read(mine, f"SELECT count(*) AS n FROM {SCHEMA}.orders").to_pylist() == [{"n": 3}]
        with pytest.raises(WrongValue):
            postgres.write(mine, (SCHEMA, "orders"), pl.DataFrame({"number": [2**40]}))
        with pytest.raises(ServerError):
            postgres.write(mine, (SCHEMA, "none"), FRAME)
        with pytest.raises(WrongValue):
            postgres.read(mine, "SELECT 'infinity'::date AS day")
        with pytest.raises(ServerError, match="division by zero"):
            postgres.read(mine, "SELECT 1 / (n - 5) FROM generate_series(1, 9) n")
        assert mine.execute("SHOW lock_timeout").fetchone() == {"lock_timeout": "0"}
        mine.execute("COMMIT")
    assert len(stored(server)) == 3
    del before


def test_without_a_transaction_in_autocommit_mode_a_write_is_one(uri: str, server: psycopg.Connection) -> None:
    with psycopg.connect(uri, autocommit=True) as mine:
        postgres.write(mine, (SCHEMA, "orders"), FRAME)
        assert len(stored(server)) == 3


def test_a_table_is_created_from_the_types_of_the_frame(uri: str, server: psycopg.Connection) -> None:
    table = pa.table(
        {
            "u64": pa.array([2**64 - 1], pa.uint64()),
            "money": pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
            "at": pa.array([dt.datetime(2025, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "bytes": pa.array([b"\0"]),
            "lists": pa.array([[1, None]], pa.list_(pa.int32())),
            "label": pa.array(["x"]).dictionary_encode(),
        }
    )
    postgres.write(uri, (SCHEMA, "made"), table, mode="create")
    types = server.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = %s AND table_name = 'made'",
        [SCHEMA],
    ).fetchall()
    assert dict(types) == {
        "u64": "numeric", "money": "numeric", "at": "timestamp with time zone", "bytes": "bytea", "lists": "ARRAY",
        "label": "text",
    }  # fmt: skip
    assert stored(server, "made") == [(2**64 - 1, Decimal("1.25"), table["at"][0].as_py(), b"\0", [1, None], "x")]
    with pytest.raises(Conflict, match="already exists"):
        postgres.write(uri, (SCHEMA, "made"), table, mode="create")
    with pytest.raises(UnsupportedType, match='column "s": Postgres has no type for struct'):
        postgres.write(uri, (SCHEMA, "other"), pa.table({"s": [{"a": 1}]}), mode="create")
    assert server.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.other"]).fetchone() == (None,)


def test_a_replaced_table_has_the_new_rows_or_still_the_old_ones(uri: str, server: psycopg.Connection) -> None:
    for _ in range(2):
        postgres.write(uri, f"{SCHEMA}.orders", FRAME, mode="replace")
        assert len(stored(server)) == 3
    with pytest.raises(WrongValue, match='column "number": row 1'):
        postgres.write(uri, f"{SCHEMA}.orders", pl.DataFrame({"number": [1, 2**40]}), mode="replace")
    assert len(stored(server)) == 3
    postgres.write(uri, f'{SCHEMA}."another.name"', FRAME, mode="replace")
    assert len(stored(server, "another.name")) == 3


def test_progress_is_told_of_all_rows_and_may_end_the_write(uri: str, server: psycopg.Connection) -> None:
    frame = pl.select(number=pl.int_range(200_000, dtype=pl.Int32))
    said: list[int] = []
    assert postgres.write(uri, (SCHEMA, "orders"), frame, progress=said.append).rows == 200_000
    assert said == sorted(said)
    assert said[-1] == 200_000
    assert len(said) > 2

    def enough(rows: int) -> None:
        if rows > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        postgres.write(uri, (SCHEMA, "orders"), frame, progress=enough)
    assert server.execute(f"SELECT count(*) FROM {SCHEMA}.orders").fetchone() == (200_000,)


@pytest.mark.parametrize(
    ("frame", "error", "text"),
    [
        (pl.DataFrame(), WrongValue, "the frame has no columns"),
        (pl.DataFrame({"other": [1]}), ServerError, '"other"'),
        (pl.DataFrame({"number": ["x"]}), WrongValue, 'column "number": row 0'),
        (pl.DataFrame({"day": [{"a": 1}]}), UnsupportedType, 'column "day"'),
        (pl.DataFrame({"number": [1, 2**31]}), WrongValue, 'column "number": row 1: 2147483648 does not fit int4'),
    ],
)
def test_bad_input_is_one_error_of_ours_and_writes_nothing(
    frame: pl.DataFrame, error: type[Error], text: str, uri: str, server: psycopg.Connection
) -> None:
    with postgres.connect(uri) as connections:
        with pytest.raises(error, match=text) as raised:
            postgres.write(connections, (SCHEMA, "orders"), frame)
        assert isinstance(raised.value, Error)
        assert stored(server) == []
        postgres.write(connections, (SCHEMA, "orders"), FRAME)
    assert len(stored(server)) == 3


def test_an_error_of_the_server_is_also_one_of_psycopg(uri: str, server: psycopg.Connection) -> None:
    server.execute(f"ALTER TABLE {SCHEMA}.orders ADD PRIMARY KEY (number)")
    with pytest.raises(Conflict) as raised:
        postgres.write(uri, (SCHEMA, "orders"), pl.DataFrame({"number": [1, 1]}, {"number": pl.Int32}))
    assert isinstance(raised.value, psycopg.errors.UniqueViolation)
    assert raised.value.sqlstate == "23505"
    assert raised.value.diag.constraint_name == "orders_pkey"


def test_what_is_no_frame_and_no_name_is_said(uri: str) -> None:
    with pytest.raises(TypeError, match="dict is not a frame"):
        postgres.write(uri, "orders", {"number": [1]})
    with pytest.raises(WrongValue, match="is not the name of a table"):
        postgres.write(uri, "orders; DROP TABLE x", FRAME)
    with pytest.raises(ValueError, match="mode"):
        postgres.write(uri, "orders", FRAME, mode="upsert")  # type: ignore[arg-type]


TYPES = (
    "true", "1::int2", "7::int8", "0.5::float4", "'nan'::float8", "'x'::text", "'x '::char(3)", "'x'::varchar(9)",
    "'{}'::json", "'{\"a\": 1}'::jsonb", "'\\x00ff'::bytea", "'2025-01-01'::date", "'12:00'::time",
    "'12:00+02'::timetz",
    "now()::timestamp(0)", "'2025-01-01 12:00+02'::timestamptz", "'1 day 2 hours'::interval", "1.50::numeric(9, 2)",
    "1e50::numeric", "'10.0.0.1'::inet", "'7d7c4f3e-0000-0000-0000-000000000001'::uuid", "'(1,2)'::point",
    "ARRAY[1, NULL]", "ARRAY['a', NULL]", "ARRAY['10.0.0.1']::inet[]", "ARRAY[ARRAY[1, 2]]", "NULL::text",
)  # fmt: skip


@pytest.mark.parametrize("how", ["polars", "pandas", "arrow"])
def test_rows_by_copy_are_those_off_the_socket(how: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ", ".join(f"{value} AS c{number}" for number, value in enumerate(TYPES))
    query = f"SELECT {columns}, n FROM generate_series(1, 3000) n ORDER BY n DESC"
    with psycopg.connect(uri) as mine:  # its now() stays
        off_the_socket = postgres.read(mine, query, as_=how)
        monkeypatch.setattr("arrow_wire.postgres_read.sys.platform", "win32")  # where no socket can be shared
        by_copy = postgres.read(mine, query, as_=how)
        batches = list(postgres.stream(mine, query))
        assert sum(map(len, batches)) == 3000
        with pytest.raises(ServerError, match="division by zero"):
            postgres.read(mine, "SELECT 1 / (n - 5000) FROM generate_series(1, 9000) n")
        with pytest.raises(WrongValue, match='column "day": row 0'):
            postgres.read(mine, "SELECT 'infinity'::date AS day")
        assert mine.execute("SELECT 1").fetchone() == (1,)
    if how == "pandas":
        pd.testing.assert_frame_equal(by_copy, off_the_socket)
    else:
        assert by_copy.schema == off_the_socket.schema
        rows, others = (frame.rows() if how == "polars" else frame.to_pylist() for frame in (by_copy, off_the_socket))
        assert repr(rows) == repr(others)  # a NaN is not equal to itself
    assert len(by_copy) == 3000


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_strings_of_a_database_of_another_encoding_are_utf_8_or_an_error(encoding: str, uri: str) -> None:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS arrow_wire_encoded")
        made = f"CREATE DATABASE arrow_wire_encoded ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
        connection.execute(made.encode())
    other = urlsplit(uri)._replace(path="/arrow_wire_encoded", query="").geturl()
    try:
        with psycopg.connect(other, autocommit=True, client_encoding=encoding) as connection:
            connection.execute(b"CREATE TABLE t (n int, v text); INSERT INTO t VALUES (1, 'ascii'), (2, 'caf\xe9')")
        for as_ in ("arrow", "polars", "pandas"):
            if encoding == "LATIN1":
                assert list(postgres.read(other, "t", as_=as_)["v"].to_numpy()) == ["ascii", "café"]
                continue
            with pytest.raises(ServerError, match='invalid byte sequence for encoding "UTF8"'):
                postgres.read(other, "t", as_=as_)
            assert postgres.read(other, "SELECT v FROM t WHERE n = 1", as_=as_).shape == (1, 1)
    finally:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("DROP DATABASE arrow_wire_encoded WITH (FORCE)")


class Dropping:
    """Passes bytes on to a server and back; drops all connections once `after` bytes went to it or came from it."""

    def __init__(self, host: str, port: int) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self._server, self._open, self._left = (host, port), list[socket.socket](), dict[str, int]()
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self, direction: str, after: int) -> None:
        self._left = {direction: after}

    def _accept(self) -> None:
        with suppress(OSError):  # in the end the socket is closed
            while True:
                pair = self.listening.accept()[0], socket.create_connection(self._server)
                self._open += pair
                for one, other, direction in ((*pair, "up"), (*pair[::-1], "down")):
                    threading.Thread(target=self._hand_on, args=(one, other, direction), daemon=True).start()

    def _hand_on(self, one: socket.socket, other: socket.socket, direction: str) -> None:
        ends = [one, other]
        with suppress(OSError):
            while data := one.recv(1 << 16):
                if direction in self._left:
                    self._left[direction] -= len(data)
                    if self._left[direction] < 0:  # later connections are handed on
                        self._left, ends, self._open = {}, self._open, []
                        break
                other.sendall(data)
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.long
def test_a_connection_that_breaks_anywhere_leaves_all_rows_or_none(uri: str, server: psycopg.Connection) -> None:
    parts = urlsplit(uri)
    proxy = Dropping(parts.hostname or "", parts.port or 5432)
    broken = f"127.0.0.1:{proxy.listening.getsockname()[1]}"
    through = parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@{broken}").geturl()
    frame = pl.select(number=pl.int_range(60_000, dtype=pl.Int32))
    for after in (0, 500, 1500, *range(1700, 2400, 50)):
        proxy.drop("down", after)
        with suppress(Disconnected):
            postgres.write(through, (SCHEMA, "orders"), frame)
        assert server.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() == (0,), after
        assert server.execute(f"SELECT count(*) FROM {SCHEMA}.orders").fetchone() in ((0,), (60_000,)), after
        server.execute(f"TRUNCATE {SCHEMA}.orders")
    server.execute(f"INSERT INTO {SCHEMA}.orders SELECT n FROM generate_series(1, 60000) n")
    for after in (0, 500, 1000, 5000, 50_000, 200_000):
        for ask in (postgres.read, lambda *asked: postgres.stream(*asked).read_all()):
            proxy.drop("down", after)
            with pytest.raises(Disconnected):
                ask(through, (SCHEMA, "orders"))
    proxy.listening.close()


def test_strings_that_are_all_null_are_strings_in_pandas_too(addresses: Any) -> None:
    found = postgres.read(addresses.postgres, "SELECT NULL::text AS text, 1 AS number", as_="pandas")
    assert [str(dtype) for dtype in found.dtypes] == ["str", "int32"]
