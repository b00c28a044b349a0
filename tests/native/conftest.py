"""Fixtures for the tests of the compiled library."""

from urllib.parse import urlsplit

import pytest

from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from tests.native.clickhouse_server import Server


@pytest.fixture(scope="session")
def server(embedded_lab: EmbeddedLab) -> Server:
    parts = urlsplit(embedded_lab.endpoints["clickhouse_http"])
    headers = {"X-ClickHouse-User": parts.username or "", "X-ClickHouse-Key": parts.password or ""}
    server = Server(f"http://{parts.hostname}:{parts.port}", headers)
    server.ask(f"CREATE DATABASE IF NOT EXISTS {namespace()}_native")
    headers["X-ClickHouse-Database"] = f"{namespace()}_native"
    return server
