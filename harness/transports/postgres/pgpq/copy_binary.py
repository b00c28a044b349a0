"""pgpq, an encoder from Arrow to the rows of a binary COPY, which psycopg sends: https://github.com/adriangb/pgpq"""

import itertools
from contextlib import ExitStack

from harness.registry import phase, transport
from harness.transports.parts import batches
from harness.transports.postgres.binary_copy import as_the_table, copy_batches
from harness.transports.postgres.pgpq.client import BLOCK_ROWS
from harness.transports.postgres.sql import copy_from_stdin
from harness.transports.postgres.tables import key_columns, types_of


def _made(blocks, types):
    """Yield the blocks one by one, converted to the table's types."""
    remaining = iter(blocks)
    while True:
        with phase("encode"):
            if (block := next(remaining, None)) is None:
                return
            arrow = as_the_table(block, types)
        yield arrow


def _copy(connection, blocks, columns, table):
    """Encode Arrow tables one after the other and send each as it is encoded, all into one binary COPY."""
    from pgpq import ArrowToPostgresBinaryEncoder

    made = _made(blocks, types_of(connection, table, columns))
    first = next(made)
    encoder = ArrowToPostgresBinaryEncoder(first.schema)
    with ExitStack() as stack:
        copy = stack.enter_context(connection.cursor().copy(copy_from_stdin(table, columns, "(FORMAT binary)")))
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
    """Return the offsets of blocks with this many rows; without rows there is one empty block."""
    return range(0, max(rows, 1), BLOCK_ROWS)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def write_polars_copy_binary(connection, frame, table):
    """Encode the frame's Arrow batches with pgpq into binary rows and send them with psycopg's COPY.

    The server parses no text, and no value becomes a Python object. pgpq writes the types of the Arrow columns. The
    transport asks the server which columns are uuid and turns their strings into 16 bytes. The server refuses an
    integer whose width differs from the table's. The transport encodes and sends blocks of 65,536 rows in turn, so
    memory never holds a second copy of the whole frame.
    """
    blocks = (frame.slice(start, BLOCK_ROWS).to_arrow() for start in _starts(len(frame)))
    _copy(connection, blocks, frame.columns, table)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def write_pandas_copy_binary(connection, frame, table):
    """Turn the frame into Arrow, encode its batches with pgpq into binary rows and send them with psycopg's COPY.

    Works like write_polars_copy_binary. For a date column, midnights become days, because pgpq would send timestamps,
    which the server refuses. pandas marks missing values with NaN, so NaN in a float column arrives as NULL.
    """
    import pyarrow as pa

    parts = (frame.iloc[start : start + BLOCK_ROWS] for start in _starts(len(frame)))
    blocks = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    _copy(connection, blocks, list(frame.columns), table)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows, sorted by key")
def write_polars_copy_binary_sorted(connection, frame, table):
    """Sort the frame by the table's primary key, then encode it with pgpq into a binary COPY.

    Rows in key order go into adjacent places of the index, so the server touches each index page once. The transport
    asks the server for the key's columns. Without a key the order stays. If the server's collation sorts strings
    differently from polars, the gain is smaller.
    """
    with phase("encode"):
        keys = key_columns(connection, table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # the name * would be a pattern
    blocks = (frame.slice(start, BLOCK_ROWS).to_arrow() for start in _starts(len(frame)))
    _copy(connection, blocks, frame.columns, table)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows, sorted by key")
def write_pandas_copy_binary_sorted(connection, frame, table):
    """Turn the frame into Arrow, sort that by the table's primary key, then encode it with pgpq into a binary COPY.

    Arrow sorts string keys several times as fast as pandas. The transport asks the server for the key's columns.
    Without a key the order stays. NaN in a float column arrives as NULL.
    """
    import pyarrow as pa

    with phase("encode"):
        keys = key_columns(connection, table)
        arrow = pa.Table.from_pandas(frame, preserve_index=False)
        places = [(arrow.column_names.index(key), "ascending") for key in keys]  # the name .a would be a path
        arrow = arrow.sort_by(places) if keys else arrow
    blocks = (arrow.slice(start, BLOCK_ROWS) for start in _starts(len(arrow)))
    _copy(connection, blocks, arrow.column_names, table)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def load_copy_binary_stream(connection, source, table):
    """Encode the record batches of a Parquet file with pgpq one by one, all into one binary COPY.

    pgpq encodes in Rust, and psycopg sends. uuid strings become 16 bytes and dates become days; the transport casts
    nothing else. The load is one statement: if it is interrupted, no row stays.
    """
    copy_batches(connection, table, batches(source))
