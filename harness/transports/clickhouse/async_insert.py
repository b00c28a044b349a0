"""Asynchronous inserts, which the server collects before it writes them: https://clickhouse.com/docs/optimize/asynchronous-inserts"""

import io
from contextlib import contextmanager

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# httpx copies what is left of a body after every send: 130 MB in one piece cost a second of nothing else.
PIECE_BYTES = 1 << 20

# What servers do by default since 26.2: answer when the buffer with the rows has been written, after 50 to 200 ms or
# when it holds 10 MiB.
WAITING_SETTINGS = {"async_insert": "1", "wait_for_async_insert": "1"}

# Answer when the rows are in the buffer. What goes wrong later the client never learns.
UNSAFE_SETTINGS = {"async_insert": "1", "wait_for_async_insert": "0"}


@contextmanager
def connect(uri):
    """Yield a client that holds one open connection.

    At its end Unsupported says so when the server took the rows but collected nothing, as an embedded engine does:
    then the time is that of an ordinary insert.
    """
    import httpx

    url = httpx.URL(uri)
    with httpx.Client(
        base_url=url.copy_with(userinfo=b"", query=None),
        params=url.params,
        auth=(url.username, url.password),
        headers={"Content-Type": "application/octet-stream"},
        timeout=TIMEOUT_SECONDS,
    ) as client:
        before = _collected(client)
        yield client
        if _collected(client) == before:
            raise Unsupported("the server does not collect inserts: async_insert=1 has no effect on it")


def _collected(client):
    """Return how many asynchronous inserts the server has counted."""
    return int(_send(client, "SELECT sum(value) FROM system.events WHERE event = 'AsyncInsertQuery'"))


def _send(client, query, settings=None, body=b""):
    """Run one query in one request and return the answer; a refusal raises RuntimeError with the server's text."""
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))}
    response = client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    return response.text


def _insert(client, table, columns, settings, parquet):
    names = identifiers(columns)
    with phase("send"):
        _send(client, f"INSERT INTO {identifier(table)} ({names}) FORMAT Parquet", settings, parquet)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, async_insert, waiting",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=WAITING_SETTINGS,
)
def write_polars_parquet_waiting(connection, frame, table):
    """Send the frame as one zstd Parquet file, which the server collects with others before it writes them.

    What a client gets that pins no settings: the wait is meant for many small inserts, a single one only waits longer.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_parquet(buffer, compression="zstd")
    _insert(connection, table, frame.columns, WAITING_SETTINGS, buffer.getbuffer())


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Parquet, async_insert, waiting",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=WAITING_SETTINGS,
)
def write_pandas_parquet_waiting(connection, frame, table):
    """Send the frame as one snappy Parquet file, which the server collects with others before it writes them.

    As write_polars_parquet_waiting. A NaN is written as a null, as in the published way.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.to_parquet(buffer, compression="snappy", index=False)
    _insert(connection, table, frame.columns, WAITING_SETTINGS, buffer.getbuffer())


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, async_insert, not waiting, flush",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=UNSAFE_SETTINGS,
)
def write_polars_parquet_unsafe_flushed(connection, frame, table):
    """Unsafe: send the frame as zstd Parquet without waiting for the rows, then have the server write all it collected.

    Without the flush (SYSTEM FLUSH ASYNC INSERT QUEUE, which needs its privilege) the call would return before anybody
    sees the rows, and its time would be that of no write at all. Unsafe even so: an insert that fails while the queue
    is flushed is reported to nobody.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_parquet(buffer, compression="zstd")
    _insert(connection, table, frame.columns, UNSAFE_SETTINGS, buffer.getbuffer())
    with phase("send"):
        try:
            _send(connection, "SYSTEM FLUSH ASYNC INSERT QUEUE")
        except RuntimeError as error:
            if "queue because it is not initialized" in str(error):  # what an embedded engine answers
                raise Unsupported("the server does not collect inserts: it has no queue of them") from error
            raise
