"""Asynchronous inserts, which the server collects before it writes: https://clickhouse.com/docs/optimize/asynchronous-inserts"""

from contextlib import contextmanager

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.columns import pandas_parquet, polars_parquet
from harness.transports.clickhouse.httpx.client import insert, opened, send

# The default since 26.2: the server answers when it has written the buffer with the rows, after 50 to 200 ms or when
# the buffer holds 10 MiB.
WAITING_SETTINGS = {"async_insert": "1", "wait_for_async_insert": "1"}

# Answer when the rows are in the buffer. The client never learns of later errors.
UNSAFE_SETTINGS = {"async_insert": "1", "wait_for_async_insert": "0"}


@contextmanager
def connect(uri):
    """Yield a client with one open connection.

    Raises Unsupported at its end if the server took the rows but collected none of them, as an embedded engine does.
    The time would then be that of an ordinary insert.
    """
    with opened(uri) as client:
        before = _collected(client)
        yield client
        if _collected(client) == before:
            raise Unsupported("the server does not collect inserts: async_insert=1 has no effect on it")


def _collected(client):
    """Return how many asynchronous inserts the server has counted."""
    return int(send(client, "SELECT sum(value) FROM system.events WHERE event = 'AsyncInsertQuery'"))


@transport("HTTP INSERT FORMAT Parquet, async_insert, waiting", "Parquet", settings=WAITING_SETTINGS)
def write_polars_parquet_async_insert_waiting(connection, frame, table):
    """Send the frame as one zstd Parquet file, which the server collects with others before it writes them.

    A client that pins no settings gets this behavior. It is designed for many small inserts; a single insert only waits
    longer.
    """
    insert(connection, frame, table, "Parquet", polars_parquet, settings=WAITING_SETTINGS)


@transport(
    "HTTP INSERT FORMAT Parquet, async_insert, waiting",
    "Parquet",
    requires=["pyarrow.parquet"],
    settings=WAITING_SETTINGS,
)
def write_pandas_parquet_async_insert_waiting(connection, frame, table):
    """Send the frame as one snappy Parquet file, which the server collects with others before it writes them.

    Works like write_polars_parquet_async_insert_waiting. pandas writes a NaN as a null, as in the published transport.
    """
    insert(connection, frame, table, "Parquet", pandas_parquet, settings=WAITING_SETTINGS)


@transport("HTTP INSERT FORMAT Parquet, async_insert, not waiting, flush", "Parquet", settings=UNSAFE_SETTINGS)
def write_polars_parquet_async_insert_unsafe_flushed(connection, frame, table):
    """Unsafe: send the frame as zstd Parquet without waiting for the rows, then have the server flush its queue.

    Without the flush (SYSTEM FLUSH ASYNC INSERT QUEUE, which requires a privilege) the call would return before another
    connection sees the rows. It would then time no write at all. The transport is unsafe even so: the server does not
    report an insert that fails during the flush.
    """
    insert(connection, frame, table, "Parquet", polars_parquet, settings=UNSAFE_SETTINGS)
    with phase("send"):
        try:
            send(connection, "SYSTEM FLUSH ASYNC INSERT QUEUE")
        except RuntimeError as error:
            if "queue because it is not initialized" in str(error):  # an embedded engine's answer
                raise Unsupported("the server does not collect inserts: it has no queue of them") from error
            raise
