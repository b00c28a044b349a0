"""clickhouse-connect with its codec in Rust: https://clickhouse.com/docs/integrations/python

`native_codec="rust"` encodes and decodes Native blocks in compiled code. The client falls back to its Python codec for
types that the Rust codec does not support.
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


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["_ch_core", "numpy"])
def read_pandas_query_df_rust(connection, table):
    """Fetch Native blocks with query_df, which the codec in Rust decodes; all else as read_pandas_query_df."""
    return connection.query_df(select(table))


@transport("insert_df, lz4", "native columns", requires=["_ch_core", "lz4.frame", "numpy"], settings=INSERT_SETTINGS)
def write_pandas_df_rust(connection, frame, table):
    """Send the frame with insert_df, whose Native blocks the codec in Rust encodes.

    A NaN becomes a null in a Nullable column, and a float beyond a Float32 becomes infinity.
    """
    connection.insert_df(identifier(table), frame, settings=INSERT_SETTINGS)
