"""Sockets whose descriptors have numbers that select() does not take, as in a server with many connections."""

import os
import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from arrow_wire import clickhouse, postgres
from arrow_wire.sockets import wait_readable

from clickhouse_server import DATABASE, Server

FRAME = pl.DataFrame({"number": pl.Series(range(1, 5_001), dtype=pl.Int32), "name": ["a"] * 5_000})


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2_048 if hard == resource.RLIM_INFINITY else min(hard, 2_048)
    if wanted < 2_048:
        pytest.skip(f"this user may open {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while opened[-1] < 1_100:
            opened.append(os.dup(opened[0]))
        yield
    finally:
        for one in opened:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_a_socket_is_waited_for_until_it_has_something_or_the_time_is_over() -> None:
    here, there = socket.socketpair()
    with here, there:
        assert here.fileno() > 1_024
        began = time.monotonic()
        assert not wait_readable(here, 0.05)
        assert time.monotonic() - began >= 0.05
        there.send(b"x")
        assert wait_readable(here, None)


@pytest.mark.usefixtures("many_files")
def test_rows_go_to_clickhouse_and_come_back(addresses: Any, server: Server) -> None:
    address = addresses.clickhouse
    uri = f"{address}{'&' if '?' in address else '?'}database={DATABASE}"
    for _ in range(2):  # the second time a connection that may have been closed is looked at
        clickhouse.write(uri, "many_files", FRAME, mode="replace")
        back = clickhouse.read(uri, "SELECT * FROM many_files ORDER BY number", as_="polars")
        assert back.equals(FRAME)
    server.ask(f"DROP TABLE {DATABASE}.many_files SYNC")


@pytest.mark.usefixtures("many_files")
def test_rows_go_to_postgres_and_come_back(addresses: Any) -> None:
    import psycopg

    try:
        postgres.write(addresses.postgres, "many_files", FRAME, mode="replace")
        back = postgres.read(addresses.postgres, "SELECT * FROM many_files ORDER BY number", as_="polars")
        assert back.equals(FRAME)
    finally:
        with psycopg.connect(addresses.postgres) as connection:
            connection.execute("DROP TABLE IF EXISTS many_files")
