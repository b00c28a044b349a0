"""What ClickHouse alone can do when it answers a SELECT: the result is dropped as it comes off the socket.

No client can cost less that reads the same format: the server reads, encodes and sends, nobody decodes.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.http_client.client import UNCOMPRESSED, AnswerBytes, connected, send
from harness.transports.clickhouse.sql import identifier

BUFFER_BYTES = 1 << 19  # dropped at a time, as much as the transport of this format decodes at a time


@contextmanager
def connect(uri):
    """Yield an open connection."""
    with connected(uri, 1) as connection:
        yield connection


def _thrown_away(connection, table, format_name):
    """Drop the answer and return how many rows it had. Raises RuntimeError for an answer that is broken off.

    A server that has sent the end of its answer, and no failure before it, has sent all rows; it counts them itself.
    """
    (client,), user, parameters = connection
    count = f"SELECT count() FROM {identifier(table)}"
    rows = int(send(client, user, parameters, count).read())
    answer = AnswerBytes(
        send(client, user, parameters | UNCOMPRESSED, f"SELECT * FROM {identifier(table)} FORMAT {format_name}")
    )
    room = memoryview(bytearray(BUFFER_BYTES))
    while answer.readinto(room):
        pass
    return rows


@transport(
    "read", path="HTTP SELECT FORMAT Native, thrown away", payload="nothing kept", origin="limit", settings=UNCOMPRESSED
)
def read_native_thrown_away(connection, table):
    """Let one SELECT send the whole table as Native blocks and drop them: the server and the wire without a client."""
    return _thrown_away(connection, table, "Native")


@transport(
    "read",
    path="HTTP SELECT FORMAT ArrowStream, thrown away",
    payload="nothing kept",
    origin="limit",
    settings=UNCOMPRESSED,
)
def read_arrow_stream_thrown_away(connection, table):
    """Let one SELECT send the whole table as an Arrow stream and drop it."""
    return _thrown_away(connection, table, "ArrowStream")
