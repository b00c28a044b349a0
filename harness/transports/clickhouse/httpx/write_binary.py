"""Native and RowBinary, encoded with Arrow and NumPy: https://clickhouse.com/docs/interfaces/formats/Native

The layouts follow ClickHouse's src/Formats/NativeWriter.cpp, for clients that name no protocol version, and
src/Processors/Formats/Impl/BinaryRowOutputFormat.cpp. Native is consecutive blocks. A block has the number of columns
and of rows as LEB128. Each column then has its name, its type (strings: length as LEB128, UTF-8) and its values. A
Nullable has one byte per row, 1 for null, before its values. The type sent may differ from the column's, because the
server converts: a LowCardinality(String) can be sent as String.

RowBinary is consecutive rows without headers. A Nullable is one byte, 1 for null, and the value unless it is null. The
format carries no column names or types, so they must match the table exactly. A LowCardinality(T) is written as T.
Arrow joins the binary columns into rows (binary_join_element_wise), and the resulting buffer is the request body.

In both, numbers are little-endian. A Date is UInt16 days since 1970, a Date32 Int32. A UUID is two little-endian
UInt64, the high half first. A String is its length as LEB128 and its bytes.
"""

from harness.registry import transport
from harness.transports.clickhouse.columns import (
    arrow_of_pandas,
    arrow_of_polars,
    lengths_of_strings,
    numbers_or_strings,
)
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
        values = numbers_or_strings(name, column, sql_type, nullable)
        yield _text(name) + _text(f"Nullable({sql_type})" if column.null_count else sql_type)
        if column.null_count:
            yield column.is_null().cast("uint8").to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(_strings(values) if sql_type == "String" else values)


def _strings(strings):
    """Return the strings consecutively, each after its length."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (lengths_of_strings(strings), strings.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()))
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


def _rows(arrow, types):
    """Return all rows as bytes."""
    import numpy as np

    if not arrow.num_rows:
        return b""
    parts: list[object] = []
    arrow = arrow.combine_chunks()
    for name, chunks in zip(arrow.column_names, arrow.columns, strict=True):
        column, (sql_type, nullable) = chunks.chunk(0), types[name]
        values = _binaries(name, column, sql_type, nullable)
        parts += [_optional(column, values)] if nullable else values
    joined = _joined(parts)
    end = np.frombuffer(joined.buffers()[1], np.int64)[len(joined)]
    return memoryview(joined.buffers()[2])[:end]


def _joined(parts):
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))


def _optional(column, values):
    """Return the values, each after a byte that says whether it is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    there, missing = (pa.scalar(flag, pa.large_binary()) for flag in (b"\0", b"\1"))
    return pc.if_else(column.is_null(), missing, _joined([there, *values]))


def _binaries(name, column, sql_type, nullable):
    """Return a column's values as Arrow binaries, strings after their lengths; a null is an empty value."""
    import pyarrow as pa

    values = numbers_or_strings(name, column, sql_type, nullable)
    if sql_type == "String":
        return [lengths_of_strings(values), values.cast(pa.large_binary())]
    return [_fixed(values, values.nbytes // len(values))]


def _fixed(values, width):
    """Return numbers as Arrow binaries of this width, without copying them."""
    import numpy as np
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(values))
    offsets = pa.py_buffer(np.arange(0, data.size + 1, width, dtype=np.int64))
    return pa.Array.from_buffers(pa.large_binary(), data.size // width, [None, offsets, data])


@transport("HTTP INSERT FORMAT RowBinary, uncompressed", "binary rows", settings=INSERT_SETTINGS)
def write_polars_row_binary(connection, frame, table):
    """Encode the frame as RowBinary with Arrow and send it in the body of a POST request.

    The server parses nothing but turns rows into columns. The client first asks for the column types (DESCRIBE). It
    turns UUID strings into 16 bytes.
    """
    insert_arrow(connection, table, arrow_of_polars, frame, "RowBinary", _rows)


@transport("HTTP INSERT FORMAT RowBinary, lz4", "binary rows", settings=INSERT_SETTINGS)
def write_polars_row_binary_lz4(connection, frame, table):
    """Send the frame as RowBinary in a body with Content-Encoding lz4; otherwise like write_polars_row_binary."""
    insert_arrow(connection, table, arrow_of_polars, frame, "RowBinary", _rows, "lz4")


@transport("HTTP INSERT FORMAT RowBinary, zstd", "binary rows", settings=INSERT_SETTINGS)
def write_polars_row_binary_zstd(connection, frame, table):
    """Send the frame as RowBinary in a body with Content-Encoding zstd; otherwise like write_polars_row_binary."""
    insert_arrow(connection, table, arrow_of_polars, frame, "RowBinary", _rows, "zstd")


@transport("HTTP INSERT FORMAT RowBinary, uncompressed", "binary rows", settings=INSERT_SETTINGS)
def write_pandas_row_binary(connection, frame, table):
    """Encode the frame as RowBinary with Arrow and send it in the body of a POST request.

    The server parses nothing but turns rows into columns. The client first asks for the column types (DESCRIBE). It
    turns UUID strings into 16 bytes and timestamps into days. A NaN arrives as NaN.
    """
    insert_arrow(connection, table, arrow_of_pandas, frame, "RowBinary", _rows)


@transport("HTTP INSERT FORMAT RowBinary, lz4", "binary rows", settings=INSERT_SETTINGS)
def write_pandas_row_binary_lz4(connection, frame, table):
    """Send the frame as RowBinary in a body with Content-Encoding lz4; otherwise like write_pandas_row_binary."""
    insert_arrow(connection, table, arrow_of_pandas, frame, "RowBinary", _rows, "lz4")
