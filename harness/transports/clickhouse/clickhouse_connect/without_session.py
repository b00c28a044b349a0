"""clickhouse-connect without a session: inserts, and streams of Arrow: https://clickhouse.com/docs/integrations/python"""

from harness.registry import phase, transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS
from harness.transports.clickhouse.columns import (
    arrow_of_pandas,
    arrow_parquet,
    pandas_lists_with_none,
    polars_arrow_stream,
    polars_lists,
    polars_parquet,
)
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless, to_the_end
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import batches, gathered, write_part

connect = sessionless
INSERT_ROWS = 500_000  # rows of one INSERT: half of a server's default block
GROUP_ROWS = 32_768  # rows of a row group: the server sends blocks of about 8,000


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


@transport("insert_arrow, lz4", "Arrow", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def load_insert_arrow(connection, source, table):
    """Send the record batches of a Parquet file with insert_arrow, about 500,000 rows in each INSERT.

    Those rows and their lz4 Arrow file are in memory at the same time. If the load is interrupted, earlier INSERTs
    stay. Partitions that the current INSERT has already written stay too. Empty the table before you load again.
    """
    import pyarrow as pa

    for arrow in map(pa.Table.from_batches, gathered(batches(source), INSERT_ROWS)):
        connection.insert_arrow(identifier(table), arrow, settings=INSERT_SETTINGS)
        del arrow  # free it before gathering the next rows


@transport("sink_batches, insert_df_arrow, lz4", "Arrow", requires=["lz4.frame", "pyarrow"], settings=INSERT_SETTINGS)
def load_polars_sink(connection, source, table):
    """Let polars scan a Parquet file and pass every 500,000 rows (sink_batches) to insert_df_arrow.

    You can put a polars query before the sink. polars reads some row groups ahead. If the load is interrupted, inserted
    rows stay, as with load_insert_arrow.
    """
    import polars as pl

    def insert(frame):  # return None: polars takes a result as a request to stop
        connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)

    pl.scan_parquet(source, glob=False).sink_batches(insert, chunk_size=INSERT_ROWS)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def unload_query_arrow_stream(connection, table, destination):
    """Write the table as Parquet, record batch by record batch as query_arrow_stream decodes them.

    A UUID arrives as 16 bytes, in the order of its string form. One query returns the rows that the table had when it
    began.
    """
    import pyarrow as pa

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}", settings=ARROW_SETTINGS) as stream:
        groups = gathered(to_the_end(stream), GROUP_ROWS)
        write_part(destination, "rows", map(pa.concat_batches, groups))
