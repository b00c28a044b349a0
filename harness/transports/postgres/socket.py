"""Lower bounds for reads of binary SELECT answers from Postgres, next to those of COPY through asyncpg.

The answer is discarded unread as it leaves the socket: no driver can take a client less time. The protocol:
https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
"""

import os
import re
import select
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

from harness.registry import Unsupported, transport
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import page_ranges, psycopg_connections

# CommandComplete or the end of an ErrorResponse, followed by ReadyForQuery.
_END = re.compile(rb"(SELECT (\d+)|\x00)\x00Z\x00\x00\x00\x05[ITE]\Z")
_BUFFER = 1 << 20  # bytes discarded at a time
_WAKE_UP = 1 << 18  # the kernel wakes us at this many bytes, or after 2 ms
_TAIL = 64  # enough bytes to hold _END


@contextmanager
def connect(uri):
    """Yield open connections: one per core this process may use, at least two, at most eight."""
    with psycopg_connections(uri) as connections:
        if connections[0].pgconn.ssl_in_use:
            raise Unsupported("rows are dropped off the socket itself, which TLS encrypts; sslmode=disable avoids it")
        for connection in connections:
            connection.execute("SET jit = off")
        yield connections


def _request(query):
    """Return the messages Parse, Bind (all columns in binary), Execute and Sync for a query."""
    bodies = {b"P": b"\0" + query.encode() + b"\0\0\0", b"B": b"\0\0" + struct.pack("!4h", 0, 0, 1, 1)}
    bodies |= {b"E": bytes(5), b"S": b""}
    return b"".join(tag + struct.pack("!i", 4 + len(body)) + body for tag, body in bodies.items())


def _throw_away(connection, query):
    """Discard a query's answer unread and return the number of rows that the server reports.

    Raises RuntimeError if the answer does not end like a SELECT's.
    """
    buffer, tail = memoryview(bytearray(_BUFFER)), b""
    with socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_UP)
        wire.sendall(_request(query))
        while (end := _END.search(tail)) is None:
            select.select([wire], [], [], 0.002)
            with suppress(BlockingIOError):
                if not (size := wire.recv_into(buffer)):
                    raise RuntimeError("the server closed the connection")
                tail = (tail + bytes(buffer[max(size - _TAIL, 0) : size]))[-_TAIL:]
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)  # the option also applies to the connection
    if end[2] is None:
        raise RuntimeError(f"the server broke its answer off; no SELECT ends with {tail!r}")
    return int(end[2])


@transport("SELECT in binary, thrown away", "nothing kept", settings={"jit": "off"}, origin="limit")
def read_select_binary_thrown_away(connection, table):
    """Let one SELECT send the whole table in binary form and discard it: server and network, no client."""
    return _throw_away(connection[0], f"SELECT * FROM {identifier(table)}")


@transport("SELECT in binary, thrown away, parallel", "nothing kept", settings={"jit": "off"}, origin="limit")
def read_select_binary_thrown_away_parallel(connection, table):
    """Let a SELECT on every connection send its range of blocks in binary form and discard it."""
    size = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
    (blocks,) = connection[0].execute(size, [identifier(table)]).fetchone()
    queries = page_ranges(table, blocks, len(connection))
    with ThreadPoolExecutor(len(connection)) as pool:
        return sum(pool.map(_throw_away, connection, queries))
