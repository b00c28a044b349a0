"""clickhouse-driver, the native protocol: Arrow and DataFrame results: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_driver.client import opened
from harness.transports.clickhouse.columns import typed
from harness.transports.clickhouse.sql import identifier


def connect(uri):
    """Open an uncompressed connection."""
    return opened(uri)


# Names that query_dataframe does not leave as they are.
RENAMED = (
    "name_double_quote name_backtick name_single_quote name_quoted name_statement name_backtick_statement "
    "name_backslash name_percent name_parameter name_space name_line name_unicode name_mark name_dot name_pattern"
)


@transport(
    "read",
    frame="polars",
    path="native fetch as Arrow",
    payload="native columns",
    requires=["clickhouse_driver", "numpy", "polars", "pyarrow"],
    lossy={"changed": "timestamps timestamps_tz padded_text", "refused": "nested json"},
)
def read_polars_query_arrow(connection, table):
    """Fetch native blocks with query_arrow, which makes Arrow columns of them, and hand them to polars.

    No Python object per value, but for UUIDs, which come as text. Needs clickhouse-driver 0.2.11.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(f"SELECT * FROM {identifier(table)}"))


@transport(
    "read",
    frame="pandas",
    path="native fetch as Arrow",
    payload="native columns",
    requires=["clickhouse_driver", "numpy", "pandas", "pyarrow"],
    lossy={"changed": "timestamps timestamps_tz padded_text", "refused": "nested json"},
)
def read_pandas_query_arrow(connection, table):
    """Fetch native blocks with query_arrow, which makes Arrow columns of them, and keep these in pandas.

    No Python object per value, but for UUIDs, which come as text. The columns stay what they are in Arrow
    (pandas.ArrowDtype). Needs clickhouse-driver 0.2.11.
    """
    import pandas as pd

    return connection.query_arrow(f"SELECT * FROM {identifier(table)}").to_pandas(types_mapper=pd.ArrowDtype)


@transport(
    "read",
    frame="polars",
    path="native fetch as Arrow",
    payload="native columns",
    requires=["clickhouse_driver", "numpy", "polars", "pyarrow"],
    lossy={"changed": "timestamps timestamps_tz padded_text", "refused": "nested json"},
)
def read_polars_query_arrow_stream(connection, table):
    """Fetch native blocks as a stream of Arrow batches with query_arrow_stream and let polars take them one by one.

    Each block is handed over while the next ones are on their way. UUIDs come as text. Needs clickhouse-driver 0.2.11.
    """
    import polars as pl

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}") as reader:
        return pl.DataFrame(reader)


@transport(
    "read",
    frame="pandas",
    path="native fetch as Arrow",
    payload="native columns",
    requires=["clickhouse_driver", "numpy", "pandas", "pyarrow"],
    lossy={"changed": "timestamps timestamps_tz padded_text", "refused": "nested json"},
)
def read_pandas_query_arrow_stream(connection, table):
    """Fetch native blocks as a stream of Arrow batches with query_arrow_stream and put frames of them together.

    Each block becomes a frame of Arrow columns (pandas.ArrowDtype) while the next ones are on their way. UUIDs come as
    text. Needs clickhouse-driver 0.2.11.
    """
    import pandas as pd

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}") as reader:
        frames = [batch.to_pandas(types_mapper=pd.ArrowDtype) for batch in reader]
        return pd.concat(
            frames or [reader.schema.empty_table().to_pandas(types_mapper=pd.ArrowDtype)], ignore_index=True
        )


@transport(
    "read",
    frame="pandas",
    path="native columnar fetch",
    payload="columns",
    requires=["clickhouse_driver", "numpy", "pandas"],
    lossy={"changed": f"int64_beside_null timestamps timestamps_tz padded_text {RENAMED}"},
)
def read_pandas_query_dataframe(connection, table):
    """Fetch native blocks with query_dataframe: one sequence of Python objects per column, and a frame of them.

    UUIDs and dates stay Python objects (uuid.UUID, datetime.date); integers become int64, with nulls float64.
    Characters of column names that are no letter, digit or underscore are replaced.
    """
    return connection.query_dataframe(f"SELECT * FROM {identifier(table)}")


@transport(
    "read",
    frame="pandas",
    path="native columnar fetch",
    payload="native columns",
    requires=["clickhouse_driver", "numpy", "pandas"],
    lossy={
        "changed": "null_instant nul_character int64_beside_null timestamps timestamps_tz nested padded_text "
        "name_double_quote name_backtick name_single_quote name_quoted name_statement "
        "name_backtick_statement name_backslash name_percent name_parameter name_space name_line "
        "name_unicode name_mark name_dot name_pattern timestamps_elsewhere timestamps_tz_elsewhere",
    },
)
def read_pandas_query_dataframe_numpy(connection, table):
    """Fetch native blocks with query_dataframe and the client setting use_numpy: one numpy array per column.

    Tuned: numbers and dates are no Python objects on their way; texts and UUIDs are. LowCardinality becomes
    categorical, with nulls beside empty texts it is refused. Numbers of a sparse column (nearly all are 0, which a
    server sends so) come as int64, uint64 or float64 whatever their size. Characters of column names that are no
    letter, digit or underscore are replaced.
    """
    return connection.query_dataframe(f"SELECT * FROM {identifier(table)}", settings={"use_numpy": True})


@transport(
    "read",
    frame="pandas",
    path="native columnar fetch",
    payload="columns",
    requires=["clickhouse_driver", "pandas", "pyarrow"],
    lossy={"changed": "timestamps timestamps_tz padded_text"},
)
def read_pandas_columnar_lossless(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and keep nulls among numbers: nothing is lost.

    The published read makes float64 of integers with nulls and NaN of a null among floats; here these columns are Arrow
    (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    data, columns_with_types = connection.execute(
        f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
    )
    columns = zip(columns_with_types, data or [()] * len(columns_with_types), strict=True)
    return pd.DataFrame({name: typed(values, sql_type) for (name, sql_type), values in columns})
