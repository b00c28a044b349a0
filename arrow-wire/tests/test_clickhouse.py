"""The interface to ClickHouse: frames of every library in and out, in each mode, all rows or none."""

import datetime as dt
import socketserver
import threading
from collections.abc import Iterator
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arrow_wire import (
    Conflict,
    DamagedStream,
    Disconnected,
    Error,
    ServerError,
    UnsupportedType,
    WrongValue,
    clickhouse,
)

from clickhouse_server import DATABASE, Server

FRAME = pl.DataFrame(
    {
        "number": pl.Series([1, 2, 3], dtype=pl.Int32),
        "text": ["a", None, 'say "x"'],
        "day": [dt.date(2025, 1, 1), dt.date(2025, 1, 2), dt.date(2025, 2, 3)],
    }
)
TABLES = ("orders", "made", "other", "another.name")


@pytest.fixture
def uri(addresses: Any, server: Server) -> Iterator[str]:
    for table in TABLES:
        server.ask(f"DROP TABLE IF EXISTS {DATABASE}.`{table}` SYNC")
    server.ask(
        f"CREATE TABLE {DATABASE}.orders (number Int32, text Nullable(String), day Date, "
        "CONSTRAINT c CHECK number < 1e9) ENGINE = MergeTree PARTITION BY toYYYYMM(day) ORDER BY number"
    )
    address = addresses.clickhouse
    yield f"{address}{'&' if '?' in address else '?'}database={DATABASE}"
    assert server.ask(f"SELECT name FROM system.tables WHERE database = '{DATABASE}' AND name LIKE '%staging%'") == b""


def count(server: Server, table: str = "orders") -> int:
    return int(server.ask(f"SELECT count() FROM {DATABASE}.`{table}`"))


FRAMES = {
    "polars": FRAME,
    "pandas": FRAME.to_pandas().assign(day=FRAME["day"].to_list()),
    "pyarrow": FRAME.to_arrow(),
    "a reader": FRAME.to_arrow().to_reader(),
    "a record batch": FRAME.to_arrow().to_batches()[0],
}


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "a reader"])
def test_a_frame_of_any_library_goes_in_and_comes_out(name: str, uri: str) -> None:
    written = clickhouse.write(uri, "orders", FRAMES[name])
    assert (written.rows, written.bytes > 40) == (3, True)
    assert clickhouse.read(uri, "orders", as_="polars").sort("number").equals(FRAME)
    assert clickhouse.read(uri, (DATABASE, "orders")).sort_by("number").to_pylist() == FRAME.to_dicts()
    found = clickhouse.read(uri, "SELECT text FROM orders ORDER BY number LIMIT 1;", as_="pandas")
    pd.testing.assert_frame_equal(found, pd.DataFrame({"text": ["a"]}))


def test_a_reader_goes_in_and_a_stream_comes_out(uri: str, server: Server) -> None:
    query = "SELECT number, toString(number) AS text FROM numbers(500000)"
    assert clickhouse.write(uri, "made", clickhouse.stream(uri, query), mode="create").rows == 500_000
    assert count(server, "made") == 500_000
    assert server.ask(f"SELECT toTypeName(text) FROM {DATABASE}.made LIMIT 1") == b"Nullable(String)\n"
    assert sum(map(len, clickhouse.stream(uri, f"{DATABASE}.made"))) == 500_000


def test_settings_go_with_every_statement(uri: str) -> None:
    query = "SELECT {day:Date} AS day, getSetting('max_threads') AS n"
    settings = {"param_day": "2025-01-01", "max_threads": 3}
    found = clickhouse.read(uri, query, settings=settings).to_pylist()
    assert found == [{"day": dt.date(2025, 1, 1), "n": 3}]
    with pytest.raises(ServerError, match="max_thread"):
        clickhouse.write(uri, "orders", FRAME, settings={"max_threadz": 3})


def test_a_created_table_is_there_with_all_rows_or_not_at_all(uri: str, server: Server) -> None:
    clickhouse.write(uri, "made", FRAME, mode="create")
    assert clickhouse.read(uri, "made", as_="polars").sort("number").equals(FRAME)
    with pytest.raises(Conflict, match="the table made exists; append"):
        clickhouse.write(uri, "made", FRAME, mode="create")
    with pytest.raises(WrongValue, match='column "day"'):
        clickhouse.write(uri, "other", pl.DataFrame({"day": [dt.date(2400, 1, 1)]}), mode="create")
    with pytest.raises(UnsupportedType, match='column "s": ClickHouse has no type for struct'):
        clickhouse.write(uri, "other", pa.table({"s": [{"a": 1}]}), mode="create")
    assert server.ask(f"EXISTS {DATABASE}.other") == b"0\n"


def test_a_replaced_table_has_the_new_rows_or_still_the_old_ones(uri: str, server: Server) -> None:
    for _ in range(2):
        clickhouse.write(uri, "orders", FRAME, mode="replace")
        assert count(server) == 3
    with pytest.raises(ServerError, match="VIOLATED_CONSTRAINT"):
        clickhouse.write(uri, "orders", FRAME.with_columns(number=pl.lit(2_000_000_000, pl.Int32)), mode="replace")
    assert count(server) == 3
    assert b"toYYYYMM" in server.ask(f"SHOW CREATE TABLE {DATABASE}.orders")
    clickhouse.write(uri, "`another.name`", FRAME, mode="replace")
    assert count(server, "another.name") == 3


def test_progress_is_told_of_all_rows_and_may_end_the_write(uri: str, server: Server) -> None:
    days = pl.lit(dt.date(2025, 1, 1)).cast(pl.Int32) + 31 * (pl.col("number") % 3)
    frame = pl.select(number=pl.int_range(300_000, dtype=pl.Int32)).with_columns(day=days.cast(pl.Date))
    said: list[int] = []
    assert clickhouse.write(uri, "orders", frame, progress=said.append).rows == 300_000
    assert said == sorted(said)
    assert said[-1] == 300_000

    def enough(rows: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clickhouse.write(uri, "orders", frame, progress=enough)
    assert count(server) == 300_000


@pytest.mark.parametrize(
    ("frame", "error", "text"),
    [
        (pl.DataFrame(), WrongValue, "the frame has no columns"),
        (pl.DataFrame({"other": [1]}), UnsupportedType, 'column "other": the table has no such column'),
        (pl.DataFrame({"number": ["1", "x"]}), WrongValue, "column \"number\": row 1: 'x' is not a value of Int32"),
        (
            pl.DataFrame({"number": [None]}, {"number": pl.Int32}),
            UnsupportedType,
            'column "number": Int32 takes no null, and the frame has 1',
        ),
        (pl.DataFrame({"day": [{"a": 1}]}), UnsupportedType, 'column "day"'),
    ],
)
def test_bad_input_is_one_error_of_ours_and_writes_nothing(
    frame: pl.DataFrame, error: type[Error], text: str, uri: str, server: Server
) -> None:
    with clickhouse.connect(uri) as connections:
        with pytest.raises(error, match=text) as raised:
            clickhouse.write(connections, "orders", frame)
        assert isinstance(raised.value, Error)
        assert count(server) == 0
        clickhouse.write(connections, "orders", FRAME)
    assert count(server) == 3


def test_a_table_that_is_not_there_and_a_server_that_is_not_there(uri: str, server: Server) -> None:
    with pytest.raises(ServerError, match="UNKNOWN_TABLE"):
        clickhouse.write(uri, "nothing", FRAME)
    with clickhouse.connect(uri) as connections:
        clickhouse.write(connections, "orders", FRAME)  # which tells the types of columns of these names
        for frame in (FRAME, FRAME[:1]):
            with pytest.raises(ServerError, match="UNKNOWN_TABLE"):
                clickhouse.write(connections, "nothing", frame)
    with pytest.raises(ServerError, match="UNKNOWN_TABLE"):
        clickhouse.read(uri, "nothing")
    with pytest.raises(Disconnected, match="refused"):
        clickhouse.read("http://127.0.0.1:9/", "SELECT 1")
    with pytest.raises(WrongValue, match="'clickhouse' is not an address"):
        clickhouse.read("clickhouse://127.0.0.1:9/", "SELECT 1")
    with pytest.raises(WrongValue, match="is not the name of a table"):
        clickhouse.write(uri, "orders; DROP TABLE x", FRAME)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", Disconnected),
        (b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nCode: 1", Disconnected),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", Disconnected),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<ok>", DamagedStream),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n[12]", DamagedStream),
        (b"SSH-2.0-none\r\n", Disconnected),
        (b"", Disconnected),
    ],
)
def test_a_server_that_breaks_off_or_answers_nonsense_is_one_error_of_ours(answer: bytes, error: type[Error]) -> None:
    class Nonsense(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1 << 16)
            self.request.sendall(answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Nonsense) as nonsense:
        threading.Thread(target=nonsense.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{nonsense.server_address[1]}/"
        for call in (lambda: clickhouse.write(address, "orders", FRAME), lambda: clickhouse.read(address, "orders")):
            with pytest.raises(error):
                call()
        nonsense.shutdown()
