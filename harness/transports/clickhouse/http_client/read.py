"""Our own way out of ClickHouse, by compiled loops: https://clickhouse.com/docs/interfaces/formats/Native"""

import json
import mmap
import re
from contextlib import contextmanager
from functools import cache
from http.client import IncompleteRead
from urllib.parse import urlencode

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.http_client.client import FOR_POLARS, NUMBERS, SLACK, close_if_hung_up, server_at
from harness.transports.clickhouse.sql import identifier, literal

PINNED = {"enable_http_compression": "0"}
PATH, PAYLOAD = "HTTP SELECT FORMAT Native", "native columns"
FOR_PANDAS = ["numba", "numpy", "pandas", "pyarrow"]
RECEIVE_BYTES = 1 << 19  # at a time: it is decoded while it is still in the processor's cache
TEXT_BYTES = 1 << 23  # of a buffer for texts of more than 12 bytes; a column has as many as it needs
# Type on the wire -> dtype there, and dtype in the frame.
DAYS = {"Date": ("uint16", "int32"), "Date32": ("int32", "int32")}
FIXED = {**DAYS, **{name: (name.lower(), name.lower()) for name in NUMBERS}}


@contextmanager
def connect(uri):
    """Yield an open connection, with the loops compiled: that takes seconds, once a process."""
    opened, user, parameters = server_at(uri)
    client = opened()
    connection = (client, user, parameters)
    _kernels()
    try:
        _post(connection, "SELECT 1").read()
        yield connection
    finally:
        client.close()


def _post(connection, query):
    """Send a query and return the answer, still to be read; a refusal raises RuntimeError with its text."""
    client, headers, defaults = connection
    close_if_hung_up(client)
    client.request("POST", "/?" + urlencode(defaults | PINNED), query.encode(), headers)
    response = client.getresponse()
    if response.status != 200:
        raise RuntimeError(f"ClickHouse answered {response.status}: {response.read().decode(errors='replace')}")
    return response


@cache
def _kernels():
    """Compile the loops over texts and over UUIDs, which become texts; the third is all pairs of digits.

    They read data[state[0] : filled] into views[state[1] : end], texts of more than 12 bytes into out[state[2] :], all
    bits seen into state[3], and return the bytes of a text that `out` has no room for, or 0.
    """
    import numpy as np
    from numba import int64, njit, uint8, uint64

    kind = int64(uint8[::1], int64, int64, uint64[:, ::1], uint8[::1], int64, uint8[::1], int64[::1])
    texts, uuids = (njit(kind, nogil=True)(loop) for loop in (_texts_loop(), _uuids_loop()))
    return texts, uuids, np.array(bytearray(bytes(range(256)).hex().encode()))


def _texts_loop():
    import numpy as np
    from numba import int64, uint64
    from numba.core.unsafe.bytes import memcpy_region

    masks = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)

    def loop(data, filled, end, views, out, number, digits, state):
        word, first, room = np.empty(2, np.uint64), state[0], 0
        while state[1] < end and state[0] < filled:
            start, size, shift = state[0] + 1, int64(data[state[0]]) & 127, 7
            while start < filled and data[start - 1] > 127:
                size |= (int64(data[start]) & 127) << shift
                start, shift = start + 1, shift + 7
            if data[start - 1] > 127 or start + size > filled:
                break
            memcpy_region(word.ctypes, 0, data.ctypes, start, 8, 1)  # type: ignore[call-arg]
            if size <= 12:
                memcpy_region(word.ctypes, 8, data.ctypes, start + 4, 8, 1)
                views[state[1], 0] = uint64(size) | (word[0] & masks[min(size, 4)]) << uint64(32)
                views[state[1], 1] = word[1] & masks[max(size - 4, 0)]
            elif state[2] + size + 32 > len(out):
                room = size
                break
            else:
                views[state[1], 0] = uint64(size) | word[0] << uint64(32)
                views[state[1], 1] = uint64(number) | uint64(state[2]) << uint64(32)
                memcpy_region(out.ctypes, state[2], data.ctypes, start, size if size > 32 else 32, 1)
                state[2] += size
            state[0], state[1] = start + size, state[1] + 1
        for i in range(first, state[0]):
            state[3] |= data[i]
        return room

    return loop


def _uuids_loop():
    from numba import uint64
    from numba.core.unsafe.bytes import memcpy_region

    def loop(data, filled, end, views, out, number, digits, state):
        while state[1] < end and state[0] + 16 <= filled:
            if state[2] + 36 > len(out):
                return 36
            first = state[2]
            out[first + 8] = out[first + 13] = out[first + 18] = out[first + 23] = 45
            for i in range(16):  # two numbers, each with its last byte first
                place = first + 2 * i + (i > 3) + (i > 5) + (i > 7) + (i > 9)
                pair = 2 * int(data[state[0] + (7 if i < 8 else 23) - i])
                memcpy_region(out.ctypes, place, digits.ctypes, pair, 2, 1)  # type: ignore[call-arg]
            prefix = uint64(out[first]) | uint64(out[first + 1]) << 8 | uint64(out[first + 2]) << 16
            views[state[1], 0] = uint64(36) | (prefix | uint64(out[first + 3]) << 24) << uint64(32)
            views[state[1], 1] = uint64(number) | uint64(first) << uint64(32)
            state[0], state[1], state[2] = state[0] + 16, state[1] + 1, first + 36
        return 0

    return loop


def _memory(count, dtype):
    """Return untouched memory in small pages: for a huge page, which numpy asks for, others may have to move first."""
    import numpy as np

    size, private = max(count, 1) * np.dtype(dtype).itemsize, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    return np.frombuffer(mmap.mmap(-1, size, private), dtype)[:count]


class _Stream:
    """The bytes of an answer: a window that moves over one small buffer."""

    def __init__(self, response):
        import numpy as np

        self.response, self.tail, self.position, self.end = response, b"", 0, 0
        self.data = np.empty(RECEIVE_BYTES + SLACK, np.uint8)

    def more(self, may_end=False):
        """Receive behind what is left; False at the end. Raises RuntimeError for an answer that was broken off."""
        rest, tag = self.data[self.position : self.end].copy(), self.response.headers.get("X-ClickHouse-Exception-Tag")
        if len(rest) > RECEIVE_BYTES // 2:  # in the middle of a long text
            self.data = rest.repeat(3)  # for the room
        self.data[: len(rest)] = rest
        view = self.data.data[len(rest) : -SLACK]
        try:
            size = self.response.readinto(view)
            broken = (size < len(view) and self.response.length) or not (size or may_end)
        except IncompleteRead as error:
            size, broken = len(error.partial), True
        self.position, self.end = 0, len(rest) + size
        self.tail = (self.tail + bytes(view[max(size - 4096, 0) : size]))[-4096:]
        if broken or (size < len(view) and tag and tag.encode() in self.tail[-64:]):
            said = self.tail.partition(b"__exception__")[2].decode(errors="replace")
            raise RuntimeError(f"ClickHouse failed in the middle of its answer: {said or 'it broke off'}")
        return size > 0

    def take(self, size):
        """Return the place of the next bytes, all of them here, and go behind them."""
        while self.end - self.position < size:
            self.more()
        self.position += size
        return self.position - size

    def number(self):
        byte = int(self.data[self.take(1)])
        return byte if byte < 128 else byte - 128 + (self.number() << 7)

    def text(self):
        start = self.take(self.number())
        return bytes(self.data[start : self.position]).decode()

    def fill(self, out, dtype):
        """Read as many values of a dtype as `out` has."""
        width = self.data[:8].view(dtype).itemsize
        while len(out):
            start = self.take(width)
            count = min(len(out), (self.end - start) // width)
            self.position = start + count * width
            out[:count], out = self.data[start : self.position].view(dtype), out[count:]


class _Column:
    """A column of the frame that grows: numbers, or views of texts and the buffers of long ones."""

    def __init__(self, name, type_name, rows):
        self.name, self.type_name = name, re.sub(r"LowCardinality\(((Nullable\()?\w+\)?)\)", r"\1", type_name)
        self.kind = re.sub(r"Nullable\((\w+)\)", r"\1", self.type_name)
        if self.kind not in (*FIXED, "String", "UUID"):
            raise Unsupported(f'column "{name}": expected numbers, days, String or UUID, found {type_name}')
        self.values = _memory(rows, FIXED[self.kind][1] if self.kind in FIXED else "2uint64")
        self.nulls = _memory(rows, "bool") if self.kind != self.type_name else None
        self.buffers, self.used, self.seen = [_memory(TEXT_BYTES, "uint8")], 0, 0

    def decode(self, stream, start, end):
        """Read the values of the rows from `start` to before `end`, behind the column's name and type."""
        import numpy as np

        if (found := [stream.text(), stream.text()]) != [self.name, self.type_name]:
            raise ValueError(f"expected the column {self.name} {self.type_name}, found {' '.join(found)}")
        if end > len(self.values):
            self.values = np.resize(self.values, (2 * end, *self.values.shape[1:]))
            self.nulls = None if self.nulls is None else np.resize(self.nulls, 2 * end)
        if self.nulls is not None:
            stream.fill(self.nulls[start:end], bool)
        if self.kind in FIXED:
            return stream.fill(self.values[start:end], FIXED[self.kind][0])
        kernel, digits = _kernels()[self.kind == "UUID"], _kernels()[2]
        state = np.array([0, start, self.used, self.seen])
        while state[1] < end:
            state[0], number = stream.position, len(self.buffers) - 1
            room = kernel(stream.data, stream.end, end, self.values, self.buffers[-1], number, digits, state)
            stream.position, self.used, self.seen = int(state[0]), int(state[2]), int(state[3])
            if room:
                self.buffers.append(_memory(max(TEXT_BYTES, room + SLACK), "uint8"))
                state[2] = 0
            elif state[1] < end:
                stream.more()

    def arrow(self, rows):
        """Return the first rows as Arrow, without a copy."""
        import numpy as np
        import pyarrow as pa

        valid = None if self.nulls is None else pa.py_buffer(np.packbits(~self.nulls[:rows], bitorder="little"))
        buffers = [valid, *map(pa.py_buffer, (self.values[:rows], *self.buffers))]
        if self.kind in FIXED:
            kind = pa.date32() if self.kind in DAYS else pa.from_numpy_dtype(self.values.dtype)
            return pa.Array.from_buffers(kind, rows, buffers[:2])
        array = pa.Array.from_buffers(pa.string_view(), rows, buffers)
        if self.seen > 127:
            array.validate(full=True)  # a String may be any bytes, a text in a frame is UTF-8
        return array


def _read(connection, table):
    """Return the columns and the number of rows; a failure on the way closes the connection."""
    described = _post(connection, f"DESCRIBE (SELECT * FROM {identifier(table)}) FORMAT JSONCompact").read()
    where = f"database = currentDatabase() AND name = {literal(table)}"
    query = f"SELECT sum(total_rows) FROM system.tables WHERE {where}"
    known = _post(connection, query).read().strip()  # until they are read, rows come and go
    room, rows = int(known) if known.isdigit() else 0, 0
    columns = [_Column(name, type_name, room) for name, type_name, *_ in json.loads(described)["data"]]
    # The server takes dictionaries (LowCardinality) apart, so that texts have one layout on the wire.
    select = ", ".join(
        f"CAST({identifier(column.name)} AS {column.type_name}) AS {identifier(column.name)}" for column in columns
    )
    try:
        stream = _Stream(_post(connection, f"SELECT {select} FROM {identifier(table)} FORMAT Native"))
        while stream.position < stream.end or stream.more(may_end=True):
            stream.number()  # of columns
            start, rows = rows, rows + stream.number()
            for column in columns:
                column.decode(stream, start, rows)
        return columns, rows
    except BaseException:
        connection[0].close()
        raise


@transport(
    "read",
    frame="polars",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_POLARS,
    settings=PINNED,
    lossy={"refused": "booleans timestamps timestamps_tz decimals arrays nested padded_text enum json"},
)
def read_polars_tuned(connection, table):
    """Fetch the table as Native blocks; compiled loops decode them on arrival into memory that polars takes over.

    One SELECT, so all rows are of one moment; nothing is compressed. A UUID becomes its text. A column is one chunk.
    """
    import polars as pl

    columns, rows = _read(connection, table)
    return pl.DataFrame({column.name: pl.from_arrow(column.arrow(rows)) for column in columns})


@transport(
    "read",
    frame="pandas",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_PANDAS,
    settings=PINNED,
    lossy={"refused": "booleans timestamps timestamps_tz decimals arrays nested padded_text enum json"},
)
def read_pandas_tuned(connection, table):
    """Do as read_polars_tuned; then texts become str columns (a copy), days datetime64[us], numbers numpy's.

    Numbers with nulls come in Arrow's dtypes (int32[pyarrow]): numpy has no null, a NaN is a value of its own.
    """
    import pandas as pd
    import pyarrow as pa

    (columns, rows), series, pool = _read(connection, table), {}, pa.system_memory_pool()  # of small pages, too
    while columns:  # what a column took is free again before the next one is copied
        array = (column := columns.pop(0)).arrow(rows)
        if column.kind not in FIXED:
            texts = pa.chunked_array([array.cast("large_string", memory_pool=pool)])
            series[column.name] = pd.Series(texts, dtype="str")
        elif column.kind in DAYS:
            series[column.name] = pd.Series(array.to_numpy(zero_copy_only=False).astype("M8[us]"))
        else:
            nullable = pd.ArrowDtype(array.type)
            series[column.name] = pd.Series(array, dtype=nullable) if array.null_count else column.values[:rows]
    return pd.DataFrame(series, copy=False)
