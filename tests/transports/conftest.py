"""Fixtures of the tests that run transports on a real Postgres."""

from collections.abc import Iterator

import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.systems.postgres import client as postgres
from harness.transports.postgres.psycopg import tuned
from tests.hostile_table import COLUMNS, TABLE


@pytest.fixture(scope="module")
def uri(embedded_lab: EmbeddedLab) -> str:
    """The URI of the lab's schema."""
    connection = postgres.open_connection(embedded_lab.endpoints)
    postgres.ensure_namespace(connection)
    connection.close()
    return postgres.transport_uri("postgres", embedded_lab.endpoints["postgres"])


@pytest.fixture
def writers(uri: str) -> Iterator[list[psycopg.Connection]]:
    """The connections of a tuned write."""
    with tuned.connect(uri) as connections:
        yield connections


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    """A connection beside those of the transports, with the hostile table, empty and without a key."""
    columns = ", ".join(f'"{name}" {sql_type}' for name, (sql_type, _) in COLUMNS.items())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'CREATE TABLE "{TABLE}" ({columns})')
        yield connection
        connection.execute(f'DROP TABLE "{TABLE}"')
