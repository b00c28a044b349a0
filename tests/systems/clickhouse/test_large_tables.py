"""Loading a large table: in pieces, and into a server that reads slowly, as the embedded engine sometimes does."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest

from harness import address
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse

LARGE, ROWS = 1_000_000, 150_000  # bytes of a request that is slowed down; rows that take some ten times as many


@contextmanager
def slow_to_read(port: int, pause: float) -> Iterator[int]:
    """Yield the port of a proxy to a server; it reads nothing for a while in the middle of a large request."""
    with socket.socket() as door, ThreadPoolExecutor() as threads:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        door.bind(("127.0.0.1", 0))
        door.listen()
        door.settimeout(0.1)
        ended = threading.Event()

        def carry(source: socket.socket, target: socket.socket) -> None:
            carried, paused = 0, False
            while data := source.recv(1 << 16):
                target.sendall(data)
                carried += len(data)
                if carried > LARGE and not paused:
                    paused = True
                    time.sleep(pause)
            for end in (source, target):
                with suppress(OSError):  # the other direction was first
                    end.shutdown(socket.SHUT_RDWR)

        def accept() -> None:
            while not ended.is_set():
                with suppress(TimeoutError):
                    client, server = door.accept()[0], socket.create_connection(("127.0.0.1", port))
                    threads.submit(carry, client, server)
                    threads.submit(carry, server, client)

        threads.submit(accept)
        try:
            yield door.getsockname()[1]
        finally:
            ended.set()


@pytest.mark.long
def test_a_large_table_is_loaded_all_the_same(
    embedded_lab: EmbeddedLab, dataset_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "CONNECT_SECONDS", 1)
    dataset, spec = store.ensure(dataset_folder, "analytics_metrics", ROWS, 1), store.specification("analytics_metrics")
    assert Path(dataset.path).stat().st_size > 5 * LARGE
    parts = urlsplit(embedded_lab.endpoints["clickhouse_http"])
    with slow_to_read(parts.port or 0, 2.0) as port:
        slow = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}").geturl()
        client = clickhouse.open_connection({"clickhouse_http": slow})
        try:
            clickhouse.ensure_namespace(client)
            clickhouse.create(client, "slowly", SYSTEMS["clickhouse"].tables.definition(spec, PLAIN) or "")
            clickhouse.load(client, "slowly", dataset.path, spec.logical_types)
            assert client.command(f"SELECT count() FROM {namespace()}.slowly") == ROWS
            clickhouse.drop(client, "slowly")
        finally:
            client.close()


def test_a_large_file_goes_in_by_pieces(
    embedded_lab: EmbeddedLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clickhouse, "_PIECE_BYTES", 20_000)
    path = tmp_path / "large.parquet"
    pl.DataFrame({"n": range(20_000)}).write_parquet(path, row_group_size=1_000, compression="uncompressed")
    client = clickhouse.open_connection(embedded_lab.endpoints)
    clickhouse.ensure_namespace(client)
    clickhouse.create(client, "by_pieces", "CREATE TABLE {table} (n Int64) ENGINE = MergeTree ORDER BY n")
    sent = []
    raw_insert = client.raw_insert

    def counted(*arguments: Any, **named: Any) -> Any:
        sent.append(named["insert_block"].getbuffer().nbytes)
        return raw_insert(*arguments, **named)

    monkeypatch.setattr(client, "raw_insert", counted)
    clickhouse.load(client, "by_pieces", path, {"n": "int64"})
    assert len(sent) > 5
    assert max(sent) < 60_000
    assert client.query(f"SELECT n FROM {namespace()}.by_pieces").result_columns[0] == list(range(20_000))
    clickhouse.drop(client, "by_pieces")
    client.close()
