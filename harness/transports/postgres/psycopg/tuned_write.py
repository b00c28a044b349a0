"""Our own best way into Postgres: rows in the order of the primary key, encoded by a compiled loop, from every core.

With random keys every row touches another page of the index; in key order, most rows go where the last one went.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

from harness.registry import Unsupported, transport
from harness.transports.postgres.psycopg.loops import BASE, CONNECTIONS, REQUIRES, TYPES, UUID, compiled, refuse_unknown
from harness.transports.postgres.tables import LOCK_TIMEOUT, TURN

_WAY: Any = {"path": "COPY in slices", "payload": "binary rows"}
_AHEAD = 32  # rows whose values are loaded from memory together
_BLOCK = 1 << 17  # bytes encoded at a time: psycopg would cut what is larger
_SLACK = 64  # the loop moves whole words, beyond the end of a value
_EPOCHS = {"date32": ("int32", 10_957), "timestamp[us]": ("int64", 946_684_800_000_000)}  # the server counts from 2000
_EXACT = {20, 21, 23, 1082, 1114, 2950}  # types whose values are equal only if they are the same bytes
# What the loop knows of a column: how, the addresses of values, nulls and addresses of texts, rows before the first.
_HOW, _VALUES, _NULLS, _DATA, _FIRST, _TOUCHED = range(6)
# The first column of the primary key, or else of a unique index, and whether several connections may write.
_KEY = """
SELECT a.attname, t.relkind = 'r' AND NOT t.relhastriggers AND (i.indexrelid IS NULL) = (a.attname IS NULL)
    AND NOT EXISTS (SELECT FROM pg_index o WHERE o.indrelid = t.oid AND (o.indisunique OR o.indisexclusion)
        AND o.indexrelid IS DISTINCT FROM i.indexrelid)
FROM pg_class t LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisunique
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
WHERE t.oid = %s::regclass ORDER BY i.indisprimary DESC NULLS LAST LIMIT 1"""


@contextmanager
def connect(uri):
    """Yield a connection for each core, but two to eight; compile the loops, which stay on disk for the next time."""
    import numpy as np
    import psycopg

    with ExitStack() as stack:
        # Nothing is prepared: a table may change, and what was prepared would then be refused.
        opened = (psycopg.connect(uri, client_encoding="utf8", prepare_threshold=None) for _ in range(CONNECTIONS))
        connections = [stack.enter_context(connection) for connection in opened]
        columns, rows = np.zeros((1, 6), np.int64), np.zeros(0, np.int64)
        _loop(_keys)(columns, 0, rows)
        _loop(_encode)(columns, rows, 0, 0, 0, 0)
        yield connections


@cache
def _loop(function):
    """Return `_keys` or `_encode` compiled; they run without the interpreter lock and, as in C, are told addresses."""
    return compiled(function, (_swap, _touch, _field, _is_null, _number, _text, _uuid), (1, 2, 4, 8))


def _keys(memory, columns, number, keys):
    """Set a number for every row by which the rows are in the order of a column, or nearly: a text counts 8 bytes."""
    how, words = columns[number, _HOW], memory[3]
    for row in range(len(keys)):
        if _is_null(memory, columns, number, row):
            keys[row] = 0
        elif how < UUID:
            keys[row] = _number(memory, columns, number, row)
        else:  # capital letters of a uuid count as small ones; no number is negative
            word = _swap(words[_text(memory, columns, number, row)]) | (0x2020202020202020 if how == UUID else 0)
            keys[row] = word >> 1 & 0x7FFFFFFFFFFFFFFF


def _encode(memory, columns, order, row, rows, position, limit):
    """Encode rows `order[row:rows]` from address `position` up to `limit`; return position, row and wrong column."""
    shorts, loaded = memory[1], row
    while row < rows:
        if row == loaded:
            loaded = min(rows, row + _AHEAD)
            _touch(memory, columns, order, row, loaded)
        at = position + 2
        shorts[position] = len(columns) >> 8 | len(columns) << 8
        for number in range(len(columns)):
            at = _field(memory, columns, number, order[row], at, limit)
            if at <= 0:
                return position, row, number if at < 0 else -1
        position, row = at, row + 1
    return position, row, -1


def _touch(memory, columns, order, row, end):
    """Load every value of some rows, many loads at a time: one after the other is what memory is slow at."""
    octets, total = memory[0], 0
    for number in range(len(columns)):
        how, values = columns[number, _HOW], columns[number, _VALUES]
        for i in range(row, end):
            if how < UUID:
                total += octets[values + how * order[i]]
            elif not _is_null(memory, columns, number, order[i]):
                total += octets[_text(memory, columns, number, order[i])]
    columns[0, _TOUCHED] = total  # or the compiler would leave the loads out


def _swap(word):
    """Return a word with its eight bytes in reverse: the server wants the highest first."""
    word = (word & 0x00FF00FF00FF00FF) << 8 | word >> 8 & 0x00FF00FF00FF00FF
    word = (word & 0x0000FFFF0000FFFF) << 16 | word >> 16 & 0x0000FFFF0000FFFF
    return word << 32 | word >> 32 & 0xFFFFFFFF


def _field(memory, columns, number, row, at, limit):
    """Encode one value and return the address behind it; 0 when it does not fit, -1 when a text is no uuid."""
    _, _, ints, words = memory
    how = columns[number, _HOW]
    null = _is_null(memory, columns, number, row)
    length = -1 if null else how if how < UUID else ints[columns[number, _VALUES] + 16 * row]
    if at + length + _SLACK > limit:
        return 0
    ints[at] = _swap(length << 32)
    if null:
        return at + 4
    if how < UUID:
        words[at + 4] = _swap(_number(memory, columns, number, row) << (64 - 8 * how))
        return at + 4 + how
    source = _text(memory, columns, number, row)
    if how == UUID:
        return at + 20 if length == 36 and _uuid(memory, source, at) else -1
    if length <= 12:
        words[at + 4], ints[at + 12] = words[source], ints[source + 8]
    else:  # whole words, the last of which may repeat a part of the one before: nothing beyond the text is read
        for i in range(0, length - 8, 8):
            words[at + 4 + i] = words[source + i]
        words[at + length - 4] = words[source + length - 8]
    return at + 4 + length


def _is_null(memory, columns, number, row):
    """Return whether a value is null."""
    nulls, bit = columns[number, _NULLS], columns[number, _FIRST] + row
    return nulls != 0 and memory[0][nulls + (bit >> 3)] >> (bit & 7) & 1 == 0


def _number(memory, columns, number, row):
    """Return a number of 1, 2, 4 or 8 bytes."""
    octets, shorts, ints, words = memory
    how = columns[number, _HOW]
    at = columns[number, _VALUES] + how * row
    return words[at] if how == 8 else ints[at] if how == 4 else shorts[at] if how == 2 else octets[at]


def _text(memory, columns, number, row):
    """Return where a text lies: up to 12 bytes stand in Arrow's string view itself, others in one of its buffers."""
    _, _, ints, words = memory
    view = columns[number, _VALUES] + 16 * row
    return view + 4 if ints[view] <= 12 else words[columns[number, _DATA] + 8 * ints[view + 8]] + ints[view + 12]


def _uuid(memory, source, at):
    """Encode the 36 characters of a uuid, eight digits at a time; return False when they are none."""
    octets, _, ints, _ = memory
    ints[at] = 16 << 24
    right = octets[source + 8] == octets[source + 13] == octets[source + 18] == octets[source + 23] == 45
    for part, (low, high) in enumerate(((0, 4), (9, 14), (19, 24), (28, 32))):
        word = ints[source + low] & 0xFFFFFFFF | ints[source + high] << 32
        digits = (word & 0x0F0F0F0F0F0F0F0F) + 9 * (word >> 6 & 0x0101010101010101) & 0x0F0F0F0F0F0F0F0F
        letters = digits + 0x0606060606060606 >> 4 & 0x0101010101010101
        right &= digits + 0x3030303030303030 + 39 * letters == word | (word & 0x4040404040404040) >> 1
        pairs = (digits << 4 | digits >> 8) & 0x00FF00FF00FF00FF
        pairs = (pairs | pairs >> 8) & 0x0000FFFF0000FFFF
        ints[at + 4 + 4 * part] = pairs | pairs >> 16
    return right


def _prepared(column, name, oid, arrow_of):
    """Return a column as the one Arrow array that the loop reads: the server's type, its numbers and times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow, found = TYPES[oid][1], column.dtype
    try:
        array = arrow_of(column, oid in (700, 701))
        if str(found) == "Object" or str(array.type) == "extension<arrow.uuid>":  # polars would give their addresses
            raise NotImplementedError("objects are no texts; make texts of them with str")
        column = array.cast(arrow)
        if arrow in ("bool", "date32") and array.null_count < len(array) and not column.cast(array.type).equals(array):
            raise ValueError(f"some values are more than a {arrow}")
        if arrow == "float32" and not pc.is_inf(column).equals(pc.is_inf(array)):
            raise ValueError("some values are larger than 32 bits hold")
        if pa.types.is_temporal(array.type) and arrow not in ("date32", "timestamp[us]"):
            raise ValueError(f"{array.type} is no {arrow}")
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if arrow in _EPOCHS:  # in two steps, so that nothing becomes the smallest number, the server's -infinity
            raw, epoch = _EPOCHS[arrow]
            less = pc.subtract_checked(column.view(raw), pa.scalar(epoch + 1, raw))
            column = pc.add_checked(less, pa.scalar(1, raw))
        return column.cast("uint8") if arrow == "bool" else column
    except (NotImplementedError, TypeError, ValueError) as error:  # a type, a value
        kind = ValueError if isinstance(error, ValueError) else Unsupported
        wanted = {"string_view": "uuids as texts" if oid == 2950 else "texts"}.get(arrow, arrow)
        raise kind(f'column "{name}": expected {wanted}, found {found}: {error}; convert the column first') from None


def _lines(arrays, oids):
    """Return what the loops know of the columns, and the addresses of texts that it refers to."""
    import numpy as np

    lines, texts = np.zeros((len(arrays), 6), np.int64), []
    for line, array, oid in zip(lines, arrays, oids, strict=True):
        nulls, values, *data = (buffer.address - BASE if buffer else 0 for buffer in array.buffers())
        how = TYPES[oid][0]
        texts.append(np.array(data, np.int64))
        line[:] = how, values + array.offset * min(how, 16), nulls, texts[-1].ctypes.data - BASE, array.offset, 0
    return lines, texts


def _slices(lines, key, rows, number):
    """Return the rows in the order of the key column, if any, and where to cut that order: not between equal keys."""
    import numpy as np

    cuts = [rows * i // number for i in range(number + 1)]
    if key is None:
        return np.arange(rows), cuts
    keys = np.empty(rows, np.int64)
    _loop(_keys)(lines, key, keys)
    order = np.argsort(keys)
    return order, [0, *(int(np.searchsorted(keys, keys[order[cut]], sorter=order)) for cut in cuts[1:-1]), rows]


def _send(statement, names, lines, order, connection, row, end):
    """Encode and send some of the rows, a block at a time, until the server has accepted them."""
    import numpy as np

    block = np.empty(_BLOCK, np.uint8)
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    with connection.cursor().copy(statement) as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
        while row < end:
            address = block.ctypes.data - BASE
            position, row, wrong = _loop(_encode)(lines, order, row, end, address, address + len(block))
            if wrong >= 0:
                raise ValueError(f'column "{names[wrong]}": found a text that is no uuid of 36 characters')
            copy.write(block.data[: position - address])
            if position == address:  # one long row
                block = np.empty(2 * len(block), np.uint8)
        copy.write(b"\xff\xff")


def _names(frame):
    """Return the names of the columns. Raises ValueError unless there are some, all of them texts, and each once."""
    if not (names := list(frame.columns)):
        raise ValueError("expected a frame with columns of the table, found none; give it some")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: expected a text for a name, found {type(name).__name__}; rename it")
        if names.count(name) > 1:
            raise ValueError(f'column "{name}": expected each name once, found {names.count(name)}; rename or drop one')
    return names


def _write(connections, table, frame, arrow_of):
    """Write the columns, which `arrow_of(column, NaN is a number in it)` makes Arrow arrays of."""
    from psycopg import sql

    table, names, first = sql.Identifier(table).as_string(), _names(frame), connections[0]
    columns = sql.SQL(", ").join(map(sql.Identifier, names)).as_string()
    with ExitStack() as stack:
        for connection in connections:
            stack.enter_context(connection.transaction())  # they are committed one after the other, the first last
        first.execute("SELECT pg_advisory_xact_lock(%s | %s::regclass::oid::bigint)", [TURN, table])
        described = first.execute(f"SELECT {columns} FROM {table} LIMIT 0").description
        refuse_unknown(first, described, "write in another way")
        key, several = first.execute(_KEY, [table]).fetchone()
        oids = [column.type_code for column in described]
        arrays = [_prepared(frame[name], name, oid, arrow_of) for name, oid in zip(names, oids, strict=True)]
        (lines, _texts), rows = _lines(arrays, oids), len(arrays[0])
        at = names.index(key) if key in names else None
        several = several and (key is None or (at is not None and oids[at] in _EXACT))
        used = connections[: max(1, rows // 20_000)] if several else connections[:1]
        order, cuts = _slices(lines, at, rows, len(used))
        send = partial(_send, f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)", names, lines, order)
        with ThreadPoolExecutor(len(used)) as pool:
            list(pool.map(send, used, cuts, cuts[1:]))


@transport(
    "write",
    frame="polars",
    requires=["polars", *REQUIRES],
    **_WAY,
    lossy={
        "refused": "timestamps_tz decimals arrays uint64 enum categories json jsonb float64_into_decimal "
        "text_into_date",
    },
)
def write_polars_tuned(connections, frame, table):
    """Send the rows in key order, encoded in binary by a compiled loop, over a connection for each core.

    The order is that of the primary key's first column. Nothing is committed before the server has accepted every row,
    but then one connection after the other: a crash in between leaves some slices. A table with triggers, foreign keys
    or a second unique index gets one connection: over several, rows could wait for one another for ever. So could those
    of two parallel writers, who therefore take turns at a table: an advisory lock, one round trip (50 µs on loopback).
    A lock of anybody else is waited for 10 seconds (lock_timeout), then no row stays.
    """
    import polars as pl

    newest = pl.CompatLevel.newest()
    _write(connections, table, frame, lambda column, _: column.to_arrow(compat_level=newest))


@transport(
    "write",
    frame="pandas",
    requires=["pandas", *REQUIRES],
    **_WAY,
    lossy={
        "refused": "timestamps_tz decimals arrays uint64 enum categories json jsonb float64_into_decimal",
    },
)
def write_pandas_tuned(connections, frame, table):
    """Send the rows in key order, encoded in binary by a compiled loop, over a connection for each core.

    As `write_polars_tuned`. In a column of floats NaN stays NaN: pandas cannot tell it from a missing value. A time
    that is not midnight is refused for a date.
    """
    import pyarrow as pa

    _write(connections, table, frame, lambda c, nan: pa.array(c, from_pandas=not nan or c.dtype.kind != "f"))
