"""clickhouse-driver, the native protocol, with Arrow and DataFrame results: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_driver.client import opened
from harness.transports.clickhouse.columns import typed
from harness.transports.clickhouse.sql import identifier


def connect(uri):
    """Open an uncompressed connection."""
    return opened(uri)


@transport("native fetch as Arrow", "native columns", requires=["numpy", "pyarrow"])
def read_polars_query_arrow(connection, table):
    """Fetch native blocks with query_arrow, which builds Arrow columns, and hand them to polars.

    No value becomes a Python object, except UUIDs, which arrive as strings. Needs clickhouse-driver 0.2.11.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(f"SELECT * FROM {identifier(table)}"))


@transport("native fetch as Arrow", "native columns", requires=["numpy", "pyarrow"])
def read_pandas_query_arrow(connection, table):
    """Fetch native blocks with query_arrow, which builds Arrow columns, and keep these in pandas.

    No value becomes a Python object, except UUIDs, which arrive as strings. The columns keep their Arrow types
    (pandas.ArrowDtype). Needs clickhouse-driver 0.2.11.
    """
    import pandas as pd

    return connection.query_arrow(f"SELECT * FROM {identifier(table)}").to_pandas(types_mapper=pd.ArrowDtype)


@transport("native fetch as Arrow", "native columns", requires=["numpy", "pyarrow"])
def read_polars_query_arrow_stream(connection, table):
    """Fetch native blocks as a stream of Arrow batches with query_arrow_stream, and let polars take them one by one.

    polars takes each block while the client receives the next ones. UUIDs arrive as strings. Needs clickhouse-driver
    0.2.11.
    """
    import polars as pl

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}") as reader:
        return pl.DataFrame(reader)


@transport("native fetch as Arrow", "native columns", requires=["numpy", "pyarrow"])
def read_pandas_query_arrow_stream(connection, table):
    """Fetch native blocks as a stream of Arrow batches with query_arrow_stream and concatenate their frames.

    Each block becomes a frame of Arrow columns (pandas.ArrowDtype) while the client receives the next ones. UUIDs
    arrive as strings. Needs clickhouse-driver 0.2.11.
    """
    import pandas as pd

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}") as reader:
        frames = [batch.to_pandas(types_mapper=pd.ArrowDtype) for batch in reader]
        return pd.concat(
            frames or [reader.schema.empty_table().to_pandas(types_mapper=pd.ArrowDtype)], ignore_index=True
        )


@transport("native columnar fetch", "columns", requires=["numpy"])
def read_pandas_query_dataframe(connection, table):
    """Fetch native blocks with query_dataframe: one sequence of Python objects per column, joined into a frame.

    UUIDs and dates stay Python objects (uuid.UUID, datetime.date). Integers become int64, or float64 with nulls.
    Characters of column names other than letters, digits and underscores are replaced.
    """
    return connection.query_dataframe(f"SELECT * FROM {identifier(table)}")


@transport("native columnar fetch", "native columns", requires=["numpy"])
def read_pandas_query_dataframe_numpy(connection, table):
    """Fetch native blocks with query_dataframe and the client setting use_numpy: one numpy array per column.

    Tuned: numbers and dates do not pass through Python objects; strings and UUIDs do. LowCardinality becomes
    categorical, but is refused if it has both nulls and empty strings. The server sends a column of nearly all zeros as
    sparse. Its numbers arrive as int64, uint64 or float64, whatever their size. Characters of column names other than
    letters, digits and underscores are replaced.
    """
    return connection.query_dataframe(f"SELECT * FROM {identifier(table)}", settings={"use_numpy": True})


@transport("native columnar fetch", "columns")
def read_pandas_columnar_lossless(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and keep nulls in numeric columns.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here these columns
    are Arrow (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    data, columns_with_types = connection.execute(
        f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
    )
    columns = zip(columns_with_types, data or [()] * len(columns_with_types), strict=True)
    return pd.DataFrame({name: typed(values, sql_type) for (name, sql_type), values in columns})
