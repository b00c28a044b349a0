"""Several connections at once, each with a slice of the frame, over HTTP: https://clickhouse.com/docs/interfaces/http

Every slice is an insert of its own: when one fails, the rows of the others stay.
"""

import io
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# httpx copies what is left of a body after every send: 130 MB in one piece cost a second of nothing else.
PIECE_BYTES = 1 << 20

# As many as cores, but two at least and eight at most.
CONNECTIONS = max(2, min(8, os.cpu_count() or 2))

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}


@contextmanager
def connect(uri):
    """Yield clients that hold one open connection each, and as many threads."""
    import httpx

    url = httpx.URL(uri)
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                httpx.Client(
                    base_url=url.copy_with(userinfo=b"", query=None),
                    params=url.params,
                    auth=(url.username, url.password),
                    headers={"Content-Type": "application/octet-stream"},
                    timeout=TIMEOUT_SECONDS,
                )
            )
            for _ in range(CONNECTIONS)
        ]
        threads = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))
        list(threads.map(_send, clients, ["SELECT 1"] * CONNECTIONS))
        yield clients, threads


def _send(client, query, settings=None, body=b""):
    """Run one query in one request; a refusal raises RuntimeError with the server's text."""
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))}
    response = client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")


def _insert(connection, frame, table, format_name, encode):
    """Cut the frame into slices of equal size; each is encoded and sent by a thread of its own."""
    clients, threads = connection
    names = identifiers(frame.columns)
    query = f"INSERT INTO {identifier(table)} ({names}) FORMAT {format_name}"
    cuts = [len(frame) * number // len(clients) for number in range(len(clients) + 1)]

    def insert(client, start, stop):
        _send(client, query, INSERT_SETTINGS, encode(frame[start:stop]))

    list(threads.map(insert, clients, cuts[:-1], cuts[1:]))


def _arrow_table(frame):
    """Return a pandas frame as Arrow; a NaN among floats stays one, which Table.from_pandas would make a null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
            for name, values in frame.items()
        }
    )


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT ArrowStream, uncompressed, parallel",
    payload="Arrow",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_arrow_parallel(connection, frame, table):
    """Send slices of the frame as uncompressed Arrow streams, side by side.

    As formats.write_polars_arrow, but for the connections: the server reads and writes in a thread per connection.
    """

    def encode(piece):
        buffer = io.BytesIO()
        piece.write_ipc_stream(buffer, compression="uncompressed")
        return buffer.getbuffer()

    _insert(connection, frame, table, "ArrowStream", encode)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, zstd, parallel",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_parquet_parallel(connection, frame, table):
    """Send slices of the frame as zstd Parquet files, side by side.

    As formats.write_polars_parquet_zstd, but for the connections: the server reads and writes in a thread for each.
    """

    def encode(piece):
        buffer = io.BytesIO()
        piece.write_parquet(buffer, compression="zstd")
        return buffer.getbuffer()

    _insert(connection, frame, table, "Parquet", encode)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT ArrowStream, uncompressed, parallel",
    payload="Arrow",
    requires=["httpx", "pandas", "pyarrow.ipc"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_arrow_parallel(connection, frame, table):
    """Send slices of the frame as uncompressed Arrow streams, side by side.

    As formats.write_pandas_arrow, but for the connections: the server reads and writes in a thread per connection.
    """

    def encode(piece):
        import pyarrow as pa

        arrow, sink = _arrow_table(piece), pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, arrow.schema) as writer:
            writer.write_table(arrow)
        return memoryview(sink.getvalue())

    _insert(connection, frame, table, "ArrowStream", encode)
