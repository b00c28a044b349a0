"""clickhouse-connect, the official HTTP client, for raw bytes: https://clickhouse.com/docs/integrations/python"""

import io

from harness.registry import phase, transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS, ARROW_UNCOMPRESSED, select
from harness.transports.clickhouse.server import PARQUET_SETTINGS


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_SETTINGS)
def read_polars_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let polars decode it.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with phase("receive"):
        parquet = connection.raw_query(select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_SETTINGS)
def read_pandas_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let pandas decode it.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. The columns keep their Arrow types (dtype_backend="pyarrow"): no value becomes a
    Python object, and nulls stay nulls.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        parquet = connection.raw_query(select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(parquet), dtype_backend="pyarrow")


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_polars_raw_query_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream with raw_query and let polars decode it, without pyarrow.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with phase("receive"):
        arrow = connection.raw_query(select(table), fmt="ArrowStream", settings=ARROW_SETTINGS)
    with phase("decode"):
        return pl.read_ipc_stream(io.BytesIO(arrow))


def _arrow_of_stream(connection, table):
    """Return the table as Arrow, which pyarrow reads from an uncompressed stream while it arrives."""
    import pyarrow as pa

    query = connection.raw_stream(select(table), fmt="ArrowStream", settings=ARROW_UNCOMPRESSED)
    with query as stream, pa.ipc.open_stream(stream) as reader:
        arrow = reader.read_all()
        if stream.read():  # pyarrow stops at the end mark; an error message may follow it
            raise RuntimeError("ClickHouse failed in the middle of its answer")
    return arrow


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_polars_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never all in memory. A UUID arrives as 16 bytes
    (Binary).
    """
    import polars as pl

    return pl.from_arrow(_arrow_of_stream(connection, table))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_pandas_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never all in memory. The columns keep their Arrow
    types (pandas.ArrowDtype).
    """
    import pandas as pd

    return _arrow_of_stream(connection, table).to_pandas(types_mapper=pd.ArrowDtype)
