"""Our own best way out of Postgres: every core gets a slice of the table, and a compiled loop decodes it as it arrives.

psycopg opens the connections and runs the transaction. The rows are asked for over its idle sockets, in the server's
own messages (https://www.postgresql.org/docs/current/protocol-message-formats.html): only there can text columns be
asked for as text and all others in binary, which costs the server a fifth less than COPY (FORMAT binary).
"""

import mmap
import os
import select
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from itertools import chain, pairwise
from typing import Any

from harness.registry import Unsupported, transport
from harness.transports.postgres.psycopg.loops import (
    BASE,
    CONNECTIONS,
    REQUIRES,
    TEXT,
    TYPES,
    UUID,
    compiled,
    refuse_unknown,
)
from harness.transports.postgres.tables import LOCK_TIMEOUT

_WAY: Any = {"path": "SELECT in slices", "payload": "binary rows", "settings": {"jit": "off"}}
_BUFFER = 1 << 19  # bytes a receive may fetch: they are still in the core's own cache when they are decoded
_WAKE_UP = 1 << 18  # the kernel wakes us for no less: waking up for every packet costs more than decoding it
_ROWS, _TEXT_BYTES = 1 << 19, 1 << 25  # room in a chunk, and in each of its text columns
_SLACK = 48  # the loop moves whole words, beyond the end of a text, and makes 36 characters of the 16 bytes of a uuid
_RAW = {"bool": "uint8", "date32": "int32", "timestamp[us]": "int64"}  # Arrow types as the loop leaves them
_EPOCHS = {"date32": 10_957, "timestamp[us]": 946_684_800_000_000}  # the server counts from 2000, Arrow from 1970
_PANDAS = {"string_view": "large_string", "date32": "timestamp[us]"}  # pandas has neither views nor dates
# A line of a chunk's state: how, the addresses of values, nulls and texts, bytes of text so far and at most, views?
_HOW, _VALUES, _NULLS, _DATA, _USED, _LIMIT, _VIEWS = range(7)


@contextmanager
def connect(uri):
    """Yield a connection for each core, but two to eight; compile the loop, which is kept on disk for the next time."""
    import psycopg

    with ExitStack() as stack:
        # Nothing is prepared: a table may change, and what was prepared would then be refused.
        settings: Any = {"autocommit": True, "client_encoding": "utf8", "prepare_threshold": None}
        opened = (psycopg.connect(uri, **settings) for _ in range(CONNECTIONS))
        connections = [stack.enter_context(connection) for connection in opened]
        if connections[0].pgconn.ssl_in_use:
            raise Unsupported("rows are read off the socket itself, which TLS encrypts; sslmode=disable avoids it")
        if connections[0].info.parameter_status("server_encoding") == "SQL_ASCII":
            raise Unsupported("a database in SQL_ASCII does not know how its texts are encoded")
        _loop()(_Chunk([]).state, 0, 0, 0, 0)
        yield connections


@cache
def _loop():
    """Return `_decode` compiled; it runs without the interpreter lock and, as in C, is told addresses."""
    return compiled(_decode, (_swap, _value, _text, _uuid), (1, 4, 8))


def _decode(memory, state, position, end, row, rows):
    """Decode messages of rows from address `position` on; return position, row and whether the chunk is full."""
    octets, _, words = memory
    while row < rows:
        following = position + 1 + (_swap(words[position + 1]) >> 32)
        if end - position < 5 or octets[position] != 68 or end < following:  # 68: D, DataRow
            return position, row, False
        at = position + 7
        for number in range(len(state)):
            at = _value(memory, state, number, at, row)
            if at == 0:
                return position, row, True
        position, row = following, row + 1
    return position, row, True


def _swap(word):
    """Return a word with its eight bytes in reverse: the server sends the highest first."""
    word = (word & 0x00FF00FF00FF00FF) << 8 | word >> 8 & 0x00FF00FF00FF00FF
    word = (word & 0x0000FFFF0000FFFF) << 16 | word >> 16 & 0x0000FFFF0000FFFF
    return word << 32 | word >> 32 & 0xFFFFFFFF


def _value(memory, state, number, at, row):
    """Decode one value and return the address behind it, or 0 when the chunk has no room for its text."""
    octets, _, words = memory
    how = state[number, _HOW]
    length = _swap(words[at]) >> 32
    at += 4
    if length < 0:
        octets[state[number, _NULLS] + (row >> 3)] &= ~(1 << (row & 7))
        if how >= UUID:
            _text(memory, state, number, at, 0, row)
        return at
    if how < UUID:  # a whole word: what it says of the next rows is overwritten by them
        words[state[number, _VALUES] + how * row] = _swap(words[at]) >> (64 - 8 * how)
    elif state[number, _USED] + length + _SLACK > state[number, _LIMIT]:
        return 0
    elif how == UUID:
        target = state[number, _DATA] + state[number, _USED]
        _uuid(memory, at, target)
        _text(memory, state, number, target, 36, row)
    else:
        _text(memory, state, number, at, length, row)
    return at + length


def _text(memory, state, number, source, length, row):
    """Store a text: of up to 12 bytes in Arrow's string view itself, else in the column's data."""
    words, used, views = memory[2], state[number, _USED], state[number, _VIEWS]
    if length > 12 or not views:
        target = state[number, _DATA] + used
        for i in range(0, length, 8):
            words[target + i] = words[source + i]
        state[number, _USED] = used + length
    if not views:
        words[state[number, _VALUES] + 8 * row + 8] = used + length
        return
    first, second = words[source], used << 32
    if length <= 12:
        first &= (1 << 8 * length) - 1 if length < 8 else -1
        last = words[source + 8] & (1 << 8 * max(length - 8, 0)) - 1
        second = first >> 32 & 0xFFFFFFFF | last << 32
    view = state[number, _VALUES] + 16 * row
    words[view], words[view + 8] = length | first << 32, second


def _uuid(memory, source, target):
    """Write the 36 characters of a uuid: 32 hexadecimal digits, eight at a time, and four dashes."""
    octets, ints, words = memory
    for part in range(4):
        number = _swap(words[source + 4 * part]) >> 32 & 0xFFFFFFFF
        number = (number | number << 16) & 0x0000FFFF0000FFFF
        number = (number | number << 8) & 0x00FF00FF00FF00FF
        number = (number | number << 4) & 0x0F0F0F0F0F0F0F0F  # a digit in each byte
        letters = number + 0x0606060606060606 >> 4 & 0x0101010101010101
        words[target + (0, 9, 19, 28)[part]] = _swap(number + 0x3030303030303030 + 39 * letters)
    ints[target + 14], ints[target + 24] = ints[target + 13], ints[target + 23]
    for dash in (8, 13, 18, 23):
        octets[target + dash] = 45


class _Chunk:
    """Buffers of Arrow arrays that rows are decoded into; what is never written takes no memory."""

    def __init__(self, columns, message=0):
        import numpy as np

        self.columns, self.rows, self.buffers = columns, 0, []
        self.state = np.zeros((len(columns), 7), np.int64)
        limit, private = _TEXT_BYTES + message + _SLACK, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        for line, (how, _, wanted) in zip(self.state, columns, strict=True):
            sizes = _ROWS * min(how, 16) + 8, _ROWS // 8, limit if how >= UUID else 1
            self.buffers.append([np.frombuffer(mmap.mmap(-1, size, private), np.uint8) for size in sizes])
            self.buffers[-1][1][:] = 255  # the loop clears the bits of nulls
            line[:] = how, *(b.ctypes.data - BASE for b in self.buffers[-1]), 0, limit, wanted == "string_view"

    def arrays(self):
        """Return one Arrow array a column. Raises ArrowInvalid for a date or time out of Arrow's range: infinity."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for line, (how, arrow, wanted), buffers in zip(self.state, self.columns, self.buffers, strict=True):
            values, nulls, texts = (pa.py_buffer(buffer) for buffer in buffers)
            parts = [nulls, values, texts.slice(0, line[_USED])] if how >= UUID else [nulls, values]
            kind = pa.type_for_alias(wanted if how >= UUID else _RAW.get(arrow, arrow))
            array = pa.Array.from_buffers(kind, self.rows, parts)
            if arrow in _EPOCHS:  # in two steps, so that -infinity, the smallest number, overflows as infinity does
                one, rest = (pa.scalar(number, array.type) for number in (1, _EPOCHS[arrow] + 1))
                array = pc.add_checked(pc.subtract_checked(array, one), rest).view(arrow)
            yield array.cast(wanted)


def _request(statement, columns):
    """Return the messages Parse, Bind, Execute and Sync; Bind says of each column whether it comes in binary."""
    formats = [how != TEXT for how, _, _ in columns]
    bind = struct.pack(f"!xxhhh{len(formats)}h", 0, 0, len(formats), *formats)
    messages = (b"P", b"\0%b\0\0\0" % statement.encode()), (b"B", bind), (b"E", bytes(5)), (b"S", b"")
    return b"".join(kind + struct.pack("!i", 4 + len(content)) + content for kind, content in messages)


def _fetch(connection, statement, columns):
    """Ask for a slice over an idle connection's socket and decode it while it arrives; return its chunks as arrays."""
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WAKE_UP)
        try:
            wire.sendall(_request(statement, columns))
            chunks, failure = _chunks(wire, columns)
        except BaseException:  # the rest of the slice may still be on its way, which nobody else can read
            connection.close()
            raise
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)  # the option is the connection's too
    if failure:
        raise failure
    return [list(chunk.arrays()) for chunk in chunks]


def _chunks(wire, columns):
    """Decode what arrives until the server is ready for the next query; return the chunks, and the error it sent."""
    import numpy as np
    from psycopg import DatabaseError

    chunks, failure, buffer, begin, end = [chunk := _Chunk(columns)], None, np.empty(_BUFFER, np.uint8), 0, 0
    while True:
        start = buffer.ctypes.data - BASE
        position, chunk.rows, full = _loop()(chunk.state, start + begin, start + end, chunk.rows, _ROWS)
        begin = position - start
        size = 1 + int.from_bytes(buffer[begin + 1 : begin + 5].tobytes(), "big") if end - begin >= 5 else 5
        if full:
            chunks.append(chunk := _Chunk(columns, size))
        elif end - begin < size:
            rest = buffer[begin:end]
            if 2 * len(rest) > len(buffer):  # one long message
                buffer = np.empty(2 * len(buffer), np.uint8)
            buffer[: len(rest)] = rest
            begin, end = 0, len(rest)
            select.select([wire], [], [], 0.002)  # after which less is fetched too: the end of a slice
            with suppress(BlockingIOError):  # nothing came
                end += wire.recv_into(buffer.data[end:-_SLACK])
                if end == len(rest):
                    raise failure or ConnectionError("the server closed the connection")
        else:
            kind, fields = chr(buffer[begin]), buffer[begin + 5 : begin + size].tobytes().split(b"\0")
            begin += size
            if kind == "E":  # C is the SQLSTATE, M the message
                failure = DatabaseError(b": ".join(field[1:] for field in fields if field[:1] in (b"C", b"M")).decode())
            if kind == "Z":  # ReadyForQuery
                return chunks, failure


def _read(connections, table, instead):
    """Return the table as Arrow, all connections looking at one snapshot; `instead` has types to return for others."""
    import pyarrow as pa
    from psycopg import Error, sql

    first, name = connections[0], sql.Identifier(table).as_string()
    limit = f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
    begin = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL jit = off; {limit}"
    try:
        first.execute(begin)
        described = first.execute(f"SELECT * FROM {name} LIMIT 0").description
        refuse_unknown(first, described, "read a view that casts them, or read in another way")
        columns = [(how, arrow, instead.get(arrow, arrow)) for how, arrow in (TYPES[c.type_code] for c in described)]
        asked = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int, pg_export_snapshot()"
        blocks, snapshot = first.execute(asked, [name]).fetchone()
        used = connections[: max(1, blocks // 256)]
        for other in used[1:]:
            other.execute(f"{begin}; SET TRANSACTION SNAPSHOT '{snapshot}'")
        cuts = [*(blocks * i // len(used) for i in range(len(used))), (1 << 32) - 1]  # no table has more blocks
        ranges = [f" WHERE ctid >= '({low},0)' AND ctid < '({high},0)'" for low, high in pairwise(cuts)]
        ranges = ranges if len(used) > 1 else [""]  # a view has no ctid
        statements = [f"SELECT * FROM {name}{rows}" for rows in ranges]
        with ThreadPoolExecutor(len(used)) as pool:
            slices = list(pool.map(_fetch, used, statements, [columns] * len(used)))
        for connection in used:
            connection.execute("COMMIT")
    except BaseException:
        for connection in connections:
            with suppress(Error):  # a broken connection has no transaction left
                connection.rollback()
        raise
    arrays = [pa.chunked_array(parts) for parts in zip(*chain(*slices), strict=True)]
    return pa.table(arrays, [column.name for column in described])


@transport(
    "read",
    frame="polars",
    requires=["polars", *REQUIRES],
    lossy={"refused": "timestamps_tz decimals arrays enum json jsonb"},
    **_WAY,
)
def read_polars_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into the frame's own memory.

    All types come back exactly, a uuid as text; an infinite date is refused. A slice is a range of the table's blocks;
    one snapshot makes of them what one query would give. `jit` is off: it takes longer than a slice saves by it.
    """
    import polars as pl

    return pl.from_arrow(_read(connections, table, {}), rechunk=False)


@transport(
    "read",
    frame="pandas",
    requires=["pandas", *REQUIRES],
    lossy={"refused": "far_dates timestamps_tz decimals arrays enum json jsonb"},
    **_WAY,
)
def read_pandas_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into Arrow's memory.

    As `read_polars_tuned`, but texts alone (dtype str) stay there: other columns are copied. A date becomes
    datetime64[us]; integers with nulls get pandas' nullable dtypes.
    """
    import pandas as pd

    dtypes = {"bool": pd.BooleanDtype(), "int16": pd.Int16Dtype(), "int32": pd.Int32Dtype(), "int64": pd.Int64Dtype()}
    arrow = _read(connections, table, _PANDAS)
    made = [c.to_pandas(types_mapper=(lambda t: dtypes.get(str(t))) if c.null_count else None) for c in arrow.columns]
    return pd.DataFrame(dict(zip(arrow.column_names, made, strict=True)), copy=False)
