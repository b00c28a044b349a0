"""clickhouse-connect, the official HTTP client, in Arrow: https://clickhouse.com/docs/integrations/python"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS, ARROW_UNCOMPRESSED, select

ARROW_ZSTD = {"output_format_arrow_compression_method": "zstd"}


def _table(batches):
    """Take all batches of a stream as one table."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches, schema=batches.gen.schema)
    _read_to_the_end(batches)
    return table


def _read_to_the_end(stream):
    """Raise RuntimeError, or what the client raises, when the answer does not end where Arrow's end mark says it does.

    pyarrow and with it the client stop reading there; that the server has broken the answer off stands behind it. What
    nobody notices is an answer without an end mark that HTTP calls complete.
    """
    if stream.source.read():
        raise RuntimeError("ClickHouse failed in the middle of its answer")


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_polars_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and hand it to polars.

    The client tells the server to hold the whole answer back until the query has ended
    (wait_end_of_query=1), and asks for no HTTP compression: Arrow has its own. polars copies the texts
    and has no UUID type: a UUID arrives as 16 bytes of Binary, in the order of its text.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_SETTINGS))


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_UNCOMPRESSED,
    lossy={"changed": "enum"},
)
def read_polars_query_arrow_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=none, for a fast network. A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_UNCOMPRESSED))


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_ZSTD,
    lossy={"changed": "enum"},
)
def read_polars_query_arrow_zstd(connection, table):
    """Fetch the table as one zstd Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=zstd, for a slow network. A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_ZSTD))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "int64_beside_null enum"},
)
def read_pandas_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and turn it into pandas' own types.

    The client tells the server to hold the whole answer back until the query has ended
    (wait_end_of_query=1), and asks for no HTTP compression: Arrow has its own. UUIDs and dates
    become one Python object per value; integers with nulls become float64, and a null among floats becomes NaN.
    """
    return connection.query_arrow(select(table), settings=ARROW_SETTINGS).to_pandas()


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_pandas_query_arrow_types(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and keep its Arrow columns in pandas.

    The client tells the server to hold the whole answer back until the query has ended
    (wait_end_of_query=1), and asks for no HTTP compression: Arrow has its own. The columns stay
    what they are in Arrow (pandas.ArrowDtype): nothing is copied, nulls stay nulls.
    """
    import pandas as pd

    arrow = connection.query_arrow(select(table), settings=ARROW_SETTINGS)
    return arrow.to_pandas(types_mapper=pd.ArrowDtype)


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_polars_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and hand them all to polars.

    Each batch is decoded while the next ones are on their way. A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return pl.from_arrow(_table(batches))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "int64_beside_null enum"},
)
def read_pandas_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and turn them into pandas' own types.

    Each batch is decoded while the next ones are on their way. UUIDs and dates become one Python object per value;
    integers with nulls become float64, and a null among floats becomes NaN.
    """
    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return _table(batches).to_pandas()


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_polars_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow(dataframe_library="polars"), which is query_arrow and from_arrow in one call.

    The client tells the server to hold the whole answer back until the query has ended
    (wait_end_of_query=1), and asks for no HTTP compression: Arrow has its own. A UUID arrives as
    16 bytes of Binary.
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Arrow",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_pandas_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow, which keeps the Arrow columns in pandas (pandas.ArrowDtype).

    The client tells the server to hold the whole answer back until the query has ended
    (wait_end_of_query=1), and asks for no HTTP compression: Arrow has its own. Nothing is copied,
    nulls stay nulls.
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS)


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum", "refused": "zero_rows"},
)
def read_polars_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of polars frames with query_df_arrow_stream and put them together.

    One frame per block of the server, about 8,000 rows. A UUID arrives as 16 bytes of Binary. A table without rows has
    no block and is refused (ValueError).
    """
    import polars as pl

    query = connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")
    with query as frames:
        frame = pl.concat(frames)
        _read_to_the_end(frames)
        return frame


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum", "refused": "zero_rows"},
)
def read_pandas_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of pandas frames with query_df_arrow_stream and put them together.

    One frame of Arrow columns (pandas.ArrowDtype) per block of the server, about 8,000 rows. A table without rows has
    no block and is refused (ValueError).
    """
    import pandas as pd

    with connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS) as frames:
        frame = pd.concat(frames, ignore_index=True)
        _read_to_the_end(frames)
        return frame
