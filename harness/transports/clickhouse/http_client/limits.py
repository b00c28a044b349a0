"""Lower bounds for reads from ClickHouse: the client discards the answer to a SELECT as it leaves the socket.

No client that reads the same format can take less time: the server reads, encodes and sends, and nothing decodes.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.sql import identifier

ENDPOINT = "clickhouse_http"
BUFFER_BYTES = 1 << 19  # discarded at a time: the transport of this format decodes so much at a time
_UNCOMPRESSED = {"enable_http_compression": "0"}


@contextmanager
def connect(uri):
    """Yield an open connection."""
    from arrow_wire.clickhouse_http import connected

    with connected(uri, 1) as server:
        yield server


def _thrown_away(server, table, format_name):
    """Discard the answer and return how many rows it had. Raises RuntimeError if the answer breaks off.

    An answer that ends without an error has all rows. A `SELECT count()` before it returns their number.
    """
    from arrow_wire.clickhouse_http import AnswerBytes

    rows = int(server.ask(f"SELECT count() FROM {identifier(table)}"))
    query = f"SELECT * FROM {identifier(table)} FORMAT {format_name}"
    answer, room = AnswerBytes(server.send(query, settings=_UNCOMPRESSED)), memoryview(bytearray(BUFFER_BYTES))
    while answer.readinto(room):
        pass
    return rows


@transport("HTTP SELECT FORMAT Native, thrown away", "nothing kept", settings=_UNCOMPRESSED, origin="limit")
def read_native_thrown_away(server, table):
    """Let one SELECT send the whole table as Native blocks and discard them: server and network, no client."""
    return _thrown_away(server, table, "Native")


@transport("HTTP SELECT FORMAT ArrowStream, thrown away", "nothing kept", settings=_UNCOMPRESSED, origin="limit")
def read_arrow_stream_thrown_away(server, table):
    """Let one SELECT send the whole table as an Arrow stream and discard it."""
    return _thrown_away(server, table, "ArrowStream")
