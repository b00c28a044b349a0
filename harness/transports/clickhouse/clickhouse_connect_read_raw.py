"""clickhouse-connect, the official HTTP client, for raw bytes: https://clickhouse.com/docs/integrations/python"""

import io
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier

CLIENT = "clickhouse_connect"
ENDPOINT = "clickhouse_http"

# The server's defaults since 24.3, written down because they were different before (lz4, Binary) and may be again.
PARQUET_SETTINGS = {
    "output_format_parquet_compression_method": "zstd",
    "output_format_parquet_string_as_string": "1",
}
ARROW_SETTINGS = {"output_format_arrow_compression_method": "lz4_frame"}
ARROW_UNCOMPRESSED = {"output_format_arrow_compression_method": "none"}


@contextmanager
def connect(uri):
    """Yield a client with an open connection; it reads the server's version and settings before anything else.

    All is as the client chooses by itself: it makes a session, and asks for answers in every compression it knows.
    """
    import clickhouse_connect

    parts = urlsplit(uri)
    with clickhouse_connect.get_client(
        interface=parts.scheme,
        host=parts.hostname,
        port=parts.port,
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        **dict(parse_qsl(parts.query)),
    ) as client:
        yield client


def _select(table):
    return f"SELECT * FROM {identifier(table)}"


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["clickhouse_connect", "polars"],
    settings=PARQUET_SETTINGS,
)
def read_polars_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let polars decode it.

    The client tells the server to hold the whole answer back until the query has ended (wait_end_of_query=1) and asks
    for no HTTP compression. A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    with phase("receive"):
        parquet = connection.raw_query(_select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["clickhouse_connect", "pandas", "pyarrow.parquet"],
    settings=PARQUET_SETTINGS,
)
def read_pandas_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let pandas decode it.

    The client tells the server to hold the whole answer back until the query has ended (wait_end_of_query=1) and asks
    for no HTTP compression. The columns stay what they are in Arrow (dtype_backend="pyarrow"), so that no value becomes
    a Python object and nulls stay nulls.
    """
    import pandas as pd

    with phase("receive"):
        parquet = connection.raw_query(_select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pd.read_parquet(io.BytesIO(parquet), dtype_backend="pyarrow")


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "polars"],
    settings=ARROW_SETTINGS,
    lossy={"changed": "enum"},
)
def read_polars_raw_query_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream with raw_query and let polars decode it, without pyarrow.

    The client tells the server to hold the whole answer back until the query has ended (wait_end_of_query=1) and asks
    for no HTTP compression. A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    with phase("receive"):
        arrow = connection.raw_query(_select(table), fmt="ArrowStream", settings=ARROW_SETTINGS)
    with phase("decode"):
        return pl.read_ipc_stream(io.BytesIO(arrow))


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "polars", "pyarrow"],
    settings=ARROW_UNCOMPRESSED,
    lossy={"changed": "enum"},
)
def read_polars_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never held as a whole. A UUID arrives as 16 bytes
    of Binary.
    """
    import polars as pl
    import pyarrow as pa

    query = connection.raw_stream(_select(table), fmt="ArrowStream", settings=ARROW_UNCOMPRESSED)
    with query as stream, pa.ipc.open_stream(stream) as reader:
        arrow = reader.read_all()
        if stream.read():  # pyarrow stops at its end mark; that the server has broken the answer off stands behind it
            raise RuntimeError("ClickHouse failed in the middle of its answer")
    return pl.from_arrow(arrow)


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "pandas", "pyarrow"],
    settings=ARROW_UNCOMPRESSED,
    lossy={"changed": "enum"},
)
def read_pandas_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never held as a whole. The columns stay what they
    are in Arrow (pandas.ArrowDtype).
    """
    import pandas as pd
    import pyarrow as pa

    query = connection.raw_stream(_select(table), fmt="ArrowStream", settings=ARROW_UNCOMPRESSED)
    with query as stream, pa.ipc.open_stream(stream) as reader:
        arrow = reader.read_all()
        if stream.read():  # pyarrow stops at its end mark; that the server has broken the answer off stands behind it
            raise RuntimeError("ClickHouse failed in the middle of its answer")
    return arrow.to_pandas(types_mapper=pd.ArrowDtype)
