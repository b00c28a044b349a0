"""clickhouse-connect with its codec in Rust: https://clickhouse.com/docs/integrations/python

`native_codec="rust"` encodes and decodes Native blocks in compiled code. The client falls back to its Python codec for
what the Rust codec does not support.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_connect.client import arguments, select
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


@contextmanager
def connect(uri):
    """Yield a client with an open connection, as by default except for the codec."""
    import clickhouse_connect

    with clickhouse_connect.get_client(**arguments(uri), native_codec="rust") as client:
        yield client


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Native",
    payload="native columns",
    requires=["_ch_core", "clickhouse_connect", "numpy", "pandas"],
    lossy={"changed": "zero_rows arrays"},
)
def read_pandas_query_df_rust(connection, table):
    """Fetch Native blocks with query_df, which the codec in Rust decodes; all else as read_pandas_query_df."""
    return connection.query_df(select(table))


@transport(
    "write",
    frame="pandas",
    path="insert_df, lz4",
    payload="native columns",
    requires=["_ch_core", "clickhouse_connect", "lz4.frame", "numpy", "pandas"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nan fraction_into_int32 float64_beyond_float32 float32_nan",
        "refused": "int32_into_text text_into_int32 text_into_date boolean_into_int32 timestamp_into_int64 name_quoted",
    },
)
def write_pandas_df_rust(connection, frame, table):
    """Send the frame with insert_df, whose Native blocks the codec in Rust encodes.

    A NaN becomes a null in a Nullable column, and a float beyond a Float32 becomes infinity.
    """
    connection.insert_df(identifier(table), frame, settings=INSERT_SETTINGS)
