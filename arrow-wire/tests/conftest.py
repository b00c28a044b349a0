"""Servers for the tests: those whose addresses are given, or the embedded engines of the lab that this is developed in.

ARROW_WIRE_POSTGRES (postgresql://...) and ARROW_WIRE_CLICKHOUSE (http://...) are the addresses of servers on which the
tests may create and drop databases and schemas of their own.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import settings

from clickhouse_server import DATABASE, Server

# Machines are busy with other tests: how long an example takes says nothing.
settings.register_profile("arrow-wire", deadline=None)
settings.load_profile("arrow-wire")


@dataclass(frozen=True)
class Addresses:
    postgres: str
    clickhouse: str


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """Addresses of both servers."""
    given = [os.environ.get(f"ARROW_WIRE_{name}", "") for name in ("POSTGRES", "CLICKHOUSE")]
    if all(given):
        yield Addresses(*given)
        return
    try:
        from harness.lab.embedded import EmbeddedLab
    except ImportError:
        pytest.fail("set ARROW_WIRE_POSTGRES and ARROW_WIRE_CLICKHOUSE to addresses of servers to test on")
    with EmbeddedLab(tmp_path_factory.mktemp("lab"), ("postgres", "clickhouse")) as lab:
        yield Addresses(lab.endpoints["postgres"], lab.endpoints["clickhouse_http"])


@pytest.fixture(scope="session")
def server(addresses: Addresses) -> Server:
    """A ClickHouse with an empty database of the tests."""
    parts = urlsplit(addresses.clickhouse)
    headers = {"X-ClickHouse-User": unquote(parts.username or ""), "X-ClickHouse-Key": unquote(parts.password or "")}
    server = Server(f"{parts.scheme}://{parts.hostname}:{parts.port}", headers)
    server.ask(f"DROP DATABASE IF EXISTS {DATABASE}")
    server.ask(f"CREATE DATABASE {DATABASE}")
    headers["X-ClickHouse-Database"] = DATABASE
    return server
