"""ArrowStream and Parquet over HTTP, in every codec: https://clickhouse.com/docs/interfaces/formats/ArrowStream"""

from harness.registry import transport
from harness.transports.clickhouse.columns import arrow_of_pandas, polars_arrow_stream, polars_parquet
from harness.transports.clickhouse.httpx.client import insert
from harness.transports.clickhouse.server import INSERT_SETTINGS


def _pandas_stream(frame, compression):
    import pyarrow as pa

    table, sink = arrow_of_pandas(frame), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _pandas_parquet(frame, compression):
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(arrow_of_pandas(frame), sink, compression=compression)
    return memoryview(sink.getvalue())


@transport("HTTP INSERT FORMAT ArrowStream, uncompressed", "Arrow", settings=INSERT_SETTINGS)
def write_polars_arrow_stream(connection, frame, table):
    """Send the frame as an uncompressed Arrow stream in the body of a POST request.

    The client sends typed columns in their memory layout. Only UUIDs travel as strings, which the server parses. polars
    writes strings as string views, which older servers do not support (26.9 does).
    """
    insert(connection, frame, table, "ArrowStream", polars_arrow_stream)


@transport("HTTP INSERT FORMAT ArrowStream, lz4", "Arrow", settings=INSERT_SETTINGS)
def write_polars_arrow_stream_lz4(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with lz4.

    Works like write_polars_arrow_stream. The codec is Arrow's IPC compression, not HTTP's.
    """
    insert(connection, frame, table, "ArrowStream", polars_arrow_stream, "lz4")


@transport("HTTP INSERT FORMAT ArrowStream, zstd", "Arrow", settings=INSERT_SETTINGS)
def write_polars_arrow_stream_zstd(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with zstd.

    Works like write_polars_arrow_stream. The codec is Arrow's IPC compression, not HTTP's.
    """
    insert(connection, frame, table, "ArrowStream", polars_arrow_stream, "zstd")


@transport("HTTP INSERT FORMAT ArrowStream, uncompressed", "Arrow", requires=["pyarrow.ipc"], settings=INSERT_SETTINGS)
def write_pandas_arrow_stream(connection, frame, table):
    """Send the frame as an uncompressed Arrow stream in the body of a POST request.

    The client sends typed columns. UUIDs travel as strings and dates as timestamps, and the server converts both.
    pandas 3 already stores strings in Arrow. A NaN arrives as NaN.
    """
    insert(connection, frame, table, "ArrowStream", _pandas_stream, None)


@transport("HTTP INSERT FORMAT ArrowStream, lz4", "Arrow", requires=["pyarrow.ipc"], settings=INSERT_SETTINGS)
def write_pandas_arrow_stream_lz4(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with lz4.

    Works like write_pandas_arrow_stream. The codec is Arrow's IPC compression, not HTTP's.
    """
    insert(connection, frame, table, "ArrowStream", _pandas_stream, "lz4")


@transport("HTTP INSERT FORMAT Parquet, uncompressed", "Parquet", settings=INSERT_SETTINGS)
def write_polars_parquet_uncompressed(connection, frame, table):
    """Send the frame as one Parquet file without compression and without statistics.

    The client sends typed columns. Only UUIDs travel as strings, which the server parses. The server reads no
    statistics during an insert. Dictionaries still compress repeated strings.
    """
    insert(connection, frame, table, "Parquet", polars_parquet, "uncompressed", False)


@transport("HTTP INSERT FORMAT Parquet, lz4", "Parquet", settings=INSERT_SETTINGS)
def write_polars_parquet_lz4(connection, frame, table):
    """Send the frame as one lz4 Parquet file, with polars' defaults otherwise."""
    insert(connection, frame, table, "Parquet", polars_parquet, "lz4")


@transport("HTTP INSERT FORMAT Parquet, zstd", "Parquet", settings=INSERT_SETTINGS)
def write_polars_parquet_zstd_in_pieces(connection, frame, table):
    """Send the frame as one zstd Parquet file: the published transport with a synchronous client, in pieces."""
    insert(connection, frame, table, "Parquet", polars_parquet)


@transport("HTTP INSERT FORMAT Parquet, uncompressed", "Parquet", settings=INSERT_SETTINGS)
def write_pandas_parquet_uncompressed(connection, frame, table):
    """Send the frame as one Parquet file without compression, through pyarrow.

    UUIDs travel as strings and dates as timestamps, and the server converts both. A NaN arrives as NaN.
    """
    insert(connection, frame, table, "Parquet", _pandas_parquet, "none")


@transport("HTTP INSERT FORMAT Parquet, zstd", "Parquet", settings=INSERT_SETTINGS)
def write_pandas_parquet_zstd(connection, frame, table):
    """Send the frame as one zstd Parquet file, through pyarrow.

    UUIDs travel as strings and dates as timestamps, and the server converts both. A NaN arrives as NaN.
    """
    insert(connection, frame, table, "Parquet", _pandas_parquet, "zstd")
