"""A tuned write into ClickHouse leaves all rows or none, whatever ends it, and no staging table.

ClickHouse has no unique keys and no deadlocks: a row that it refuses replaces a duplicate here. Few rows go as one
block, more by way of a staging table; the fault tests are of both.
"""

import datetime as dt
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import clickhouse_driver
import polars as pl
import pytest
from arrow_wire import clickhouse_write

from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.http_client import tuned as module
from tests.transports.tuned_calls import WRITES, own_database, writing
from tests.waiting import until

DATABASE = f"{namespace()}_whole"
FEW, MANY = 5_000, 200_000
REFUSALS = (OSError, HTTPException, RuntimeError)
PLAIN, MONTHS = "MergeTree ORDER BY n", "MergeTree PARTITION BY toYYYYMM(d) ORDER BY n"
Write = Callable[[pl.DataFrame], None]


@pytest.fixture(scope="module")
def server(embedded_lab: EmbeddedLab) -> Iterator[clickhouse_driver.Client]:
    with own_database(embedded_lab, DATABASE) as client:
        yield client


@pytest.fixture
def connection(embedded_lab: EmbeddedLab) -> Iterator[Any]:
    uri = clickhouse.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])
    with module.connect(uri.replace(namespace(), DATABASE)) as opened:
        yield opened


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, connection: Any, tmp_path: Path) -> Write:
    """Each of the tuned writes, of a polars frame."""
    return writing(request.param, module, connection, "whole", tmp_path)


def make(server: clickhouse_driver.Client, engine: str = PLAIN, more: str = "") -> None:
    server.execute(f"CREATE OR REPLACE TABLE whole (n UInt32, d Date{more}) ENGINE = {engine}")


def frame_of(rows: int, months: int = 1) -> pl.DataFrame:
    """Return rows of so many months."""
    numbers = pl.select(n=pl.int_range(rows, dtype=pl.UInt32))
    days = pl.lit(dt.date(2025, 1, 1)).cast(pl.Int32) + 31 * (pl.col("n") % months).cast(pl.Int32)
    return numbers.with_columns(d=days.cast(pl.Date))


def settled(server: clickhouse_driver.Client) -> tuple[int, list[tuple[str]]]:
    """Return the number of rows and the other tables, once the server has done its work."""
    busy = "SELECT query FROM system.processes WHERE query LIKE 'INSERT INTO%whole%'"
    until(lambda: not server.execute(busy))
    others = "SELECT name FROM system.tables WHERE database = currentDatabase() AND name != 'whole'"
    return server.execute("SELECT count() FROM whole")[0][0], server.execute(others)


@contextmanager
def spied(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Note which tables were made on the way."""
    made: list[str] = []
    staged = clickhouse_write._staged

    def noted(server: Any, parts: tuple[str, ...], *given: Any) -> Any:
        made.append(parts[-1])
        return staged(server, parts, *given)

    with monkeypatch.context() as patch:
        patch.setattr(clickhouse_write, "_staged", noted)
        yield made


@pytest.mark.long
@pytest.mark.parametrize(
    ("engine", "rows", "months", "goes_as_one"),
    [
        (PLAIN, FEW, 3, True),
        (PLAIN, 150_000, 3, True),
        (PLAIN, 150_001, 3, False),
        (MONTHS, FEW, 1, True),
        (MONTHS, 30_000, 3, True),
        (MONTHS, 30_001, 3, False),
        (MONTHS, 1, 1, True),
        ("MergeTree PARTITION BY n % 2 ORDER BY n", FEW, 1, False),
        ("MergeTree PARTITION BY n % 2 ORDER BY n", 1, 1, True),
        ("Log", FEW, 1, False),
        (PLAIN, 0, 1, True),
    ],
)
def test_few_rows_go_as_one_block(engine, rows, months, goes_as_one, server, monkeypatch, write):
    make(server, engine)
    with spied(monkeypatch) as made:
        write(frame_of(rows, months))
    assert made == ([] if goes_as_one else ["whole"])
    assert settled(server) == (rows, [])
    if goes_as_one and rows:
        parts = "SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'whole' AND active"
        assert server.execute(parts) == [(months if engine == MONTHS else 1,)]


@pytest.mark.parametrize(
    ("settings", "kind"), [("", "Compact"), (" SETTINGS min_bytes_for_wide_part = 0", "Wide")], ids=["none", "its own"]
)
def test_parts_of_15_mb_are_compact_unless_the_table_says_what_they_are_to_be_like(settings, kind, server, connection):
    make(server, PLAIN + settings, ", t String")
    server.execute("SYSTEM STOP MERGES whole")
    module.write_polars_tuned(connection, frame_of(MANY).with_columns(t=pl.lit("x" * 150)), "whole")
    parts = "SELECT part_type, rows FROM system.parts WHERE database = currentDatabase() AND table = 'whole' AND active"
    assert server.execute(parts) == [(kind, MANY // 2)] * 2
    assert settled(server) == (MANY, [])


def test_rows_that_materialized_views_are_to_get_go_through_a_separate_table(server, monkeypatch, write):
    make(server)
    server.execute("CREATE MATERIALIZED VIEW seen ENGINE = Memory AS SELECT n + 1 AS m FROM whole")
    with spied(monkeypatch) as made:
        write(frame_of(FEW))
    assert made == ["whole"]
    assert server.execute("SELECT count(), min(m), max(m) FROM seen") == [(FEW, 1, FEW)]
    server.execute("DROP TABLE seen")


def test_a_block_of_several_partitions_is_refused_by_the_server(server, monkeypatch, connection):
    """The promise does not rest only on this process's knowledge of partitions."""
    make(server, MONTHS)
    monkeypatch.setattr(clickhouse_write, "_goes_as_one_block", lambda *_: True)
    with pytest.raises(RuntimeError, match="Too many partitions for single INSERT block"):
        module.write_polars_tuned(connection, frame_of(30_001, 3), "whole")
    assert settled(server) == (0, [])


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_row_that_the_table_refuses_leaves_nothing(rows, server, write):
    make(server, more=f", CONSTRAINT small CHECK n < {rows - 1}")
    with pytest.raises(RuntimeError, match="VIOLATED_CONSTRAINT"):
        write(frame_of(rows))
    assert settled(server) == (0, [])
    write(frame_of(rows - 1))
    assert settled(server) == (rows - 1, [])


@pytest.mark.parametrize("engine", [PLAIN, MONTHS])
@pytest.mark.parametrize("cut", ["before its first byte", "in its middle", "before its last byte", "behind it"])
def test_a_connection_that_breaks_in_a_block_leaves_nothing(engine, cut, server, monkeypatch, connection):
    make(server, engine)
    send, broken = HTTPConnection.send, list[int]()

    def cutting(self: HTTPConnection, data: Any) -> None:
        if not isinstance(data, memoryview):
            return send(self, data)
        places = {"before its first byte": 0, "in its middle": len(data) // 2, "before its last byte": len(data) - 1}
        broken.append(len(data))
        self.sock.sendall(data[: places.get(cut, len(data))])
        self.sock.shutdown(socket.SHUT_RDWR)
        while self.sock.recv(1 << 16):  # a fast server's answer, which may have come before: it is lost as well
            pass
        raise BrokenPipeError

    with monkeypatch.context() as patch:
        patch.setattr(HTTPConnection, "send", cutting)
        with pytest.raises(REFUSALS):
            module.write_polars_tuned(connection, frame_of(FEW), "whole")
    assert len(broken) == 1
    possible = {(0, ()), (FEW, ())} if cut == "behind it" else {(0, ())}  # the client cannot know
    rows, others = settled(server)
    assert (rows, tuple(others)) in possible
    module.write_polars_tuned(connection, frame_of(FEW), "whole")
    rows, others = settled(server)
    assert (rows - FEW, tuple(others)) in possible


def test_a_connection_that_breaks_between_blocks_leaves_nothing(server, monkeypatch, connection, write):
    make(server)
    sent, chunks_of = list[bytes](), clickhouse_write._chunks

    def breaking(*given: Any) -> Iterator[Any]:
        for chunk in chunks_of(*given):
            sent.append(bytes(chunk))
            if len(sent) == 20:
                for client in connection.clients:  # one of them is in the middle of its INSERT: this one
                    client.sock.shutdown(socket.SHUT_RDWR)
            yield chunk

    with monkeypatch.context() as patch:
        patch.setattr(clickhouse_write, "SLICE_ROWS", 10_000)
        patch.setattr(clickhouse_write, "STREAM_ROWS", 10_000)
        patch.setattr(clickhouse_write, "_chunks", breaking)
        with pytest.raises(REFUSALS):
            write(frame_of(MANY))
    assert settled(server) == (0, [])
    write(frame_of(MANY))
    assert settled(server) == (MANY, [])


def test_an_insert_that_the_server_ends_takes_all_rows_with_it(server, monkeypatch, write):
    make(server)
    rows = 4 * MANY  # a server lists an INSERT once 256 kB of it have arrived
    one_at_a_time, blocks, next_of = threading.Lock(), list[Any](), clickhouse_write._Blocks.next

    def ending(self: Any) -> Any:
        with one_at_a_time:
            blocks.append(self)
            if len(blocks) == 6:
                end_one()
        return next_of(self)

    def end_one() -> None:
        running = "SELECT query_id FROM system.processes WHERE query LIKE 'INSERT INTO%whole_staging%'"
        found = list[tuple[str]]()
        until(lambda: found.extend(server.execute(running)) or found)
        server.execute(f"KILL QUERY WHERE query_id = '{found[0][0]}' ASYNC")

    with monkeypatch.context() as patch:
        patch.setattr(clickhouse_write, "SLICE_ROWS", 80_000)
        patch.setattr(clickhouse_write, "STREAM_ROWS", 80_000)
        patch.setattr(clickhouse_write._Blocks, "next", ending)
        with pytest.raises(RuntimeError, match="QUERY_WAS_CANCELLED"):
            write(frame_of(rows))
    assert settled(server) == (0, [])
    write(frame_of(MANY))
    assert settled(server) == (MANY, [])


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_table_that_drops_blocks_it_had_before_gets_every_row(rows, server, monkeypatch, connection):
    make(server, f"{PLAIN} SETTINGS non_replicated_deduplication_window = 100")
    monkeypatch.setattr(clickhouse_write, "SLICE_ROWS", 50_000)
    frame = pl.concat([frame_of(rows // 4)] * 4)  # the same blocks again and again
    for times in (1, 2):
        module.write_polars_tuned(connection, frame, "whole")
        assert settled(server) == (times * rows, [])
