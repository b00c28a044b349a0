"""Loading a large table: in pieces, and into a server that reads slowly, as the embedded engine sometimes does."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest

from benchmarks.link import Link
from harness import address
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse

ROWS = 150_000  # of more megabytes than sockets hold


@pytest.fixture
def table(embedded_lab: EmbeddedLab) -> Iterator[str]:
    """The name of a table that is dropped afterwards."""
    yield "large"
    with closing(clickhouse.open_connection(embedded_lab.endpoints)) as client:
        clickhouse.drop(client, "large")


@pytest.mark.long
def test_a_large_table_is_loaded_all_the_same(
    table: str, embedded_lab: EmbeddedLab, dataset_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(address, "CONNECT_SECONDS", 1)
    dataset, spec = store.ensure(dataset_folder, "analytics_metrics", ROWS, 1), store.specification("analytics_metrics")
    assert Path(dataset.path).stat().st_size > 5_000_000
    parts = urlsplit(embedded_lab.endpoints["clickhouse_http"])
    with closing(Link(parts.port or 0)) as link:
        slow = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{link.port}").geturl()
        with closing(clickhouse.open_connection({"clickhouse_http": slow})) as client:
            clickhouse.ensure_namespace(client)
            clickhouse.create(client, table, SYSTEMS["clickhouse"].tables.definition(spec, PLAIN) or "")
            link.slow(2.0)
            Timer(0.5, link.slow, (0.0,)).start()
            clickhouse.load(client, table, dataset.path, spec.logical_types)
            assert client.command(f"SELECT count() FROM {namespace()}.{table}") == ROWS


def test_a_large_file_goes_in_by_pieces(
    table: str, embedded_lab: EmbeddedLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clickhouse, "_PIECE_BYTES", 20_000)
    path = tmp_path / "large.parquet"
    pl.DataFrame({"n": range(20_000)}).write_parquet(path, row_group_size=1_000, compression="uncompressed")
    with closing(clickhouse.open_connection(embedded_lab.endpoints)) as client:
        clickhouse.ensure_namespace(client)
        clickhouse.create(client, table, "CREATE TABLE {table} (n Int64) ENGINE = MergeTree ORDER BY n")
        sent, raw_insert = list[int](), client.raw_insert

        def counted(*arguments: Any, **named: Any) -> Any:
            sent.append(named["insert_block"].getbuffer().nbytes)
            return raw_insert(*arguments, **named)

        monkeypatch.setattr(client, "raw_insert", counted)
        clickhouse.load(client, table, path, {"n": "int64"})
        assert len(sent) > 5
        assert max(sent) < 60_000
        assert client.query(f"SELECT n FROM {namespace()}.{table}").result_columns[0] == list(range(20_000))
