"""Servers for the tests: those whose addresses are given, or the embedded engines of the lab that this is developed in.

ARROW_WIRE_POSTGRES (postgresql://...) and ARROW_WIRE_CLICKHOUSE (http://...) are the addresses of servers on which the
tests may create and drop their own databases and schemas.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import settings

from clickhouse_server import DATABASE, Server

# Machines are busy with other tests: how long an example takes says nothing.
settings.register_profile("arrow-wire", deadline=None)


@dataclass(frozen=True)
class Addresses:
    postgres: str
    clickhouse: str


@pytest.fixture(scope="session")
def addresses(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """Addresses of both servers."""
    given = [os.environ.get(f"ARROW_WIRE_{name}", "") for name in ("POSTGRES", "CLICKHOUSE")]
    if all(given):
        yield Addresses(*given)
        return
    try:
        lab = request.getfixturevalue("embedded_lab")  # where these are among the tests of the lab
    except pytest.FixtureLookupError:
        with _embedded(tmp_path_factory.mktemp("lab")) as lab:
            yield _addresses(lab)
    else:
        yield _addresses(lab)


def _embedded(folder: Path) -> Any:
    try:
        from harness.lab.embedded import EmbeddedLab
    except ImportError:
        pytest.fail("set ARROW_WIRE_POSTGRES and ARROW_WIRE_CLICKHOUSE to addresses of servers to test on")
    return EmbeddedLab(folder, ("postgres", "clickhouse"))


def _addresses(lab: Any) -> Addresses:
    return Addresses(lab.endpoints["postgres"], lab.endpoints["clickhouse_http"])


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
