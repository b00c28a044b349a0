"""The Native format, blocks of typed columns, encoded with Arrow and NumPy: https://clickhouse.com/docs/interfaces/formats/Native

The layout follows ClickHouse's src/Formats/NativeWriter.cpp for clients that name no protocol version. Blocks follow
each other. A block has the number of columns and of rows as LEB128. Each column then has its name, its type (strings:
length as LEB128, UTF-8) and its values. Numbers are little-endian. A Date is UInt16 days since 1970, a Date32 Int32. A
UUID is two little-endian UInt64, the high half first. A String is length and bytes, row after row. A Nullable has one
byte per row, 1 for null, before its values. The type sent may differ from the column's, because the server converts: a
LowCardinality(String) can be sent as String.
"""

from harness.registry import transport
from harness.transports.clickhouse.columns import arrow_of_pandas, arrow_of_polars, lengths_of_texts, numbers_or_texts
from harness.transports.clickhouse.httpx.client import insert_arrow
from harness.transports.clickhouse.server import INSERT_SETTINGS

# The block size into which a server splits a longer insert (max_insert_block_size).
BLOCK_ROWS = 1_048_576


def _blocks(arrow, types):
    """Return all rows as bytes."""
    blocks = (arrow.slice(start, BLOCK_ROWS) for start in range(0, arrow.num_rows, BLOCK_ROWS))
    return b"".join(piece for block in blocks for piece in _block(block.combine_chunks(), types))


def _leb128(number):
    """Return a number as LEB128: groups of seven bits, lowest first; every byte but the last has its top bit set."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _text(text):
    data = text.encode()
    return _leb128(len(data)) + data


def _block(arrow, types):
    """Yield the pieces of a block of at least one row."""
    import numpy as np

    yield _leb128(arrow.num_columns) + _leb128(arrow.num_rows)
    for name, chunks in zip(arrow.column_names, arrow.columns, strict=True):
        column, (sql_type, nullable) = chunks.chunk(0), types[name]
        values = numbers_or_texts(name, column, sql_type, nullable)
        yield _text(name) + _text(f"Nullable({sql_type})" if column.null_count else sql_type)
        if column.null_count:
            yield column.is_null().cast("uint8").to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(_strings(values) if sql_type == "String" else values)


def _strings(texts):
    """Return the strings consecutively, each after its length."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (lengths_of_texts(texts), texts.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()))
    joined = pc.binary_join_element_wise(*parts)
    end = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset + len(joined)]
    return np.frombuffer(joined.buffers()[2], np.uint8)[:end]


@transport("HTTP INSERT FORMAT Native, uncompressed", "native columns", settings=INSERT_SETTINGS)
def write_polars_native(connection, frame, table):
    """Encode the frame as Native blocks with Arrow and NumPy and send them in the body of a POST request.

    The server parses and converts nothing. The client first asks for the column types (DESCRIBE). It turns UUID strings
    into 16 bytes.
    """
    insert_arrow(connection, table, arrow_of_polars, frame, "Native", _blocks)


@transport("HTTP INSERT FORMAT Native, lz4", "native columns", settings=INSERT_SETTINGS)
def write_polars_native_lz4(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding lz4; otherwise like write_polars_native."""
    insert_arrow(connection, table, arrow_of_polars, frame, "Native", _blocks, "lz4")


@transport("HTTP INSERT FORMAT Native, zstd", "native columns", settings=INSERT_SETTINGS)
def write_polars_native_zstd(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding zstd; otherwise like write_polars_native."""
    insert_arrow(connection, table, arrow_of_polars, frame, "Native", _blocks, "zstd")


@transport("HTTP INSERT FORMAT Native, uncompressed", "native columns", settings=INSERT_SETTINGS)
def write_pandas_native(connection, frame, table):
    """Encode the frame as Native blocks with Arrow and NumPy and send them in the body of a POST request.

    The server parses and converts nothing. The client first asks for the column types (DESCRIBE). It turns UUID strings
    into 16 bytes and timestamps into days. A NaN arrives as NaN.
    """
    insert_arrow(connection, table, arrow_of_pandas, frame, "Native", _blocks)


@transport("HTTP INSERT FORMAT Native, lz4", "native columns", settings=INSERT_SETTINGS)
def write_pandas_native_lz4(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding lz4; otherwise like write_pandas_native."""
    insert_arrow(connection, table, arrow_of_pandas, frame, "Native", _blocks, "lz4")
