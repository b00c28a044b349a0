"""clickhouse-connect, the official HTTP client, in native columns: https://clickhouse.com/docs/integrations/python"""

from harness.registry import Unsupported, transport
from harness.transports.clickhouse.clickhouse_connect.client import select


def _objects(values):
    """Return a column of Python objects as polars accepts it: dates next to nulls are numpy's, which polars refuses."""
    import numpy as np

    first = next((value for value in values if value is not None), None)
    return values.astype(first.dtype) if isinstance(first, np.datetime64) else values.tolist()


def _named(array):
    if array.dtype.names is None:
        raise Unsupported("query_np returns no column names if all columns have one type, or if there are no rows")
    return array


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df(connection, table):
    """Fetch native blocks with query_df, the client's own method for pandas.

    The client offers every compression it finds installed, and ClickHouse picks zstd. The server holds back the whole
    answer until the query ends (wait_end_of_query=1). UUIDs become one Python object per value, and strings pandas'
    nullable string type. A table without rows arrives without columns.
    """
    return connection.query_df(select(table))


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["lz4.frame", "numpy"])
def read_pandas_query_df_lz4(connection, table):
    """Fetch native blocks with query_df, compressed with lz4.

    Tuned: the header Accept-Encoding requests lz4. Otherwise like query_df.
    """
    return connection.query_df(select(table), transport_settings={"Accept-Encoding": "lz4"})


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df_uncompressed(connection, table):
    """Fetch native blocks with query_df, uncompressed.

    Tuned: the header Accept-Encoding requests no compression. Otherwise like query_df.
    """
    return connection.query_df(select(table), transport_settings={"Accept-Encoding": "identity"})


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df_stream(connection, table):
    """Fetch native blocks as a stream of pandas frames with query_df_stream and concatenate them.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Each frame is one server block,
    built while the next blocks arrive. UUIDs become one Python object per value, and strings pandas' nullable string
    type. A table without rows has no block and raises ValueError.
    """
    import pandas as pd

    with connection.query_df_stream(select(table)) as frames:
        return pd.concat(frames, ignore_index=True)


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_np(connection, table):
    """Fetch native blocks as one structured numpy array with query_np and hand it to polars.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Every string passes through a
    Python object. UUIDs arrive as uuid.UUID, which polars can only hold in its Object type.
    """
    import polars as pl

    array = _named(connection.query_np(select(table)))
    columns = {name: array[name] for name in array.dtype.names}
    return pl.DataFrame(
        {name: _objects(values) if values.dtype == object else values for name, values in columns.items()}
    )


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_np(connection, table):
    """Fetch native blocks as one structured numpy array with query_np and hand it to pandas.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Every string passes through a
    Python object. UUIDs stay objects (uuid.UUID).
    """
    import pandas as pd

    return pd.DataFrame(_named(connection.query_np(select(table))))


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_columns(connection, table):
    """Fetch native blocks as one sequence of Python objects per column with query() and build the frame from them.

    The client offers every compression it finds installed, and ClickHouse picks zstd. UUIDs arrive as uuid.UUID, which
    polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl

    result = connection.query(select(table), column_oriented=True)
    return pl.DataFrame(dict(zip(result.column_names, result.result_columns, strict=True)))


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_columns_uuid_text(connection, table):
    """Fetch native blocks as one sequence of Python objects per column with query() and UUIDs as strings.

    Tuned: query_formats={"UUID": "string"} turns each UUID into a string instead of an object. Integers become Int64.
    """
    import polars as pl

    result = connection.query(select(table), column_oriented=True, query_formats={"UUID": "string"})
    return pl.DataFrame(dict(zip(result.column_names, result.result_columns, strict=True)))
