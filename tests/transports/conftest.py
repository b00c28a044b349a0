"""Fixtures of the tests that run transports on a real Postgres."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyarrow import parquet

from harness.datasets import store
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


@pytest.fixture(scope="module")
def source(request: pytest.FixtureRequest, dataset_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Parquet file of several row groups, with as many rows as the module of the tests says."""
    path, rows = tmp_path_factory.mktemp("source") / "parts.parquet", request.module.ROWS
    built = parquet.read_table(store.ensure(dataset_folder, "analytics_metrics", rows, 7).path)
    parquet.write_table(built, path, row_group_size=rows // request.module.PARTS)
    return str(path)


@pytest.fixture
def spoilt(request: pytest.FixtureRequest, source: str, tmp_path: Path) -> str:
    """The same file with a last key that is no UUID."""
    rows, path = parquet.read_table(source), tmp_path / "spoilt.parquet"
    keys = [*rows["entity_key"].to_pylist()[:-1], "00"]
    parquet.write_table(
        rows.set_column(0, "entity_key", [keys]), path, row_group_size=len(rows) // request.module.PARTS
    )
    return str(path)


@pytest.fixture
def writers(uri: str) -> Iterator[list[psycopg.Connection]]:
    """The connections of a tuned write."""
    with tuned.connect(uri) as connections:
        yield connections


@pytest.fixture
def server(uri: str) -> Iterator[psycopg.Connection]:
    """A further connection, with the hostile table, empty and without a key."""
    columns = ", ".join(f'"{name}" {sql_type}' for name, (sql_type, _) in COLUMNS.items())
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f'CREATE TABLE "{TABLE}" ({columns})')
        yield connection
        connection.execute(f'DROP TABLE "{TABLE}"')
