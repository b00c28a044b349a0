"""clickhouse-connect, the official HTTP client, in Arrow: https://clickhouse.com/docs/integrations/python"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS, ARROW_UNCOMPRESSED, select

ARROW_ZSTD = {"output_format_arrow_compression_method": "zstd"}


def _table(batches):
    """Return all batches of a stream as one table."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches, schema=batches.gen.schema)
    _read_to_the_end(batches)
    return table


def _read_to_the_end(stream):
    """Raise RuntimeError, or the client's exception, unless the answer ends at Arrow's end mark.

    pyarrow, and with it the client, stops reading at the end mark. If the server broke the answer off, its error
    message follows the mark. An answer without an end mark that HTTP reports as complete goes unnoticed.
    """
    if stream.source.read():
        raise RuntimeError("ClickHouse failed in the middle of its answer")


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and hand it to polars.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. polars copies the strings. It has no UUID type: a UUID
    arrives as 16 bytes (Binary), in the order of its string form.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_SETTINGS))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_UNCOMPRESSED)
def read_polars_query_arrow_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=none, for a fast network. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_UNCOMPRESSED))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_ZSTD)
def read_polars_query_arrow_zstd(connection, table):
    """Fetch the table as one zstd Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=zstd, for a slow network. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_ZSTD))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and convert it to pandas' own types.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. UUIDs and dates become one Python object per value.
    Integers with nulls become float64, and a null in a float column becomes NaN.
    """
    return connection.query_arrow(select(table), settings=ARROW_SETTINGS).to_pandas()


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_arrow_types(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and keep its Arrow columns in pandas.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. The columns keep their Arrow types (pandas.ArrowDtype):
    nothing is copied, and nulls stay nulls.
    """
    import pandas as pd

    arrow = connection.query_arrow(select(table), settings=ARROW_SETTINGS)
    return arrow.to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_polars_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and hand them to polars.

    The client decodes each batch while it receives the next ones. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return pl.from_arrow(_table(batches))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_pandas_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and turn them into pandas' own types.

    The client decodes each batch while it receives the next ones. UUIDs and dates become one Python object per value.
    Integers with nulls become float64, and a null in a float column becomes NaN.
    """
    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return _table(batches).to_pandas()


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow(dataframe_library="polars"): query_arrow and from_arrow in one call.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. A UUID arrives as 16 bytes (Binary).
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow, which keeps the Arrow columns in pandas (pandas.ArrowDtype).

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. Nothing is copied, and nulls stay nulls.
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of polars frames with query_df_arrow_stream and concatenate them.

    Each frame is one server block of about 8,000 rows. A UUID arrives as 16 bytes (Binary). A table without rows has no
    block and raises ValueError.
    """
    import polars as pl

    query = connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")
    with query as frames:
        frame = pl.concat(frames)
        _read_to_the_end(frames)
        return frame


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of pandas frames with query_df_arrow_stream and concatenate them.

    Each frame has Arrow columns (pandas.ArrowDtype) and is one server block of about 8,000 rows. A table without rows
    has no block and raises ValueError.
    """
    import pandas as pd

    with connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS) as frames:
        frame = pd.concat(frames, ignore_index=True)
        _read_to_the_end(frames)
        return frame
