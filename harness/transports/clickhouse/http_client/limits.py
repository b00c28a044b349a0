"""What ClickHouse alone can do when it answers a SELECT: the result is dropped as it comes off the socket.

No client can cost less that reads the same format: the server reads, encodes and sends, nobody decodes.
"""

from contextlib import contextmanager
from typing import Any

from harness.registry import transport
from harness.transports.clickhouse.sql import identifier

ENDPOINT = "clickhouse_http"
BUFFER_BYTES = 1 << 19  # dropped at a time, as much as the transport of this format decodes at a time
_UNCOMPRESSED = {"enable_http_compression": "0"}
_BOUND: Any = {"payload": "nothing kept", "origin": "limit", "settings": _UNCOMPRESSED, "requires": ["arrow_wire"]}


@contextmanager
def connect(uri):
    """Yield an open connection."""
    from arrow_wire.clickhouse_http import connected

    with connected(uri, 1) as server:
        yield server


def _thrown_away(server, table, format_name):
    """Drop the answer and return how many rows it had. Raises RuntimeError for an answer that is broken off.

    A server that has sent the end of its answer, and no failure before it, has sent all rows; it counts them itself.
    """
    from arrow_wire.clickhouse_http import AnswerBytes

    rows = int(server.ask(f"SELECT count() FROM {identifier(table)}"))
    query = f"SELECT * FROM {identifier(table)} FORMAT {format_name}"
    answer, room = AnswerBytes(server.send(query, settings=_UNCOMPRESSED)), memoryview(bytearray(BUFFER_BYTES))
    while answer.readinto(room):
        pass
    return rows


@transport("read", path="HTTP SELECT FORMAT Native, thrown away", **_BOUND)
def read_native_thrown_away(server, table):
    """Let one SELECT send the whole table as Native blocks and drop them: the server and the wire without a client."""
    return _thrown_away(server, table, "Native")


@transport("read", path="HTTP SELECT FORMAT ArrowStream, thrown away", **_BOUND)
def read_arrow_stream_thrown_away(server, table):
    """Let one SELECT send the whole table as an Arrow stream and drop it."""
    return _thrown_away(server, table, "ArrowStream")
