"""Several connections in parallel, each with a slice of the frame, over HTTP: https://clickhouse.com/docs/interfaces/http

Every slice is a separate insert: if one fails, the rows of the others stay.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import transport
from harness.transports.clickhouse.columns import arrow_of_pandas, polars_arrow_stream, polars_parquet
from harness.transports.clickhouse.httpx.client import BINARY, send, server_at
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import insert_into

# One per core, at least two, at most eight.
CONNECTIONS = max(2, min(8, os.cpu_count() or 2))


@contextmanager
def connect(uri):
    """Yield clients with one open connection each, and as many threads."""
    import httpx

    with ExitStack() as stack:
        made = (httpx.Client(**server_at(uri), headers=BINARY) for _ in range(CONNECTIONS))
        clients = [stack.enter_context(client) for client in made]
        threads = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))
        list(threads.map(send, clients, ["SELECT 1"] * CONNECTIONS))
        yield clients, threads


def _insert(connection, frame, table, format_name, encode):
    """Cut the frame into equal slices; a separate thread encodes and sends each."""
    clients, threads = connection
    query = f"{insert_into(table, frame.columns)} FORMAT {format_name}"
    cuts = [len(frame) * number // len(clients) for number in range(len(clients) + 1)]

    def insert(client, start, stop):
        send(client, query, INSERT_SETTINGS, encode(frame[start:stop]))

    list(threads.map(insert, clients, cuts[:-1], cuts[1:]))


@transport(
    "HTTP INSERT FORMAT ArrowStream, uncompressed, parallel", "Arrow", settings=INSERT_SETTINGS, atomic="per connection"
)
def write_polars_arrow_stream_parallel(connection, frame, table):
    """Send slices of the frame as uncompressed Arrow streams in parallel.

    Like write_polars_arrow_stream with several connections: the server reads and writes with one thread per connection.
    """
    _insert(connection, frame, table, "ArrowStream", polars_arrow_stream)


@transport("HTTP INSERT FORMAT Parquet, zstd, parallel", "Parquet", settings=INSERT_SETTINGS, atomic="per connection")
def write_polars_parquet_parallel(connection, frame, table):
    """Send slices of the frame as zstd Parquet files in parallel.

    Like write_polars_parquet_zstd_in_pieces with several connections: the server reads and writes with one thread per
    connection.
    """
    _insert(connection, frame, table, "Parquet", polars_parquet)


@transport(
    "HTTP INSERT FORMAT ArrowStream, uncompressed, parallel",
    "Arrow",
    requires=["pyarrow.ipc"],
    settings=INSERT_SETTINGS,
    atomic="per connection",
)
def write_pandas_arrow_stream_parallel(connection, frame, table):
    """Send slices of the frame as uncompressed Arrow streams in parallel.

    Like write_pandas_arrow_stream with several connections: the server reads and writes with one thread per connection.
    """

    def encode(piece):
        import pyarrow as pa

        arrow, sink = arrow_of_pandas(piece), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, arrow.schema) as writer:
            writer.write_table(arrow)
        return memoryview(sink.getvalue())

    _insert(connection, frame, table, "ArrowStream", encode)
