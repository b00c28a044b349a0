"""The rows that a write leaves when one of its connections breaks, compared with its declaration."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import polars as pl
import psycopg
import pytest

from benchmarks.link import Link
from harness import registry
from harness.check.canonical import as_pandas
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.lab.object_stores import Objects
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import Transport
from harness.systems import SYSTEMS
from tests import object_store
from tests.calls import each, uri_of
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1_200)]

ROWS = 100_000
SENT = 300_000  # bytes of a connection when it breaks: each sends more
SECONDS = 45.0  # a write must notice it: asyncpg does not with an iterator (docs/upstream/asyncpg-copy-hangs.md)
OVER_S3 = [entry for entry in registry.select("clickhouse.*.write_*") if "s3" in entry.needs]
WRITES = [entry for entry in registry.select("*.write_*") if entry.moves_a_frame and not entry.needs]


@pytest.fixture(scope="module")
def tables(embedded_lab: EmbeddedLab, dataset_folder: Path) -> Tables:
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(dataset_folder, spec.name, ROWS, 1)
    return Tables(References(embedded_lab.endpoints), spec, dataset, dataset, 7)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Objects]:
    yield from object_store.opened(tmp_path_factory.mktemp("objects"))


def given(entry: Transport, tables: Tables) -> Any:
    frame = pl.read_parquet(tables.dataset.path)
    return as_pandas(frame, tables.logical_types) if entry.frame == "pandas" else frame


def written(entry: Transport, uri: str, frame: Any, table: str) -> BaseException | None:
    """Write a frame, and return the exception raised."""

    async def in_a_loop() -> None:
        async with registry.connect_of(entry)(uri) as connection:
            await entry.function(connection, frame, table)

    try:
        if entry.style == "async":
            asyncio.run(asyncio.wait_for(in_a_loop(), SECONDS))
        else:
            with registry.connect_of(entry)(uri) as connection:
                entry.function(connection, frame, table)
    except Exception as error:
        return error
    return None


def rows_left(entry: Transport, lab: EmbeddedLab, table: str) -> int:
    """Return the number of rows once the server has processed all that it received."""
    if entry.system == "postgres":
        with psycopg.connect(SYSTEMS["postgres"].client.transport_uri("postgres", lab.endpoints["postgres"])) as one:
            one.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")  # after the sessions that still write
            return one.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    client = SYSTEMS["clickhouse"].client.open_connection(lab.endpoints)
    database = os.environ["LAB_NAMESPACE"]
    busy = f"SELECT count() FROM system.processes WHERE query LIKE 'INSERT INTO%{table}%'"
    until(lambda: not client.query(busy).result_rows[0][0])
    return client.query(f"SELECT count() FROM {database}.{table}").result_rows[0][0]


@each(WRITES)
def test_a_connection_that_breaks_leaves_what_is_declared(
    entry: Transport, tables: Tables, embedded_lab: EmbeddedLab
) -> None:
    table, _ = tables.for_write(entry.system)
    parts = urlsplit(uri_of(entry, embedded_lab))
    with closing(Link(parts.port or 0, SENT)) as link:
        own = urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{link.port}"))
        raised = written(entry, own, given(entry, tables), table)
    if isinstance(raised, registry.Unsupported):
        pytest.skip(str(raised))
    left = rows_left(entry, embedded_lab, table)
    assert link.broken, "it sent too little"
    if raised is None:  # the client has sent it all again, once
        assert left == ROWS
    elif entry.atomic == "yes":
        assert left == 0, raised
    else:
        assert 0 < left < ROWS, raised
        assert (left == ROWS // 2) == (entry.atomic == "per connection")


@each(OVER_S3)
def test_a_server_whose_connections_to_s3_break_leaves_no_row(
    entry: Transport, tables: Tables, embedded_lab: EmbeddedLab, objects: Objects
) -> None:
    table, _ = tables.for_write(entry.system)
    uri = uri_of(entry, embedded_lab)
    with objects.bucket("atomic", print) as bucket:
        s3 = SimpleNamespace(**asdict(objects.store), bucket=bucket)
        with (
            closing(Link(urlsplit(s3.endpoint).port or 0, SENT, each=True)) as link,
            registry.connect_of(entry)(uri, s3) as connection,
        ):
            s3.endpoint = f"http://127.0.0.1:{link.port}"  # for the server alone: the client has its connection
            with pytest.raises(RuntimeError, match="answered 500") as raised:
                entry.function(connection, given(entry, tables), table)
    assert link.broken, "it read too little"
    assert entry.atomic == "yes"
    assert rows_left(entry, embedded_lab, table) == 0, raised
