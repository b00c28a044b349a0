"""asyncpg with binary COPY: a decoder of its rows, and rows in key order: https://www.postgresql.org/docs/current/sql-copy.html"""

import functools
import uuid

from harness.registry import Unsupported, phase, transport
from harness.transports.postgres.asyncpg.client import received, uuid_positions
from harness.transports.postgres.columns import as_pandas

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
BLOCK_ROWS = 65_536  # rows decoded at a time: their field offsets are all known together
# Type in the server's catalogue -> width in bytes, numpy type, Arrow type.
FIXED = {
    "int2": (2, "int16", "int16"),
    "int4": (4, "int32", "int32"),
    "int8": (8, "int64", "int64"),
    "float4": (4, "float32", "float32"),
    "float8": (8, "float64", "float64"),
    "date": (4, "int32", "date32"),
    "timestamp": (8, "int64", "timestamp"),
    "timestamptz": (8, "int64", "timestamp"),
    "bool": (1, "bool", "bool_"),
}
TEXTS = ("text", "varchar", "bpchar", "name")
# Postgres counts days and microseconds from 2000-01-01, Arrow from 1970-01-01.
TO_2000 = {"date": 10_957, "timestamp": 946_684_800_000_000, "timestamptz": 946_684_800_000_000}


def _find(data, at, starts, lengths):
    """Record where the fields of the next rows begin and their lengths (-1: null), as arrays (columns, rows).

    Returns the number of rows found and the offset of the next row. The offset is -1 if a row does not match the
    columns or the data, or if the data lack their two-byte trailer.
    """
    columns, rows = starts.shape
    for row in range(rows):
        if at + 2 > len(data):
            return row, -1
        found = (data[at] << 8) | data[at + 1]
        at += 2
        if found == 0xFFFF:  # the trailer
            return row, at
        if found != columns:
            return row, -1
        for column in range(columns):
            if at + 4 > len(data):
                return row, -1
            lengths[column, row] = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]
            length = lengths[column, row]  # read back as a signed number; the combined octets are unsigned
            if length == 0xFFFFFFFF:
                length = lengths[column, row] = -1
            at += 4
            starts[column, row] = at
            at += max(length, 0)
            if at > len(data):
                return row, -1
    return rows, at


def _gather_fixed(data, starts, lengths, target):
    """Copy values of one width into rows of bytes, reversed from network byte order to little-endian."""
    width = target.shape[1]
    for row in range(len(starts)):
        if lengths[row] >= 0:
            if lengths[row] != width:
                return False
            for i in range(width):
                target[row, width - 1 - i] = data[starts[row] + i]
    return True


def _gather_strings(data, starts, lengths, offsets, target):
    """Copy strings of any length consecutively."""
    for row in range(len(starts)):
        for i in range(max(lengths[row], 0)):
            target[offsets[row] + i] = data[starts[row] + i]
    return True


def _gather_uuids(data, starts, lengths, offsets, target):
    """Print 16 bytes as 36 characters: hexadecimal digits with four dashes."""
    for row in range(len(starts)):
        if lengths[row] >= 0:
            if lengths[row] != 16:
                return False
            at = offsets[row]
            for i in range(16):
                octet = data[starts[row] + i]
                high, low = octet >> 4, octet & 15
                target[at] = high + 48 if high < 10 else high + 87
                target[at + 1] = low + 48 if low < 10 else low + 87
                at += 2
                if i in (3, 5, 7, 9):
                    target[at] = 45
                    at += 1
    return True


@functools.cache
def _compiled(function):
    """Compile one of the loops above to machine code (about a second, once per machine)."""
    import numba

    return numba.njit(cache=True)(function)


def _array(data, starts, lengths, sql_type):
    """Return an Arrow array of one column's values."""
    import numpy as np
    import pyarrow as pa

    rows, present = len(starts), lengths >= 0
    valid = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    if sql_type in FIXED:
        width, stored, arrow = FIXED[sql_type]
        octets = np.zeros((rows, width), np.uint8)
        fits = _compiled(_gather_fixed)(data, starts, lengths, octets)
        values = octets.reshape(-1).view(stored)
        if sql_type in TO_2000:
            limits = np.iinfo(values.dtype)
            if np.isin(values, (limits.min, limits.max)).any():
                raise Unsupported(f"a {sql_type} is infinite, which none in Arrow can be")
            values += TO_2000[sql_type]
        if sql_type == "bool":
            values = np.packbits(values, bitorder="little")
        more = {"timestamp": ("us",), "timestamptz": ("us", "UTC")}.get(sql_type, ())
        array = pa.Array.from_buffers(getattr(pa, arrow)(*more), rows, [valid, pa.py_buffer(values)])
    else:
        offsets = np.zeros(rows + 1, np.int64)
        np.cumsum(np.where(present, 36, 0) if sql_type == "uuid" else np.maximum(lengths, 0), out=offsets[1:])
        text = np.empty(offsets[-1], np.uint8)
        gather = _compiled(_gather_uuids if sql_type == "uuid" else _gather_strings)
        fits = gather(data, starts, lengths, offsets, text)
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(text)]
        array = pa.Array.from_buffers(pa.large_string(), rows, buffers)
    if not fits:
        raise ValueError(f"the server sent a value that is not as long as one of {sql_type}")
    return array


def _decode(payload, types):
    """Return the Arrow table in a binary COPY, given every column's type by name. Raises ValueError, Unsupported."""
    import numpy as np
    import pyarrow as pa

    for name, sql_type in types.items():
        if sql_type not in (*FIXED, *TEXTS, "uuid"):
            raise Unsupported(f'column "{name}" has the type {sql_type}, which this decoder does not know')
    if payload[:11] != SIGNATURE or payload[11:15] != bytes(4):
        raise ValueError("the answer does not begin with the header of a binary COPY without oids")
    data = np.frombuffer(payload, np.uint8)
    at = 19 + int.from_bytes(payload[15:19], "big")
    starts = np.empty((len(types), BLOCK_ROWS), np.int64)
    lengths = np.empty((len(types), BLOCK_ROWS), np.int64)
    batches, rows = [], BLOCK_ROWS
    while rows == BLOCK_ROWS:
        rows, at = _compiled(_find)(data, at, starts, lengths)
        if at < 0:
            raise ValueError("a row of the binary COPY has too few or too many values, or the data is cut off")
        found = zip(starts[:, :rows], lengths[:, :rows], types.values(), strict=True)
        batches.append(pa.record_batch([_array(data, *column) for column in found], names=list(types)))
    return pa.Table.from_batches(batches)


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
async def read_polars_copy_binary(connection, table):
    """Collect a binary COPY through a coroutine and decode its rows with loops that numba compiles, into Arrow columns.

    The server prints no text, and no value becomes a Python object. numba compiles at the first call, which takes a few
    seconds in a new process. The decoder supports integers, floats, dates, timestamps, booleans, strings, and uuids,
    which become strings.
    """
    import polars as pl

    with phase("receive"):
        payload, types = await received(connection, table, format="binary")
    with phase("decode"):
        return pl.from_arrow(_decode(payload, types))


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
async def read_pandas_copy_binary(connection, table):
    """Collect a binary COPY through a coroutine and decode its rows with loops that numba compiles, into Arrow columns.

    Works like read_polars_copy_binary. Arrow passes the columns to pandas. A date arrives as datetime64[us], an integer
    column with nulls as a nullable type such as Int64, a null in a float column as NaN.
    """
    with phase("receive"):
        payload, types = await received(connection, table, format="binary")
    with phase("decode"):
        return as_pandas(_decode(payload, types))


async def _key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in key order; an empty list without a key."""
    rows = await connection.fetch(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident($1::text)::regclass ORDER BY k.place",
        table,
    )
    return [name for (name,) in rows]


def _with_uuids(rows, positions):
    """Yield every row with the strings at these positions turned into UUID objects; a missing value stays None."""
    for row in rows:
        values = list(row)
        for position in positions:
            values[position] = uuid.UUID(values[position]) if values[position] is not None else None
        yield values


@transport("COPY FROM STDIN (FORMAT binary)", "rows, sorted by key")
async def write_polars_copy_binary_sorted(connection, frame, table):
    """Sort the frame by the table's primary key, then send its rows into a binary COPY like the published transport.

    Otherwise like the published transport: every uuid string becomes a UUID object, and asyncpg stores Python's first
    and last date as -infinity and infinity. Rows in key order go into adjacent places of the index, so the server
    touches each index page once. Without a key the order stays.
    """
    with phase("encode"):
        keys = await _key_columns(connection, table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # the name * would be a pattern
    positions = await uuid_positions(connection, table, frame.columns)
    records = _with_uuids(frame.iter_rows(), positions)
    await connection.copy_records_to_table(table, records=records, columns=frame.columns)
