"""Rows from Postgres: each core reads a slice of a table, and decodes the rows as they arrive.

psycopg opens the connections and runs the transaction. This module fetches the rows over psycopg's idle sockets, with
the protocol's messages (https://www.postgresql.org/docs/current/protocol-message-formats.html). Only these can request
strings as text and all other columns in binary. That costs the server a fifth less than COPY (FORMAT binary).
"""

import os
import queue
import socket
import struct
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, pairwise
from threading import Event
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from psycopg import Connection, DatabaseError, Error, errors, sql

from arrow_wire.errors import Conflict, Disconnected
from arrow_wire.postgres_reader import COPY, FULL, Decoder, Reading, Style, reading
from arrow_wire.postgres_server import LOCK_TIMEOUT, Connections, answers, ask, columns_of, literal, types_of
from arrow_wire.postgres_transactions import within
from arrow_wire.postgres_types import ServerType
from arrow_wire.sockets import wait_readable

Arrays: TypeAlias = list[pa.Array]
_BUFFER = 1 << 19  # bytes that one receive may fetch: they are still in the core's cache when they are decoded
_WAKE_UP = 1 << 18  # the kernel wakes us for this many bytes: waking up for every packet costs more than decoding it
_LEAST_WAKE_UP = 1 << 12
_ROWS, _BYTES = 1 << 19, 1 << 26  # of a chunk of a frame
_STREAM_ROWS, _STREAM_BYTES = 1 << 16, 1 << 24  # of a record batch of a stream
_SLICE_BLOCKS = 256  # of the table; fewer are not worth another connection
# For each binary value of a row the server takes 1 kB, and frees it before the next row. Above 128 kB, glibc returns
# that memory to the kernel, unless the process once freed a larger piece (mallopt(3), "dynamic mmap threshold"). The
# statement below frees one: a read of 200 columns then takes a third of the time (NOTES.md).
_WIDE = 64  # columns
_FREE_A_LARGE_PIECE = "SELECT length(repeat('x', 1000000))"
_HEADER_BYTES = 19  # of a binary COPY
_LIMIT = f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
_BEGIN = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; {_LIMIT}"
_BLOCKS = "pg_relation_size(%s::regclass) / current_setting('block_size')::int"
_SENT_AS_TEXT = frozenset(
    ("text", "varchar", "bpchar", "json", "name", "enum")
)  # types whose binary form is their text


@dataclass(frozen=True)
class Source:
    """The source of a read: a query, and the table if the query reads all of it, whose blocks can be divided."""

    query: str
    table: str = ""

    @property
    def within(self) -> str:
        """The part after FROM in a query about the rows."""
        return self.table or f"({self.query}\n) AS q"


class _Changed(Conflict):
    """The columns differ from those in the request."""


@dataclass(frozen=True)
class _Columns:
    """The columns of an answer: their names, their types on the server, and how they are read.

    `alone` is whether the request was outside a transaction.
    """

    names: list[str]
    types: list[ServerType]
    readings: list[Reading]
    alone: bool = False

    def require_same(self, content: bytes) -> None:
        """Raise Conflict unless a RowDescription is of these columns: others may have changed the table since."""
        place, found = 2, []
        for _ in range(int.from_bytes(content[:2], "big")):
            end = content.index(0, place)
            _, _, oid, _, modifier, _ = struct.unpack_from("!IhIhih", content, end + 1)
            found.append((content[place:end].decode(), oid, modifier))
            place = end + 19
        if found != [(name, one.oid, one.modifier) for name, one in zip(self.names, self.types, strict=True)]:
            raise _Changed("the columns were changed meanwhile; read again")


def _request(statement: str, readings: Sequence[Reading], alone: bool) -> bytes:
    """Return the messages Parse, Bind, Describe, Execute and Sync; Bind says which columns are binary.

    If the query is `alone`, the messages also begin and commit its transaction.
    """
    formats = [not one.as_text for one in readings]
    messages = [*map(_executed, _BEGIN.split("; ") if alone else ()), _executed(statement, formats)]
    messages += [_executed("COMMIT")] if alone else []
    return b"".join([*messages, _message(b"S", b"")])


def _executed(statement: str, formats: Sequence[bool] | None = None) -> bytes:
    """Return the messages that execute a statement; with formats, they also describe its columns."""
    bind = struct.pack(f"!xxhhh{len(formats or ())}h", 0, 0, len(formats or ()), *formats or ())
    described = _message(b"D", b"P\0") if formats is not None else b""
    parse = _message(b"P", b"\0%b\0\0\0" % statement.encode())
    return parse + _message(b"B", bind) + described + _message(b"E", bytes(5))


def _message(tag: bytes, content: bytes) -> bytes:
    return tag + struct.pack("!i", 4 + len(content)) + content


_BEGUN, _COMMITTED = b"".join(map(_executed, _BEGIN.split("; "))), _executed("COMMIT")
_SYNC = _message(b"S", b"")


def _fetch(connection: Connection[Any], statement: str, columns: _Columns, rows: int, size: int) -> Iterator[Arrays]:
    """Request a slice; yield its rows, as they arrive, as lists of arrays. If TLS encrypts the socket, or the system
    cannot share it, psycopg reads the rows: a COPY, which costs the server a fifth more.
    """
    fetch = _fetch_off_socket if _has_socket(connection) else _fetch_by_copy
    return fetch(connection, statement, columns, rows, size)


def _has_socket(connection: Connection[Any]) -> bool:
    return not connection.pgconn.ssl_in_use and sys.platform != "win32"


def _fetch_off_socket(
    connection: Connection[Any], statement: str, columns: _Columns, rows: int, size: int
) -> Iterator[Arrays]:
    """Send the request over an idle connection's socket and read the answer."""
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as wire:
        received = _Received(wire)
        try:
            wire.sendall(_request(statement, columns.readings, columns.alone))
            decoder = Decoder(columns.names, columns.readings)  # while the server works
            yield from _chunks(received, decoder, columns, rows, size)
        except DatabaseError:  # of the server, which then was ready for the next query
            raise
        except (ValueError, _Changed, GeneratorExit):  # a wrong value, or the caller stops: the rest is dropped
            connection.cancel_safe()
            received.skip()
            raise
        except BaseException:  # the rest of the slice may still arrive, and no other code can read it
            connection.close()
            raise
        finally:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)  # the option is the connection's too


def _fetch_by_copy(
    connection: Connection[Any], statement: str, columns: _Columns, rows: int, size: int
) -> Iterator[Arrays]:
    """Request a binary COPY of the statement's rows, with types that Arrow lacks as strings."""
    aliases = [f"c{number}" for number in range(len(columns.names))]
    wanted = [  # a cast would show some values in another way, such as an inet
        f"CASE WHEN num_nulls({alias}) = 0 THEN format('%s', {alias}) END"
        if one.as_text and of.name not in _SENT_AS_TEXT
        else alias
        for alias, one, of in zip(aliases, columns.readings, columns.types, strict=True)
    ]
    query = (
        f"COPY (SELECT {', '.join(wanted)} FROM ({statement}\n) AS q ({', '.join(aliases)})) TO STDOUT (FORMAT binary)"
    )
    decoder, taken, data = Decoder(columns.names, columns.readings, COPY), 0, bytearray()
    with connection.cursor().copy(query.encode()) as copy:
        skip = _HEADER_BYTES
        for piece in chain(copy, [b""]):
            data += memoryview(piece)[skip:]
            skip = 0 if len(piece) else skip
            if piece and len(data) < _WAKE_UP:
                continue
            place = 0
            while True:
                before, place = place, decoder.feed(memoryview(data), place, rows)
                taken += place - before
                if not (decoder.end == FULL or (taken >= size and decoder.rows)):
                    break
                yield decoder.take()
                taken = 0
            data = data[place:]
    yield decoder.take()


def _chunks(
    received: "_Received", decoder: Decoder, columns: _Columns, rows: int, size: int
) -> Iterator[Arrays]:  # fmt: skip
    """Decode rows until the server is ready for the next query; yield lists of arrays, one for each column. Two limits,
    of rows and of bytes, end a list. Raises DatabaseError with the server's message.
    """
    failure, taken = None, 0
    while True:
        tag, content = received.message()
        if tag is None:  # rows
            before, received.begin = received.begin, decoder.feed(received.arrived, received.begin, rows)
            taken += received.begin - before
            if decoder.end == FULL or (taken >= size and decoder.rows):
                yield decoder.take()
                taken = 0
            continue
        if tag == b"T":
            columns.require_same(content)
        if tag == b"E":
            failure = failure or _error(content)
        if tag == b"Z":  # ReadyForQuery
            if failure:
                raise failure
            yield decoder.take()
            return


class _Received:
    """Bytes that arrived on a connection and are not used yet: `arrived`, from `begin` on."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire, self._buffer, self._end, self.begin = wire, np.empty(_BUFFER, np.uint8).data, 0, 0
        self._sum, self._wake = 0, 1  # bytes received so far, and how many the kernel wakes us for

    @property
    def arrived(self) -> memoryview:
        return self._buffer[: self._end]

    def message(self) -> tuple[bytes | None, bytes]:
        """Return tag and content of the next message unless it is a row; otherwise receive more of it."""
        rest, size = self._next()
        if len(rest) < max(size, 6):
            self._receive(rest, size)
        elif rest[0] != ord("D"):
            self.begin += size
            return bytes(rest[:1]), bytes(rest[5:size])
        return None, b""

    def skip(self) -> None:
        """Read on until the server is ready for the next query."""
        tag = None
        while tag != b"Z":
            rest, size = self._next()
            if rest[:1] == b"D" and len(rest) >= size:
                self.begin += size
            else:
                tag, _ = self.message()

    def _next(self) -> tuple[memoryview, int]:
        """Return the bytes from the next message on, and its size, or 5 while the size is unknown."""
        rest = self._buffer[self.begin : self._end]
        size = 1 + int.from_bytes(rest[1:5], "big") if len(rest) >= 5 else 5
        if size < 5 or size > _LONGEST:
            raise Disconnected(f"the server sent a message of {size - 1} bytes, which Postgres' protocol does not have")
        return rest, size

    def _receive(self, rest: memoryview, size: int) -> None:
        """Move the rest to the beginning, with room for a message of this size, and receive more after it."""
        if max(size, 2 * len(rest)) > len(self._buffer):  # one long message
            self._buffer = np.empty(_BUFFER + max(size, 2 * len(rest)), np.uint8).data
        self._buffer[: len(rest)] = rest
        self.begin, self._end = 0, len(rest)
        wake = min(_WAKE_UP, self._sum // 8)  # so that a few rows do not wait for their end
        if wake >= max(_LEAST_WAKE_UP, 2 * self._wake):
            self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wake)
            self._wake = wake
        while True:
            # After that time fewer bytes are fetched too: the end of a slice.
            seconds = max(0.0005, 0.002 * self._wake / _WAKE_UP) if self._wake > 1 else None
            wait_readable(self._wire, seconds)
            with suppress(BlockingIOError):  # nothing arrived
                if (size := self._wire.recv_into(self._buffer[self._end :])) == 0:
                    raise Disconnected("the server closed the connection")
                self._end += size
                self._sum += size
                return


_LONGEST = (1 << 30) + (1 << 20)  # bytes of a message: a value of the server has 1 GB at most


def _error(content: bytes) -> DatabaseError:
    """Return an ErrorResponse as an exception."""
    fields = {field[:1]: field[1:].decode(errors="replace") for field in content.split(b"\0")}
    state, text = fields.get(b"C", ""), fields.get(b"M", "")  # SQLSTATE, message
    try:
        found: Any = errors.lookup(state)
        return found(f"{state}: {text}")
    except KeyError:
        return DatabaseError(f"{state}: {text}")


@contextmanager
def _slices(
    connections: Connections, source: Source, style: Style
) -> Iterator[tuple[Sequence[Connection[Any]], list[str], _Columns]]:
    """Begin a transaction on as many connections as are worth it, all with one snapshot.

    Yield them, a query for each, and the columns.
    """
    first = connections[0]
    opened = [first]
    try:
        if (few := _few(first, source, style)) is not None:
            yield [first], [source.query], few
            return
        first.execute(_BEGIN.encode())
        columns = _columns(first, source, style)
        blocks, snapshot = 0, ""
        if source.table:
            [(blocks, snapshot)] = ask(first, f"SELECT {_BLOCKS}, pg_export_snapshot()", [source.table])
        used = opened = connections[: max(1, blocks // _SLICE_BLOCKS)]
        if len(columns.names) >= _WIDE:
            for connection in used:
                ask(connection, _FREE_A_LARGE_PIECE)
        for other in used[1:]:
            other.execute(f"{_BEGIN}; SET TRANSACTION SNAPSHOT '{snapshot}'".encode())
        cuts = [*(blocks * i // len(used) for i in range(len(used))), (1 << 32) - 1]  # no table has more blocks
        ranges = [f" WHERE ctid >= '({low},0)' AND ctid < '({high},0)'" for low, high in pairwise(cuts)]
        ranges = ranges if len(used) > 1 else [""]  # a view has no ctid
        yield used, [f"{source.query}{rows}" for rows in ranges], columns
        for connection in used:
            connection.execute("COMMIT")
    except BaseException:
        for connection in opened:
            with suppress(Error):  # a broken connection has no transaction left
                connection.execute("ROLLBACK")
        raise


def _few(connection: Connection[Any], source: Source, style: Style) -> _Columns | None:
    """Return the columns of a query, or of a table that is not worth two connections, in one round trip. Return None if
    that is not enough: for arrays, many columns, or types that not every server has.
    """
    if not _has_socket(connection):
        return None
    blocks = _BLOCKS.replace("%s", literal(source.table)) if source.table else "0"
    questions = f"{_LIMIT}; SELECT * FROM {source.within} LIMIT 0; SELECT {blocks}"
    with connection.lock:
        _, described, counted = answers(connection, questions.encode())
    types = types_of(described)
    if int(counted.get_value(0, 0) or 0) >= 2 * _SLICE_BLOCKS or not types or len(types) >= _WIDE:
        return None
    if any(one.item is not None for one in types):
        return None
    names = [(described.fname(number) or b"").decode() for number in range(described.nfields)]
    return _Columns(names, types, [reading(one, style) for one in types], True)


def _columns(connection: Connection[Any], source: Source, style: Style) -> _Columns:
    """Return the columns of a query or a table."""
    names, types = columns_of(connection, f"SELECT * FROM {source.within}")
    depths = _depths(connection, source, names, types)
    return _Columns(names, types, [reading(one, style, depth) for one, depth in zip(types, depths, strict=True)])


def _depths(connection: Connection[Any], source: Source, names: list[str], types: list[ServerType]) -> list[int]:
    """Return how many dimensions the arrays of each column have: the most that the rows have now."""
    lists = [name for name, one in zip(names, types, strict=True) if one.item is not None]
    if not lists:
        return [1] * len(names)
    asked = ", ".join(f"max(array_ndims({sql.Identifier(name).as_string()}))" for name in lists)
    found = dict(zip(lists, ask(connection, f"SELECT {asked} FROM {source.within}")[0], strict=True))
    return [found.get(name) or 1 for name in names]


def read(connections: Connections, source: Source, style: Style) -> pa.Table:
    """Return rows as Arrow, in columns of this style; rows of a table are in its physical order."""
    with suppress(_Changed, errors.ProtocolViolation):  # as many formats are sent as there were columns
        return _read(connections, source, style)
    return _read(connections, source, style)


def _read(connections: Connections, source: Source, style: Style) -> pa.Table:
    with _slices(connections, source, style) as (used, statements, columns):

        def fetch(connection: Connection[Any], statement: str) -> list[Arrays]:
            return list(_fetch(connection, statement, columns, _ROWS, _BYTES))

        if len(used) == 1:
            slices = [fetch(used[0], statements[0])]
        else:
            with ThreadPoolExecutor(len(used)) as pool:
                slices = list(pool.map(fetch, used, statements))
    return _table(chain(*slices), columns.names)


def _table(parts: Any, names: list[str]) -> pa.Table:
    arrays = [pa.chunked_array(pieces) for pieces in zip(*parts, strict=True)]
    return pa.table(arrays, names)


def read_within(connection: Connection[Any], source: Source, style: Style) -> pa.Table:
    """As `read`, over the caller's connection and in its transaction alone."""
    with within(connection):
        columns = _columns(connection, source, style)
        return _table(list(_fetch(connection, source.query, columns, _ROWS, _BYTES)), columns.names)


def stream_within(connection: Connection[Any], source: Source, style: Style) -> Iterator[Any]:
    """As `stream`, over the caller's connection, which is busy until the last record batch is taken."""
    with within(connection):
        columns = _columns(connection, source, style)
        yield _schema(columns)
        for arrays in _fetch(connection, source.query, columns, _STREAM_ROWS, _STREAM_BYTES):
            yield pa.record_batch(arrays, columns.names)


def _schema(columns: _Columns) -> pa.Schema:
    arrow_types = [one.arrow_type for one in columns.readings]
    return pa.schema([pa.field(*pair) for pair in zip(columns.names, arrow_types, strict=True)])


def stream(connections: Connections, source: Source, style: Style) -> Iterator[Any]:
    """Yield the schema, then the rows as record batches, in the order of their arrival.

    Each connection is at most two batches ahead of the caller.
    """
    with _slices(connections, source, style) as (used, statements, columns), ExitStack() as stack:
        yield _schema(columns)
        arrived: queue.Queue[Any] = queue.Queue(len(used))
        stopped = Event()

        def put(item: Any) -> None:
            while not stopped.is_set():
                with suppress(queue.Full):
                    return arrived.put(item, timeout=0.1)

        def fetch(connection: Connection[Any], statement: str) -> None:
            try:
                for arrays in _fetch(connection, statement, columns, _STREAM_ROWS, _STREAM_BYTES):
                    put(pa.record_batch(arrays, columns.names))
                    if stopped.is_set():
                        return
                put(None)
            except BaseException as error:
                put(error)

        pool = stack.enter_context(ThreadPoolExecutor(len(used)))
        stack.callback(stopped.set)
        for connection, statement in zip(used, statements, strict=True):
            pool.submit(fetch, connection, statement)
        running = len(used)
        while running:
            item = arrived.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                running -= 1
            else:
                yield item
