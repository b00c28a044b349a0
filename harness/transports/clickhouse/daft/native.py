"""Daft in a single process: https://docs.daft.ai/en/stable/

Daft has no ClickHouse reader. Its read_sql uses sqlglot's dialects and reads ClickHouse only through connectorx, which
cannot read answers of servers since 26.9 (see clickhouse.connectorx).
"""

from contextlib import nullcontext
from functools import partial

from harness.registry import transport
from harness.transports.clickhouse.daft.client import write_by_daft
from harness.transports.clickhouse.partitions import part_queries
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier
from harness.transports.daft import read_by_parts, sink_of

ENDPOINT = "clickhouse_http"


connect = nullcontext  # the address: every Daft call receives it and opens its own connections


@transport("HTTP INSERT FORMAT Native", "binary columns", requires=["clickhouse_connect", "pandas"])
def load_write_clickhouse(connection, source, table):
    """Let Daft write a Parquet file with write_clickhouse: each micropartition as a pandas frame.

    Integers next to nulls pass through a pandas float.
    """
    import daft

    write_by_daft(daft.read_parquet(source), connection, table)


@transport("HTTP INSERT FORMAT Arrow", "Arrow")
def load_insert_sink(connection, source, table):
    """Let Daft read a Parquet file and pass it to our sink, which inserts each micropartition as Arrow."""
    import daft

    daft.read_parquet(source).write_sink(sink_of(partial(_inserted, connection, table)))


def _inserted(uri, table, batches):
    import pyarrow as pa

    if not batches:
        return 0
    arrow = pa.Table.from_batches(batches)
    with sessionless(uri) as client:
        client.insert_arrow(identifier(table), arrow, settings=INSERT_SETTINGS)
    return arrow.num_rows


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow")
def unload_source(connection, table, destination):
    """Let Daft read our source, with one task for each of the table's partitions, and write it as Parquet.

    A task streams its record batches. Each task reads the table at a different time.
    """
    with sessionless(connection) as client:
        schema = client.query_arrow(f"SELECT * FROM {identifier(table)} LIMIT 0").schema
    queries = part_queries(connection, table)
    read_by_parts(partial(_read, connection), queries, schema).write_parquet(destination)


def _read(uri, query):
    with sessionless(uri) as client, client.query_arrow_stream(query) as reader:
        yield from reader
