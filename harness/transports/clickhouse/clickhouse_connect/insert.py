"""clickhouse-connect's inserts, over HTTP: https://clickhouse.com/docs/integrations/python"""

from harness.registry import phase, transport
from harness.transports.clickhouse.columns import (
    arrow_of_pandas,
    arrow_parquet,
    pandas_lists_with_none,
    polars_arrow_stream,
    polars_lists,
    polars_parquet,
)
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier

connect = sessionless


def _insert_columns(connection, frame, table, encode):
    with phase("encode"):
        columns = encode(frame)
    with phase("send"):
        names = list(frame.columns)
        connection.insert(identifier(table), columns, names, column_oriented=True, settings=INSERT_SETTINGS)


def _raw_insert(connection, frame, table, format_name, encode, *how):
    with phase("encode"):
        body = encode(frame, *how)
    with phase("send"):
        names = list(map(identifier, frame.columns))
        connection.raw_insert(identifier(table), names, body, settings=INSERT_SETTINGS, fmt=format_name)


@transport("insert_df_arrow, lz4", "Arrow", requires=["lz4.frame", "pyarrow"], settings=INSERT_SETTINGS)
def write_polars_df_arrow(connection, frame, table):
    """Send the frame with insert_df_arrow as one Arrow file whose buffers are compressed with lz4.

    The client sends typed columns. Only UUIDs travel as strings, which the server parses. lz4 is the default.
    """
    connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)


@transport("insert_df_arrow, uncompressed", "Arrow", requires=["lz4.frame", "pyarrow"], settings=INSERT_SETTINGS)
def write_polars_df_arrow_uncompressed(connection, frame, table):
    """Send the frame with insert_df_arrow as one uncompressed Arrow file; otherwise like write_polars_df_arrow."""
    connection.write_compression = None
    connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)


@transport("insert_df_arrow, zstd", "Arrow", requires=["lz4.frame", "pyarrow"], settings=INSERT_SETTINGS)
def write_polars_df_arrow_zstd(connection, frame, table):
    """Send the frame with insert_df_arrow as one zstd Arrow file; otherwise like write_polars_df_arrow."""
    connection.write_compression = "zstd"
    connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)


@transport("insert_arrow, lz4", "Arrow", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_arrow(connection, frame, table):
    """Turn the frame into an Arrow table and send it with insert_arrow, its buffers compressed with lz4.

    insert_df_arrow would refuse a frame with NumPy columns. UUIDs travel as strings and dates as timestamps, and the
    server converts both. A NaN arrives as NaN.
    """
    with phase("encode"):
        arrow = arrow_of_pandas(frame)
    with phase("send"):
        connection.insert_arrow(identifier(table), arrow, settings=INSERT_SETTINGS)


@transport("insert_df, lz4", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_df(connection, frame, table):
    """Send the frame with insert_df, which packs it into Native blocks and compresses them with lz4.

    The server parses nothing. The client first asks for the table's columns (DESCRIBE), creates a Python object per
    value and parses the UUID strings. A NaN becomes a null in a Nullable column.
    """
    connection.insert_df(identifier(table), frame, settings=INSERT_SETTINGS)


@transport("insert_df, uncompressed", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_df_uncompressed(connection, frame, table):
    """Send the frame with insert_df in uncompressed Native blocks; otherwise like write_pandas_df."""
    connection.write_compression = None
    connection.insert_df(identifier(table), frame, settings=INSERT_SETTINGS)


@transport("insert(column_oriented=True), lz4", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_polars_columns(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into lz4 Native blocks.

    The server parses nothing. The client first asks for the table's columns (DESCRIBE), creates a Python object per
    value and parses the UUID strings.
    """
    _insert_columns(connection, frame, table, polars_lists)


@transport("insert(column_oriented=True), lz4", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_columns(connection, frame, table):
    """Send every column as a list of Python objects; the client packs them into lz4 Native blocks.

    Works like write_polars_columns. The client converts each date through a Timestamp.
    """
    _insert_columns(connection, frame, table, pandas_lists_with_none)


@transport("raw_insert FORMAT Parquet, zstd", "Parquet", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_polars_raw_parquet(connection, frame, table):
    """Send the frame as one zstd Parquet file with raw_insert.

    The published transport over HTTP with ClickHouse's official client. Only UUIDs travel as strings. raw_insert itself
    does not compress.
    """
    _raw_insert(connection, frame, table, "Parquet", polars_parquet)


@transport("raw_insert FORMAT ArrowStream, uncompressed", "Arrow", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_polars_raw_arrow_stream(connection, frame, table):
    """Send the frame as an uncompressed Arrow stream, written by polars itself, with raw_insert.

    Does not need pyarrow. polars writes strings as string views, which older servers do not support (26.9 does).
    """
    _raw_insert(connection, frame, table, "ArrowStream", polars_arrow_stream)


@transport("raw_insert FORMAT Parquet, uncompressed", "Parquet", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_raw_parquet(connection, frame, table):
    """Send the frame as one uncompressed Parquet file with raw_insert.

    UUIDs travel as strings and dates as timestamps, and the server converts both. A NaN arrives as NaN.
    """
    _raw_insert(connection, frame, table, "Parquet", arrow_parquet, "none")


@transport("SELECT 1", "one value", requires=["lz4.frame"], origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.query("SELECT 1").first_row[0]
