"""Our own best read of Postgres: every core gets a slice of the table, and `arrow_wire` decodes it as it arrives.

psycopg opens the connections and runs the transaction. The rows are asked for over its idle sockets, in the server's
own messages (https://www.postgresql.org/docs/current/protocol-message-formats.html): only there can text columns be
asked for as text and all others in binary, which costs the server a fifth less than COPY (FORMAT binary).
"""

import os
import queue
import select
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain, pairwise
from threading import Event
from typing import Any

from harness.registry import Unsupported, transport
from harness.transports.parts import write_part
from harness.transports.postgres.psycopg.tuned import columns_of
from harness.transports.postgres.tables import LOCK_TIMEOUT, number_of_connections

_REQUIRES = ["arrow_wire.postgres_reader", "psycopg", "pyarrow"]
_WAY: Any = {"path": "SELECT in slices", "payload": "binary rows", "settings": {"jit": "off"}}
_BUFFER = 1 << 19  # bytes a receive may fetch: they are still in the core's own cache when they are decoded
_WAKE_UP = 1 << 18  # the kernel wakes us for no less: waking up for every packet costs more than decoding it
_ROWS, _BYTES = 1 << 19, 1 << 26  # of a chunk of a frame
_STREAM_ROWS, _STREAM_BYTES = 1 << 16, 1 << 24  # of a record batch of a stream
_SLICE_BLOCKS = 256  # of the table; fewer are not worth another connection
_POLARS_DIGITS = 38  # of a decimal of polars
# For each binary value of a row the server takes 1 kB, and gives all of it back before the next row. Where that is more
# than 128 kB, glibc in turn gives it back to the kernel, unless the process has once freed a larger piece (mallopt(3),
# "dynamic mmap threshold"), which this statement sees to: a third of the time with 200 columns (docs/native.md).
_WIDE = 64  # columns
_FREE_A_LARGE_PIECE = "SELECT length(repeat('x', 1000000))"


@contextmanager
def connect(uri):
    """Yield a connection for each core, but two to eight."""
    import psycopg

    with ExitStack() as stack:
        # Texts come as UTF-8 from any database: the server converts them, or in one of SQL_ASCII checks them. Said here
        # it is stronger than PGCLIENTENCODING, and than what a role or a database has set.
        # Nothing is prepared: a table may change, and what was prepared would then be refused.
        settings: Any = {"autocommit": True, "client_encoding": "utf8", "prepare_threshold": None}
        opened = (psycopg.connect(uri, **settings) for _ in range(number_of_connections()))
        connections = [stack.enter_context(connection) for connection in opened]
        if connections[0].pgconn.ssl_in_use:
            raise Unsupported("rows are read off the socket itself, which TLS encrypts; sslmode=disable avoids it")
        yield connections


def _request(statement, readings):
    """Return the messages Parse, Bind, Execute and Sync; Bind says of each column whether it comes in binary."""
    formats = [not one.as_text for one in readings]
    bind = struct.pack(f"!xxhhh{len(formats)}h", 0, 0, len(formats), *formats)
    messages = (b"P", b"\0%b\0\0\0" % statement.encode()), (b"B", bind), (b"E", bytes(5)), (b"S", b"")
    return b"".join(tag + struct.pack("!i", 4 + len(content)) + content for tag, content in messages)


def _fetch(connection, statement, columns, rows, size):
    """Ask for a slice over an idle connection's socket; yield its rows, as they arrive, as lists of arrays."""
    from arrow_wire.postgres_reader import Decoder
    from psycopg import DatabaseError

    names, readings = columns
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_UP)
        received = _Received(wire)
        try:
            wire.sendall(_request(statement, readings))
            yield from _chunks(received, Decoder(names, readings), rows, size)
        except DatabaseError:  # of the server, which then was ready for the next query
            raise
        except ValueError:  # of a value; the rest of the slice is not wanted any more
            connection.cancel_safe()
            received.skip()
            raise
        except BaseException:  # the rest of the slice may still be on its way, which nobody else can read
            connection.close()
            raise
        finally:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)  # the option is the connection's too


def _chunks(received, decoder, rows, size):
    """Decode what arrives until the server is ready for the next query; yield lists of arrays, one a column.

    A list has so many rows, or fewer where they come to so many bytes. Raises DatabaseError with what the server says.
    """
    from arrow_wire.postgres_reader import FULL

    failure, taken = None, 0
    while True:
        before, received.begin = received.begin, decoder.feed(received.arrived, received.begin, rows)
        taken += received.begin - before
        if decoder.end == FULL or (taken >= size and decoder.rows):
            yield decoder.take()
            taken = 0
            continue
        tag, content = received.message()
        if tag == b"E":
            failure = _error(content)
        if tag == b"Z":  # ReadyForQuery
            if failure:
                raise failure
            yield decoder.take()
            return


class _Received:
    """What has arrived of a connection and was not used yet: `arrived`, from `begin` on."""

    def __init__(self, wire):
        self._wire, self._buffer, self._end, self.begin = wire, memoryview(bytearray(_BUFFER)), 0, 0

    @property
    def arrived(self):
        return self._buffer[: self._end]

    def message(self):
        """Return tag and content of the next message, if it is no row; else see to it that more of it arrives."""
        rest = self._buffer[self.begin : self._end]
        size = 1 + int.from_bytes(rest[1:5], "big") if len(rest) >= 5 else 5
        if len(rest) < max(size, 6):
            self._receive(rest, size)
        elif rest[0] != ord("D"):
            self.begin += size
            return bytes(rest[:1]), bytes(rest[5:size])
        return None, b""

    def skip(self):
        """Read on until the server is ready for the next query."""
        tag = None
        while tag != b"Z":
            rest = self._buffer[self.begin : self._end]
            size = 1 + int.from_bytes(rest[1:5], "big") if len(rest) >= 5 else 5
            if rest[:1] == b"D" and len(rest) >= size:
                self.begin += size
            else:
                tag, _ = self.message()

    def _receive(self, rest, size):
        """Move what is left to the beginning, with room for a message of this size, and receive more behind it."""
        if max(size, 2 * len(rest)) > len(self._buffer):  # one long message
            self._buffer = memoryview(bytearray(_BUFFER + max(size, 2 * len(rest))))
        self._buffer[: len(rest)] = rest
        self.begin, self._end = 0, len(rest)
        while True:
            select.select([self._wire], [], [], 0.002)  # after which less is fetched too: the end of a slice
            with suppress(BlockingIOError):  # nothing came
                if (size := self._wire.recv_into(self._buffer[self._end :])) == 0:
                    raise ConnectionError("the server closed the connection")
                self._end += size
                return


def _error(content):
    """Return an ErrorResponse as an exception."""
    from psycopg import DatabaseError

    fields = content.split(b"\0")  # C is the SQLSTATE, M the message
    return DatabaseError(b": ".join(field[1:] for field in fields if field[:1] in (b"C", b"M")).decode())


@contextmanager
def _slices(connections, table):
    """Begin a transaction on as many connections as are worth it, all looking at one snapshot.

    Yield them, a query for each, and the names, types and declared dimensions of the columns.
    """
    from psycopg import Error, sql

    first, name = connections[0], sql.Identifier(table).as_string()
    limit = f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
    begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; {limit}"
    try:
        first.execute(begin)
        names, types = columns_of(first, f"SELECT * FROM {name}")
        asked = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int, pg_export_snapshot()"
        blocks, snapshot = first.execute(asked, [name]).fetchone()
        used = connections[: max(1, blocks // _SLICE_BLOCKS)]
        if len(names) >= _WIDE:
            for connection in used:
                connection.execute(_FREE_A_LARGE_PIECE)
        for other in used[1:]:
            other.execute(f"{begin}; SET TRANSACTION SNAPSHOT '{snapshot}'")
        cuts = [*(blocks * i // len(used) for i in range(len(used))), (1 << 32) - 1]  # no table has more blocks
        ranges = [f" WHERE ctid >= '({low},0)' AND ctid < '({high},0)'" for low, high in pairwise(cuts)]
        ranges = ranges if len(used) > 1 else [""]  # a view has no ctid
        yield used, [f"SELECT * FROM {name}{rows}" for rows in ranges], names, types, _depths(first, name, names, types)
        for connection in used:
            connection.execute("COMMIT")
    except BaseException:
        for connection in connections:
            with suppress(Error):  # a broken connection has no transaction left
                connection.execute("ROLLBACK")
        raise


def _depths(connection, table, names, types):
    """Return how many dimensions the arrays of each column have: the most that the table holds now."""
    from psycopg import sql

    lists = [name for name, one in zip(names, types, strict=True) if one.item is not None]
    if not lists:
        return [1] * len(names)
    asked = ", ".join(f"max(array_ndims({sql.Identifier(name).as_string()}))" for name in lists)
    found = dict(zip(lists, connection.execute(f"SELECT {asked} FROM {table}").fetchone(), strict=True))
    return [found.get(name) or 1 for name in names]


def _readings(types, depths, style):
    from arrow_wire.postgres_reader import reading

    return [reading(one, style, depth) for one, depth in zip(types, depths, strict=True)]


def _read(connections, table, style):
    """Return the table as Arrow, in columns of this style; the rows are in the order in which it holds them."""
    import pyarrow as pa

    with _slices(connections, table) as (used, statements, names, types, depths):
        columns = names, _readings(types, depths, style)

        def fetch(connection, statement):
            return list(_fetch(connection, statement, columns, _ROWS, _BYTES))

        with ThreadPoolExecutor(len(used)) as pool:
            slices = list(pool.map(fetch, used, statements))
    arrays = [pa.chunked_array(parts) for parts in zip(*chain(*slices), strict=True)]
    return pa.table(arrays, names)


def _stream(connections, table, style):
    """Yield the table as record batches, in the order in which they come over the connections.

    Each connection is at most two batches ahead of whoever takes them.
    """
    import pyarrow as pa

    with _slices(connections, table) as (used, statements, names, types, depths), ExitStack() as stack:
        columns = names, _readings(types, depths, style)
        arrived: queue.Queue[Any] = queue.Queue(len(used))
        stopped = Event()

        def put(item):
            while not stopped.is_set():
                with suppress(queue.Full):
                    return arrived.put(item, timeout=0.1)

        def fetch(connection, statement):
            try:
                for arrays in _fetch(connection, statement, columns, _STREAM_ROWS, _STREAM_BYTES):
                    put(pa.record_batch(arrays, names))
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


@transport("read", frame="polars", requires=["polars", *_REQUIRES], **_WAY)
def read_polars_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into the frame's own memory.

    A slice is a range of the table's blocks; one snapshot makes of them what one query would give. `jit` is off: it
    takes longer than a slice saves by it. A uuid comes as a text, an interval as a duration of days of 24 hours, and as
    the server's text what polars has no type for: JSON, network addresses, enums, a numeric without a limit or with
    more than 38 digits. Refused, with column and row, is what no frame can hold: an infinite date or time, a numeric
    NaN, an interval with months, 24:00. A table with arrays is asked first how many dimensions they have; where these
    begin is lost. The encoding of the database does not matter, but that text of SQL_ASCII has to be UTF-8.
    """
    from dataclasses import replace

    import polars as pl
    from arrow_wire.postgres_reader import VIEWS

    return pl.from_arrow(_read(connections, table, replace(VIEWS, digits=_POLARS_DIGITS)), rechunk=False)


@transport("read", frame="pandas", requires=["pandas", *_REQUIRES], lossy={"refused": "far_dates"}, **_WAY)
def read_pandas_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into Arrow's memory.

    As `read_polars_tuned`, but texts alone (dtype str) stay there: other columns are copied. pandas has no dtype for
    days: a date becomes datetime64[us], the one that pandas itself gives them, which ends in the year 294247; a later
    one is refused. datetime64[s] would hold it, but a dtype is not to depend on values. Integers with nulls get the
    nullable dtypes of pandas.
    """
    from dataclasses import replace

    import pandas as pd
    import pyarrow as pa
    from arrow_wire.postgres_reader import LARGE

    dtypes = {"bool": pd.BooleanDtype(), "int16": pd.Int16Dtype(), "int32": pd.Int32Dtype(), "int64": pd.Int64Dtype()}
    arrow = _read(connections, table, replace(LARGE, date=pa.timestamp("us")))
    made = [c.to_pandas(types_mapper=(lambda t: dtypes.get(str(t))) if c.null_count else None) for c in arrow.columns]
    return pd.DataFrame(dict(zip(arrow.column_names, made, strict=True)), copy=False)


@transport("unload", requires=["pyarrow.parquet", *_REQUIRES], **_WAY)
def unload_tuned(connections, table, destination):
    """Read a slice of the table on every core and write the rows, as they arrive, as one Parquet file.

    As `read_polars_tuned`, from which no more than a few batches of 65,536 rows are held at a time.
    """
    from arrow_wire.postgres_reader import LARGE

    write_part(destination, "rows", _stream(connections, table, LARGE))
