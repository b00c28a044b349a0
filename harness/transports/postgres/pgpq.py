"""pgpq, an encoder from Arrow to the rows of a binary COPY, which psycopg sends: https://github.com/adriangb/pgpq"""

import itertools
from contextlib import ExitStack, contextmanager

from harness.registry import phase, transport

BLOCK_ROWS = 65_536  # turned into Arrow, encoded and sent at a time


@contextmanager
def connect(uri):
    """Yield one psycopg connection in autocommit mode: every COPY is a transaction of its own."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


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


def _made(blocks, types):
    """Yield the blocks as they are made, with the types that the table needs."""
    remaining = iter(blocks)
    while True:
        with phase("encode"):
            if (block := next(remaining, None)) is None:
                return
            arrow = _as_the_table(block, types)
        yield arrow


def _copy(connection, blocks, columns, table):
    """Encode Arrow tables one after the other and send each as it is encoded, all into one binary COPY."""
    from pgpq import ArrowToPostgresBinaryEncoder
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), names)
    made = _made(blocks, _types(connection, table, columns))
    first = next(made)
    encoder = ArrowToPostgresBinaryEncoder(first.schema)
    with ExitStack() as stack:
        copy = stack.enter_context(connection.cursor().copy(statement))
        copy.write(encoder.write_header())
        for arrow in itertools.chain([first], made):
            with phase("encode"):
                encoded = [encoder.write_batch(batch) for batch in arrow.to_batches()]
            with phase("send"):
                for data in encoded:
                    copy.write(data)
        with phase("send"):
            copy.write(encoder.finish())
            stack.close()


def _starts(rows):
    """Return where the blocks of so many rows begin; of none there is an empty one."""
    return range(0, max(rows, 1), BLOCK_ROWS)


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["polars", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "timestamp_into_int64",
        "refused": "categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64"
        " float32_into_float64 float64_into_decimal int32_into_text text_into_int32 "
        "date_into_timestamp",
    },
)
def write_polars_copy_binary(connection, frame, table):
    """Encode the frame's Arrow batches with pgpq into binary rows and send them with psycopg's COPY.

    The server parses no text, and no Python object is made of any value. pgpq writes the types of the Arrow columns:
    uuid texts become 16 bytes first (the server is asked which columns those are), and an integer of another width
    than the table's is refused by the server. Blocks of 65,536 rows are encoded and sent in turns, so that the whole
    frame never stands in memory a second time.
    """
    blocks = (frame.slice(start, BLOCK_ROWS).to_arrow() for start in _starts(len(frame)))
    _copy(connection, blocks, frame.columns, table)


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["pandas", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "nan float32_nan timestamp_into_int64",
        "refused": "arrays categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 "
        "int32_into_float64 float32_into_float64 float64_into_decimal int32_into_text "
        "text_into_int32",
    },
)
def write_pandas_copy_binary(connection, frame, table):
    """Turn the frame into Arrow, encode its batches with pgpq into binary rows and send them with psycopg's COPY.

    As from polars; and where the table has a date, midnights become days: pgpq would send them as timestamps, which the
    server refuses. pandas marks what is missing with NaN, so that a floating NaN arrives as NULL.
    """
    import pyarrow as pa

    parts = (frame.iloc[start : start + BLOCK_ROWS] for start in _starts(len(frame)))
    blocks = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    _copy(connection, blocks, list(frame.columns), table)


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows, sorted by key",
    requires=["polars", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "timestamp_into_int64",
        "refused": "categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 int32_into_float64"
        " float32_into_float64 float64_into_decimal int32_into_text text_into_int32 "
        "date_into_timestamp",
    },
)
def write_polars_copy_binary_sorted(connection, frame, table):
    """Sort the frame by the table's primary key, then encode it with pgpq into a binary COPY.

    Rows in the order of the key go into the index side by side: the server touches each of its pages once. The server
    is asked for the key's columns; without a key the order stays. Where its collation sorts texts in another order
    than polars, less is gained.
    """
    with phase("encode"):
        keys = _key_columns(connection, table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # by name * would be a pattern
    blocks = (frame.slice(start, BLOCK_ROWS).to_arrow() for start in _starts(len(frame)))
    _copy(connection, blocks, frame.columns, table)


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows, sorted by key",
    requires=["pandas", "pyarrow", "pyarrow.compute", "pgpq", "psycopg"],
    lossy={
        "changed": "nan float32_nan timestamp_into_int64",
        "refused": "arrays categories jsonb int64_into_int32 int32_into_int64 float64_into_int32 "
        "int32_into_float64 float32_into_float64 float64_into_decimal int32_into_text "
        "text_into_int32",
    },
)
def write_pandas_copy_binary_sorted(connection, frame, table):
    """Turn the frame into Arrow, sort that by the table's primary key, then encode it with pgpq into a binary COPY.

    Arrow sorts, several times as fast as pandas where the key has texts. The server is asked for the key's columns;
    without a key the order stays. A floating NaN arrives as NULL.
    """
    import pyarrow as pa

    with phase("encode"):
        keys = _key_columns(connection, table)
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
        places = [(arrow.column_names.index(key), "ascending") for key in keys]  # by name .a would be a path
        arrow = arrow.sort_by(places) if keys else arrow
    blocks = (arrow.slice(start, BLOCK_ROWS) for start in _starts(len(arrow)))
    _copy(connection, blocks, arrow.column_names, table)
