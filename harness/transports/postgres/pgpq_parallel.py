"""pgpq over several connections at once: https://github.com/adriangb/pgpq"""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import phase, transport

CLIENT = "pgpq"
BLOCK_ROWS = 65_536  # turned into Arrow, encoded and sent at a time
# A slice that waits for a row of another one would wait for ever: that one commits only when all are done.
LOCK_TIMEOUT = "10s"
# So writers over several connections take turns at a table: an advisory lock of its oid behind a class id, "lab ".
TURN = 0x6C616220 << 32


@contextmanager
def connect(uri):
    """Yield as many psycopg connections as this process may use cores, at least 2 and at most 8."""
    import psycopg

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    number = min(max(cores, 2), 8)
    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(uri, autocommit=True)) for _ in range(number)]


def _key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in its order; none gives an empty list."""
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident(%s)::regclass ORDER BY k.place",
        [table],
    )
    return [name for (name,) in rows]


def _uuid_bytes(texts):
    """Turn an Arrow column of uuid texts into one of 16 bytes a value. Raises ValueError where a text is no uuid."""
    import pyarrow as pa
    import pyarrow.compute as pc

    digits = pc.fill_null(pc.replace_substring(pa.chunked_array(texts).combine_chunks(), "-", ""), "0" * 32)
    joined = memoryview(digits.buffers()[-1] or b"")[: 32 * len(digits)]
    octets = bytes.fromhex(str(joined, "ascii"))
    if len(octets) != 16 * len(digits) or not pc.all(pc.equal(pc.binary_length(digits), 32), min_count=0).as_py():
        raise ValueError("expected uuids of 32 hexadecimal digits, found another text")
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(digits), [None, pa.py_buffer(octets)])
    return pc.if_else(pc.is_valid(texts), values, None)


def _types(connection, table, columns):
    """Ask the server for the types of these columns, by name (one round trip)."""
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    found = connection.execute(sql.SQL("SELECT {} FROM {} LIMIT 0").format(names, sql.Identifier(table)))
    types = connection.adapters.types
    return {column.name: getattr(types.get(column.type_code), "name", None) for column in found.description}


def _as_the_table(arrow, types):
    """Give uuids and dates the Arrow types that the server's binary form of them needs: 16 bytes, and days."""
    import pyarrow as pa

    for position, (name, values) in enumerate(zip(arrow.column_names, arrow.columns, strict=True)):
        if types[name] == "uuid":
            arrow = arrow.set_column(position, name, _uuid_bytes(values))
        elif types[name] == "date" and values.type != pa.date32():
            days = values.cast(pa.date32())
            if not days.cast(values.type).equals(values):  # Arrow cuts a time of day off without a word
                raise ValueError(f'column "{name}" is a date in the table, but has times of day')
            arrow = arrow.set_column(position, name, days)
    return arrow.combine_chunks()


def _copy(connection, blocks, types, table):
    """Encode Arrow tables one after the other and send each as it is encoded, all into one binary COPY."""
    from pgpq import ArrowToPostgresBinaryEncoder
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, types))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), names)
    connection.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
    made = (_as_the_table(block, types) for block in blocks)
    first = next(made)
    encoder = ArrowToPostgresBinaryEncoder(first.schema)
    with connection.cursor().copy(statement) as copy:
        copy.write(encoder.write_header())
        for arrow in itertools.chain([first], made):
            for batch in arrow.to_batches():
                copy.write(encoder.write_batch(batch))
        copy.write(encoder.finish())


def _take_turn(connection, table):
    """Wait until no other parallel writer is at the table; the transaction's end is the end of the turn."""
    connection.execute("SELECT pg_advisory_xact_lock(%s | quote_ident(%s)::regclass::oid::bigint)", [TURN, table])


def _copy_slices(connections, slices, columns, table):
    """Send one slice over each connection, block by block; commit them only when all have arrived, else none."""
    types = _types(connections[0], table, columns)
    with ExitStack() as transactions:
        for connection in connections:
            transactions.enter_context(connection.transaction())  # they end in reverse: the first, with its turn, last
        _take_turn(connections[0], table)
        with ThreadPoolExecutor(len(connections)) as pool:
            number = len(connections)
            list(pool.map(_copy, connections, slices, [types] * number, [table] * number))


def _parts(rows, number):
    """Return for each of so many parts where its blocks begin and how many rows they have; of none there is one."""
    bounds = [rows * part // number for part in range(number + 1)]
    return [
        [(start, min(BLOCK_ROWS, end - start)) for start in range(begin, max(end, begin + 1), BLOCK_ROWS)]
        for begin, end in itertools.pairwise(bounds)
    ]


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN (FORMAT binary), parallel",
    payload="binary rows, sorted by key",
    requires=["polars", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "timestamp_into_int64",
        "refused": "categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64"
        " float32_into_float64 float64_into_decimal int32_into_text text_into_int32 "
        "date_into_timestamp",
    },
)
def write_polars_copy_binary_sorted(connections, frame, table):
    """Sort the frame by the primary key and send its slices over several connections at once, encoded with pgpq.

    As many connections as cores (2 to 8), each with a thread and a transaction of its own. An error in one slice rolls
    all of them back. The transactions commit one after the other when all rows have arrived: in that moment another
    connection can see some slices and not yet the others, and a crash can leave it so. Where two slices have the same
    key, one waits for the other and fails after 10 seconds (lock_timeout), and no row stays. Two parallel writers of
    one table take turns (an advisory lock): they could wait for each other's keys.
    """
    with phase("encode"):
        keys = _key_columns(connections[0], table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # by name * would be a pattern
    slices = [(frame.slice(*block).to_arrow() for block in blocks) for blocks in _parts(len(frame), len(connections))]
    _copy_slices(connections, slices, frame.columns, table)


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN (FORMAT binary), parallel",
    payload="binary rows, sorted by key",
    requires=["pandas", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "nan float32_nan timestamp_into_int64",
        "refused": "arrays categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 "
        "int32_into_float64 float32_into_float64 float64_into_decimal int32_into_text "
        "text_into_int32",
    },
)
def write_pandas_copy_binary_sorted(connections, frame, table):
    """Turn the frame into Arrow, sort it by the primary key and send its slices over several connections at once.

    As many connections as cores (2 to 8); all slices arrive or none, and in the moment of the commits another
    connection can see some of them, as from polars. A floating NaN arrives as NULL.
    """
    import pyarrow as pa

    with phase("encode"):
        keys = _key_columns(connections[0], table)
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
        places = [(arrow.column_names.index(key), "ascending") for key in keys]  # by name .a would be a path
        arrow = arrow.sort_by(places) if keys else arrow
    slices = [(arrow.slice(*block) for block in blocks) for blocks in _parts(len(arrow), len(connections))]
    _copy_slices(connections, slices, arrow.column_names, table)
