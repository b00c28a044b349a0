"""Our own best way into Postgres: rows in the order of the primary key, encoded by a compiled loop, from every core.

Random keys make every row touch another page of the index: in key order, most rows go where the last one went. Two
thirds of what the server spends on a large write into a table with a wide primary key is saved by that alone.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache, partial

from harness.registry import Unsupported, transport

CLIENT = "psycopg"
ENDPOINT = "postgres"

_REQUIRES = ["numba", "numpy", "psycopg", "pyarrow", "pyarrow.compute"]
_ROWS = 20_000  # another connection is worth its while from so many rows on
_BLOCK = 1 << 17  # bytes encoded at a time: psycopg would cut what is larger
_SLACK = 64  # the loop moves whole words, beyond the end of a value
_BASE = 8  # where "all memory" begins: numpy makes no array at address 0
# Type oid -> how the loop encodes it, its Arrow type there. Numbers and times are encoded as so many bytes.
_UUID, _TEXT = 16, 17
_TYPES = dict.fromkeys((25, 1042, 1043), (_TEXT, "string_view")) | {2950: (_UUID, "string_view"), 16: (1, "bool")}
_TYPES |= {21: (2, "int16"), 23: (4, "int32"), 20: (8, "int64"), 700: (4, "float32"), 701: (8, "float64")}
_TYPES |= {1082: (4, "date32"), 1114: (8, "timestamp[us]")}
_EPOCHS = {"date32": ("int32", 10_957), "timestamp[us]": ("int64", 946_684_800_000_000)}  # the server counts from 2000
# Types whose values are equal only if their bytes are: by the others equal keys could come over two connections.
_EXACT = {20, 21, 23, 25, 1043, 1082, 1114, 2950}
# What the loop knows of a column: how, the addresses of values, nulls and addresses of texts, rows before the first.
_HOW, _VALUES, _NULLS, _TEXTS, _FIRST = range(5)
# The first column of the table's only unique index, or of its primary key, and whether rows that differ in it may come
# over several connections: a second unique index or a trigger could make them wait for one another for ever.
_KEY = """
SELECT a.attname, t.relkind = 'r' AND NOT t.relhastriggers AND (i.indexrelid IS NULL) = (a.attname IS NULL)
    AND NOT coalesce(i.indisexclusion, false) AND coalesce(c.collisdeterministic, true)
    AND (SELECT count(*) < 2 FROM pg_index u WHERE u.indrelid = t.oid AND (u.indisunique OR u.indisexclusion))
FROM pg_class t LEFT JOIN pg_index i ON i.indrelid = t.oid AND (i.indisunique OR i.indisexclusion)
LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
LEFT JOIN pg_collation c ON c.oid = i.indcollation[0]
WHERE t.oid = %s::regclass ORDER BY i.indisprimary DESC NULLS LAST LIMIT 1"""


@contextmanager
def connect(uri):
    """Yield a connection for each core, but two to eight; compile the loops, which are kept on disk for the next time."""
    import numpy as np
    import psycopg

    with ExitStack() as stack:
        number = min(8, max(2, os.cpu_count() or 2))
        connections = [stack.enter_context(psycopg.connect(uri, client_encoding="utf8")) for _ in range(number)]
        nothing = np.zeros((1, 5), np.int64)
        _compiled(_keys)(nothing, 0, np.zeros(0, np.int64))
        _compiled(_encode)(nothing, np.zeros(0, np.int64), 0, 0, 0, 0)
        yield connections


@cache
def _compiled(loop):
    """Return a loop compiled to run without the interpreter lock, given all memory as arrays.

    Their words of 1, 2, 4 and 8 bytes begin at every address from _BASE on. So one loop serves every table: it is
    told addresses, as in C, and not arrays by number and type.
    """
    import numpy as np
    from numba import njit
    from numba.extending import register_jitable

    options = {"forceinline": True, "_nrt": False}  # counting references takes longer than the work, and is not needed
    for part in (_swap, _field, _text, _uuid):
        register_jitable(**options)(part)
    everything = {"data": (_BASE, False), "shape": (1 << 47,), "strides": (1,), "version": 3}
    memory = [type("Memory", (), {"__array_interface__": everything | {"typestr": f"=i{n}"}})() for n in (1, 2, 4, 8)]
    return partial(njit(nogil=True, cache=True, **options)(loop), tuple(map(np.asarray, memory)))


def _keys(memory, columns, number, keys):
    """Set a number for every row by which the rows are in the order of a column, or nearly: a text counts 8 bytes."""
    octets, shorts, ints, words = memory
    how, values, nulls = columns[number, _HOW], columns[number, _VALUES], columns[number, _NULLS]
    for row in range(len(keys)):
        bit = columns[number, _FIRST] + row
        if nulls and not octets[nulls + (bit >> 3)] >> (bit & 7) & 1:
            keys[row] = 0
        elif how >= _UUID:
            word = _swap(words[_text(memory, columns, number, row)])
            if how == _UUID:
                word |= 0x2020202020202020  # capital letters become small ones, digits stay
            keys[row] = word >> 1 & 0x7FFFFFFFFFFFFFFF
        elif how == 8:
            keys[row] = words[values + 8 * row]
        elif how == 4:
            keys[row] = ints[values + 4 * row]
        else:
            keys[row] = shorts[values + 2 * row] if how == 2 else octets[values + row]


def _encode(memory, columns, order, row, rows, position, limit):
    """Encode the rows `order[row:rows]` from address `position` up to `limit`; return position, row and wrong column."""
    shorts = memory[1]
    while row < rows:
        at = position + 2
        shorts[position] = len(columns) >> 8 | len(columns) << 8
        for number in range(len(columns)):
            at = _field(memory, columns, number, order[row], at, limit)
            if at <= 0:
                return position, row, number if at < 0 else -1
        position, row = at, row + 1
    return position, row, -1


def _swap(word):
    """Return a word with its eight bytes in reverse: the server wants the highest first."""
    word = (word & 0x00FF00FF00FF00FF) << 8 | word >> 8 & 0x00FF00FF00FF00FF
    word = (word & 0x0000FFFF0000FFFF) << 16 | word >> 16 & 0x0000FFFF0000FFFF
    return word << 32 | word >> 32 & 0xFFFFFFFF


def _field(memory, columns, number, row, at, limit):
    """Encode one value and return the address behind it; 0 when it does not fit, -1 when a text is no uuid."""
    octets, shorts, ints, words = memory
    how, values, nulls = columns[number, _HOW], columns[number, _VALUES], columns[number, _NULLS]
    bit = columns[number, _FIRST] + row
    if at + _SLACK > limit:
        return 0
    if nulls and not octets[nulls + (bit >> 3)] >> (bit & 7) & 1:
        ints[at] = -1
        return at + 4
    if how >= _UUID:
        length, source = ints[values + 16 * row], _text(memory, columns, number, row)
        if how == _UUID:
            return at + 20 if length == 36 and _uuid(memory, source, at) else -1
        if at + length + _SLACK > limit:
            return 0
        ints[at] = _swap(length << 32)
        for i in range(0, max(length, 12) - 8, 8):
            words[at + 4 + i] = words[source + i]
        if length > 12:
            words[at + length - 4] = words[source + length - 8]
        else:
            ints[at + 12] = ints[source + 8]
        return at + 4 + length
    ints[at] = how << 24
    if how == 4:
        ints[at + 4] = _swap(ints[values + 4 * row] << 32)
    elif how == 8:
        words[at + 4] = _swap(words[values + 8 * row])
    elif how == 2:
        shorts[at + 4] = _swap(shorts[values + 2 * row] << 48)
    else:
        octets[at + 4] = octets[values + row]
    return at + 4 + how


def _text(memory, columns, number, row):
    """Return where a text lies: up to 12 bytes stand in Arrow's string view itself, others in one of its buffers."""
    _, _, ints, words = memory
    view = columns[number, _VALUES] + 16 * row
    if ints[view] <= 12:
        return view + 4
    return words[columns[number, _TEXTS] + 8 * ints[view + 8]] + ints[view + 12]


def _uuid(memory, source, at):
    """Encode the 36 characters of a uuid, eight digits at a time; return False when they are none."""
    octets, _, ints, words = memory
    ints[at] = 16 << 24
    right = octets[source + 8] == octets[source + 13] == octets[source + 18] == octets[source + 23] == 45
    for part, (low, high) in enumerate(((0, 4), (9, 14), (19, 24), (28, 32))):
        word = ints[source + low] & 0xFFFFFFFF | ints[source + high] << 32
        digits = (word & 0x0F0F0F0F0F0F0F0F) + 9 * (word >> 6 & 0x0101010101010101) & 0x0F0F0F0F0F0F0F0F
        letters = digits + 0x0606060606060606 >> 4 & 0x0101010101010101
        right &= digits + 0x3030303030303030 + 39 * letters == word | (word & 0x4040404040404040) >> 1
        digits = _swap(digits)
        digits = (digits | digits >> 4) & 0x00FF00FF00FF00FF
        digits = (digits | digits >> 8) & 0x0000FFFF0000FFFF
        ints[at + 4 + 4 * part] = _swap((digits | digits >> 16) << 32)
    return right


def _prepared(name, array, oid):
    """Return a column as the one Arrow array that the loop reads: the server's type, its numbers and times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = _TYPES[oid][1]
    try:
        column = array.cast(arrow)
        if arrow == "date32" and not column.cast(array.type).equals(array):
            raise ValueError("a time of day does not fit into a date")
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if arrow in _EPOCHS:  # in two steps, so that nothing becomes the smallest number, the server's -infinity
            raw, epoch = _EPOCHS[arrow]
            rest, one = pa.scalar(epoch + 1, raw), pa.scalar(1, raw)
            column = pc.add_checked(pc.subtract_checked(column.view(raw), rest), one)
        return column.cast("uint8") if arrow == "bool" else column
    except NotImplementedError as error:
        raise Unsupported(f'column "{name}": {error}') from None
    except ValueError as error:
        raise ValueError(f'column "{name}": {error}') from None


def _lines(arrays, oids):
    """Return what the loops know of the columns, and the addresses of texts that it refers to."""
    import numpy as np

    lines, texts = np.zeros((len(arrays), 5), np.int64), []
    for line, array, oid in zip(lines, arrays, oids, strict=True):
        nulls, values, *data = (buffer.address - _BASE if buffer else 0 for buffer in array.buffers())
        how = _TYPES[oid][0]
        texts.append(np.array(data, np.int64))
        line[:] = how, values + array.offset * min(how, 16), nulls, texts[-1].ctypes.data - _BASE, array.offset
    return lines, texts


def _slices(lines, key, rows, number):
    """Return the rows in the order of the key column, if any, and where to cut that order: not between equal keys."""
    import numpy as np

    cuts = [rows * i // number for i in range(number + 1)]
    if key is None:
        return np.arange(rows), cuts
    keys = np.empty(rows, np.int64)
    _compiled(_keys)(lines, key, keys)
    order = np.argsort(keys)
    return order, [0, *(int(np.searchsorted(keys, keys[order[cut]], sorter=order)) for cut in cuts[1:-1]), rows]


def _send(connection, statement, names, lines, order, start, end, failures):
    """Encode and send some of the rows, a block at a time, until the server has accepted them."""
    import numpy as np

    try:
        with connection.cursor().copy(statement) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            block, row = np.empty(_BLOCK, np.uint8), start
            while row < end:
                address = block.ctypes.data - _BASE
                position, row, wrong = _compiled(_encode)(lines, order, row, end, address, address + len(block))
                if wrong >= 0:
                    raise ValueError(f'column "{names[wrong]}": found a text that is no uuid of 36 characters')
                if failures:
                    raise InterruptedError("another connection has failed")
                copy.write(memoryview(block)[: position - address])
                if position == address:  # one long row
                    block = np.empty(2 * len(block), np.uint8)
            copy.write(b"\xff\xff")
    except BaseException as error:
        failures.append(error)


def _write(connections, table, names, column_of):
    """Write columns, given as Arrow arrays by `column_of(name, type oid)`, over as many connections as is safe."""
    from psycopg import sql

    table, first = sql.Identifier(table).as_string(), connections[0]
    columns = sql.SQL(", ").join(map(sql.Identifier, names)).as_string()
    try:
        described = first.execute(f"SELECT {columns} FROM {table} LIMIT 0").description
        for column in described:
            if column.type_code not in _TYPES:
                raise Unsupported(f'column "{column.name}": no encoder for the type {column.type_display}')
        key, several = first.execute(_KEY, [table]).fetchone()
        oids = [column.type_code for column in described]
        arrays = [_prepared(name, column_of(name, oid), oid) for name, oid in zip(names, oids, strict=True)]
        (lines, texts), rows = _lines(arrays, oids), len(arrays[0])
        at = names.index(key) if key in names else None
        several = several and (key is None or at is not None and oids[at] in _EXACT)
        used = connections[: max(1, rows // _ROWS)] if several else connections[:1]
        order, cuts = _slices(lines, at, rows, len(used))
        statement, failures = f"COPY {table} ({columns}) FROM STDIN (FORMAT binary)", []
        with ThreadPoolExecutor(len(used)) as pool:
            for connection, start, end in zip(used, cuts[:-1], cuts[1:], strict=True):
                pool.submit(_send, connection, statement, names, lines, order, start, end, failures)
        if failures:
            raise failures[0]
        for connection in used:
            connection.commit()
    except BaseException:
        for connection in connections:
            connection.rollback()
        raise


@transport(
    "write", frame="polars", path="COPY FROM STDIN in slices", payload="binary rows", requires=["polars", *_REQUIRES]
)
def write_polars_tuned(connections, frame, table):
    """Send the rows sorted by the leading key column, encoded in binary, over a connection for each core."""
    import polars as pl

    newest = pl.CompatLevel.newest()
    _write(connections, table, frame.columns, lambda name, oid: frame[name].to_arrow(compat_level=newest))


@transport(
    "write", frame="pandas", path="COPY FROM STDIN in slices", payload="binary rows", requires=["pandas", *_REQUIRES]
)
def write_pandas_tuned(connections, frame, table):
    """Send the rows sorted by the leading key column, encoded in binary, over a connection for each core."""
    import pyarrow as pa

    def column_of(name, oid):
        is_number = frame[name].dtype.kind == "f" and oid in (700, 701)  # there NaN is a number, else it means missing
        return pa.array(frame[name], from_pandas=not is_number)

    _write(connections, table, list(frame.columns), column_of)
