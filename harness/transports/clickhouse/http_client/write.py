"""Our own way into ClickHouse, by compiled loops: https://clickhouse.com/docs/interfaces/formats/Native"""

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, repeat
from urllib.parse import urlencode

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.http_client.client import FOR_POLARS, NUMBERS, SLACK, close_if_hung_up, server_at
from harness.transports.clickhouse.sql import identifier, identifiers, literal

# Blocks become parts as they come. By default the server first joins them to a million rows, and splits those again.
PINNED = {"async_insert": "0", "min_insert_block_size_rows": "0", "min_insert_block_size_bytes": "0"}
PATH, PAYLOAD = "HTTP INSERT FORMAT Native", "native columns"
FOR_PANDAS = ["pandas", *FOR_POLARS]

SLICE_ROWS = 1_048_449  # cut into blocks at a time; the server's own default, so that it gets no more parts than usual
MOST_GROUPS = 100  # blocks in a slice: more than so many partitions in one INSERT block are refused by default
# Type in the frame -> types in the table that hold all its values (but not all days), and stand for it on the wire.
TYPES = {"String": ["String", "UUID"], "Date": ["Date", "Date32"], **{name: [name] for name in NUMBERS}}
DAYS = {"Date": (0, 65_535, "uint16"), "Date32": (-25_567, 120_529, "int32")}  # first and last since 1970, dtype


@contextmanager
def connect(uri):
    """Yield an open connection for each core (2 to 8), with the loops compiled: that takes seconds, once a process."""
    opened, user, parameters = server_at(uri)
    clients = [opened() for _ in range(min(max(os.cpu_count() or 2, 2), 8))]
    connection = (clients, user, parameters)
    _kernels()
    try:
        for client in clients:
            _post(connection, client, "SELECT 1")
        yield connection
    finally:
        for client in clients:
            client.close()


def _post(connection, client, query, settings=None, chunks=None):
    """Send a query, perhaps with a body in chunks made on the way; a refusal raises RuntimeError with its text."""
    _, headers, parameters = connection
    headers = headers | {"Transfer-Encoding": "chunked"} if chunks else headers
    close_if_hung_up(client)
    with suppress(ConnectionError):  # a server that does not want to hear the rest has said why
        client.request("POST", "/?" + urlencode({**parameters, **(settings or {}), "query": query}), chunks, headers)
    answer = (response := client.getresponse()).read().decode(errors="replace")
    if response.status != 200:
        raise RuntimeError(f"ClickHouse answered {response.status}: {answer}")
    return answer


def _describe(connection, table):
    """Return the types of the table's columns by name, and its partition key."""
    described = json.loads(
        _post(connection, connection[0][0], f"DESCRIBE TABLE {identifier(table)} FORMAT JSONCompact")
    )
    where = f"database = currentDatabase() AND name = {literal(table)}"
    query = f"SELECT partition_key FROM system.tables WHERE {where} FORMAT TSVRaw"
    key = _post(connection, connection[0][0], query).removesuffix("\n")
    return {name: type_name for name, type_name, *_ in described["data"]}, key


@cache
def _kernels():
    """Compile the loops: what the texts of each group take at most, their writing, and the reading of UUIDs."""
    from numba import int64, njit, types, uint8, uint64, void

    data, offsets = (types.Array(kind, 1, "C", readonly=True) for kind in (uint8, int64))
    groups, numbers = uint8[::1], int64[::1]

    @njit(void(offsets, groups, numbers), nogil=True)
    def measure(offsets, groups, taken):
        for row in range(len(groups)):
            taken[groups[row]] += offsets[row + 1] - offsets[row] + 5

    @njit(int64(offsets, data, data, uint64[:, ::1]), nogil=True)
    def uuids(offsets, data, digits, halves):
        for row in range(len(halves)):
            start, seen = offsets[row], uint8(0)
            for i in range(36 if offsets[row + 1] - start == 36 else 0):
                if i == 8 or i == 13 or i == 18 or i == 23:
                    seen |= uint8(255 * (data[start + i] != 45))
                else:
                    seen |= digits[data[start + i]]
                    halves[row, i // 19] = halves[row, i // 19] << uint64(4) | uint64(digits[data[start + i]])
            if seen > 15 or offsets[row + 1] - start != 36:
                return row
        return -1

    return measure, njit(void(offsets, data, groups, numbers, uint8[::1]), nogil=True)(_write_loop()), uuids


def _write_loop():
    from numba.core.unsafe.bytes import memcpy_region

    def write(offsets, data, groups, places, out):
        for row in range(len(groups)):
            start, place = offsets[row], places[groups[row]]
            size = left = offsets[row + 1] - start
            while left >= 128:  # the length, in seven bits a byte
                out[place] = left & 127 | 128
                place += 1
                left >>= 7
            out[place] = left
            if size <= 32 and start + 32 <= len(data):  # a fixed size is one move, and most texts are short
                memcpy_region(out.ctypes, place + 1, data.ctypes, start, 32, 1)  # type: ignore[call-arg]
            else:
                memcpy_region(out.ctypes, place + 1, data.ctypes, start, size, 1)  # type: ignore[call-arg]
            places[groups[row]] = place + 1 + size

    return write


def _write(connection, frame, table):
    """Insert the frame over all connections, each with an INSERT of its own; a failure breaks all of them off."""
    _check_names(frame)
    types, partition_key = _describe(connection, table)
    wire = {column.name: _wire_type(column, types) for column in frame}
    query = f"INSERT INTO {identifier(table)} ({identifiers(wire)}) FORMAT Native"
    lock, failures, clients = threading.Lock(), list[BaseException](), connection[0]

    def take():
        with lock:
            if failures:
                raise RuntimeError("broken off, because another connection failed")
            return next(blocks, None)

    def insert(client):
        try:
            if (first := take()) is not None:
                _post(connection, client, query, PINNED, _chunks(first, take))
        except BaseException as error:
            failures.append(error)
            client.close()

    with ThreadPoolExecutor(2 * len(clients)) as pool:
        blocks = _blocks(frame, wire, partition_key, pool, len(clients))
        list(pool.map(insert, clients))
    if failures:
        raise failures[0]


def _chunks(block, take):
    """Yield a block and all that can be taken as chunks of a request's body, without a copy."""
    while block is not None:
        for buffer in block:
            if len(buffer):
                yield from (b"%x\r\n" % len(buffer), buffer, b"\r\n")
        block = take()
    yield b"0\r\n\r\n"


def _wire_type(column, types):
    """Return a column's type on the wire; raises Unsupported unless the table's holds every value of the frame's."""
    name, found = f'column "{column.name}"', types.get(column.name, "")
    if not found:
        raise Unsupported(f"{name}: expected a column of the table, found none of this name; rename or drop it")
    wire, nulls = re.sub(r"LowCardinality\(|Nullable\(|\)", "", found), column.null_count()
    if not (fitting := [dtype for dtype, wires in TYPES.items() if wire in wires]):
        raise Unsupported(f"{name}: expected a type of numbers, days, String or UUID in the table, found {found}")
    if str(column.dtype) not in fitting:
        hint = "make texts of them with str" if str(column.dtype) in ("Binary", "Object") else "cast it first"
        raise Unsupported(f"{name}: expected {fitting[0]} in the frame for {found}, found {column.dtype}; {hint}")
    if nulls and "Nullable(" not in found:
        raise Unsupported(f"{name}: expected no null for {found}, found {nulls}; fill them or make the column Nullable")
    return wire


def _check_names(frame):
    """Raise ValueError unless there are columns, all named by a text, and each name once."""
    if not (names := list(frame.columns)):
        raise ValueError("expected a frame with columns of the table, found none; give it some")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: expected a text for a name, found {type(name).__name__}; rename it")
        if names.count(name) > 1:
            raise ValueError(f'column "{name}": expected each name once, found {names.count(name)}; rename or drop one')


def _groups(part, wire, partition_key, parts):
    """Return a number for every row: of its partition, or of one of `parts` equal parts.

    This is about speed alone, the server splits and sorts what it gets: blocks of one partition need no splitting.
    The keys known here are a date, its month and its year; with others a block holds whatever stands together.
    """
    import numpy as np

    found = re.fullmatch(r"(?:(toYYYYMM|toYear|toDate)\()?`?(\w+)`?\)?", partition_key)
    if found and wire.get(found[2]) in DAYS and not part[found[2]].null_count():
        days, unit = part[found[2]].to_numpy(), {"toYYYYMM": "M", "toYear": "Y"}.get(found[1], "D")
        span = np.arange(days.min(), min(int(days.max()), int(days.min()) + 366 * MOST_GROUPS) + 1)
        numbers = span.astype("M8[D]").astype(f"M8[{unit}]").astype(np.int64)
        if span[-1] == days.max() and parts <= numbers[-1] - numbers[0] + 1 <= MOST_GROUPS:
            return (numbers - numbers[0]).astype(np.uint8)[days - span[0]]
    return (np.arange(len(part)) * parts // len(part)).astype(np.uint8)


def _blocks(frame, wire, partition_key, pool, parts):
    """Yield blocks in the Native format as lists of buffers, one for each group of the rows of a slice."""
    import numpy as np
    import polars as pl

    for part in frame.with_columns(pl.col(pl.Date).to_physical()).iter_slices(SLICE_ROWS):
        groups = _groups(part, wire, partition_key, parts)
        rows, order = np.bincount(groups), np.argsort(groups, kind="stable")
        columns = list(pool.map(_column, part, wire.values(), repeat(groups), repeat(order), repeat(rows)))
        for group in np.flatnonzero(rows).tolist():
            yield [_number(len(wire)) + _number(int(rows[group])), *chain(*(column[group] for column in columns))]


def _column(column, wire, groups, order, rows):
    """Return the buffers of a column for each group: name and type, perhaps a byte a row that says null, the values."""
    import numpy as np
    import polars as pl

    def split(values):
        moved = np.split(values.take(order, axis=0), np.cumsum(rows)[:-1])
        return [[part.reshape(-1).view(np.uint8).data] for part in moved]

    array = column.to_arrow(compat_level=pl.CompatLevel.oldest())  # texts as offsets and bytes, not as views
    masks = split(array.is_null().to_numpy(zero_copy_only=False)) if array.null_count else [[] for _ in rows]
    kind = f"Nullable({wire})" if array.null_count else wire
    if array.null_count:
        array = array.fill_null({"String": "", "UUID": "00000000-0000-0000-0000-000000000000"}.get(wire, 0))
    head = b"".join(_number(len(text)) + text for text in (column.name.encode(), kind.encode()))
    values = _texts(array, groups, len(rows)) if wire == "String" else split(_numbers(column.name, wire, array))
    return [[head, *mask, *part] for mask, part in zip(masks, values, strict=True)]


def _texts(array, groups, count):
    """Return the texts of each group, every one behind its length."""
    import numpy as np

    offsets, data = _buffers(array)
    taken = np.full(count, SLACK)  # the slack of a group must not reach into the next one
    _kernels()[0](offsets, groups, taken)
    places = np.cumsum(taken) - taken
    starts, out = places.copy(), np.empty(taken.sum(), np.uint8)
    _kernels()[1](offsets, data, groups, places, out)
    return [[out[start:end].data] for start, end in zip(starts, places, strict=True)]


def _buffers(array):
    """Return offsets and bytes of an Arrow array of large_string."""
    import numpy as np

    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    return offsets, np.frombuffer(array.buffers()[2] or b"", np.uint8)


def _numbers(name, wire, array):
    """Return the values as they stand on the wire; raises ValueError for what would become another value there."""
    import numpy as np

    if wire == "UUID":
        digits, halves = np.full(256, 255, np.uint8), np.zeros((len(array), 2), np.uint64)
        digits[list(b"0123456789abcdefABCDEF")] = [*range(16), *range(10, 16)]
        if (row := _kernels()[2](*_buffers(array), digits, halves)) >= 0:
            raise ValueError(f'column "{name}": expected a UUID of 36 characters, found {array[row].as_py()[:50]!r}')
        return halves
    if wire not in DAYS:
        return array.to_numpy()
    first, last, dtype = DAYS[wire]
    days = array.to_numpy()
    if not first <= days.min() <= days.max() <= last:
        raise ValueError(
            f'column "{name}": expected days that {wire} holds, found {days.min()} to {days.max()} since 1970'
        )
    return days.astype(dtype)


def _number(number):
    """Return a number in seven bits a byte."""
    head = [number >> shift & 127 | 128 for shift in range(0, max(number.bit_length() - 7, 0), 7)]
    return bytes([*head, number >> 7 * len(head)])


@transport(
    "write",
    frame="polars",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_POLARS,
    settings=PINNED,
    lossy={
        "refused": "booleans timestamps timestamps_tz decimals arrays nested padded_text enum categories "
        "json int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64 "
        "float32_into_float64 float64_into_decimal int32_into_text text_into_int32 text_into_date"
        " date_into_timestamp timestamp_into_date boolean_into_int32 int32_into_date "
        "timestamp_into_int64",
    },
)
def write_polars_tuned(connection, frame, table):
    """Send Native blocks of one partition each over several HTTP connections, made by compiled loops meanwhile.

    Texts, numbers, days and the 16 bytes of a UUID cross the wire as the server keeps them; nothing is compressed. The
    server is asked for column types and the partition key. Columns of other types, and nulls for a column that takes
    none, are refused before anything is sent. Not all or nothing: each connection is an INSERT of its own whose blocks
    are visible one by one, and those written before a failure (a text that is no UUID, a server that stops) stay.
    """
    _write(connection, frame, table)


@transport(
    "write",
    frame="pandas",
    path=PATH,
    payload=PAYLOAD,
    requires=FOR_PANDAS,
    settings=PINNED,
    lossy={
        "refused": "booleans timestamps timestamps_tz decimals arrays nested padded_text enum categories "
        "json int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64 "
        "float32_into_float64 float64_into_decimal int32_into_text text_into_int32 text_into_date"
        " date_into_timestamp boolean_into_int32 int32_into_date timestamp_into_int64",
    },
)
def write_pandas_tuned(connection, frame, table):
    """Let polars take over the columns of the frame, then do as write_polars_tuned.

    A NaN in a float64 column stays a NaN. Timestamps are written as days, and refused when one has a time of day.
    """
    import polars as pl

    _check_names(frame)
    taken = pl.from_pandas(frame, nan_to_null=False)
    for column in taken.select(pl.col(pl.Datetime)):
        days = column.cast(pl.Date)
        if not days.cast(column.dtype).equals(column, null_equal=True):
            raise Unsupported(f'column "{column.name}": expected days, found {column.dtype} with times of day')
        taken = taken.with_columns(days)
    _write(connection, taken, table)
