"""The server writes Parquet to S3 and the client reads it: https://clickhouse.com/docs/sql-reference/table-functions/s3

The server must reach S3 at the same address as this process. Every call overwrites the same object, which stays in the
bucket until you remove it.
"""

from contextlib import contextmanager
from types import SimpleNamespace

from harness.registry import phase, transport
from harness.transports.clickhouse.httpx.client import accepted, opened
from harness.transports.clickhouse.server import PARQUET_LZ4_SETTINGS, PARQUET_SETTINGS
from harness.transports.clickhouse.sql import identifier, literal

# The server's default codec since 24.3, and the codec that takes both sides less time.
PARQUET_ZSTD = {"s3_truncate_on_insert": "1", **PARQUET_SETTINGS}
PARQUET_LZ4 = {"s3_truncate_on_insert": "1", **PARQUET_LZ4_SETTINGS}


@contextmanager
def connect(uri, s3):
    """Yield a client with one open connection to the server, and the access to S3."""
    # TIMEOUT_SECONDS limits the longest query, because the server sends nothing before its end.
    with opened(uri) as client:
        yield SimpleNamespace(client=client, s3=s3)


def _export(connection, table, settings):
    """Let the server write the table to S3 and return its location as bucket/key."""
    # In hex, because *, ?, {} and % have a meaning in a URL.
    s3, place = connection.s3, f"{connection.s3.bucket}/{table.encode().hex()}.parquet"
    arguments = f"{s3.endpoint}/{place}", s3.access_key, s3.secret_key, "Parquet"
    target = f"s3({', '.join(map(literal, arguments))})"
    query = f"INSERT INTO FUNCTION {target} SELECT * FROM {identifier(table)}"
    accepted(connection.client.post("/", params=settings, content=query))
    return place


def _polars_frame(s3, place):
    import polars as pl

    options = {
        "aws_endpoint_url": s3.endpoint,
        "aws_region": s3.region,
        "aws_access_key_id": s3.access_key,
        "aws_secret_access_key": s3.secret_key,
        "aws_allow_http": "true",
    }
    return pl.read_parquet(f"s3://{place}", storage_options=options)


def _pandas_frame(s3, place):
    import pandas as pd
    from pyarrow.fs import S3FileSystem

    scheme, _, host = s3.endpoint.partition("://")
    keys = {"access_key": s3.access_key, "secret_key": s3.secret_key, "region": s3.region}
    files = S3FileSystem(endpoint_override=host, scheme=scheme, **keys)
    return pd.read_parquet(place, filesystem=files, dtype_backend="pyarrow")


@transport("server writes to S3", "Parquet", needs=["s3"], settings=PARQUET_ZSTD)
def read_polars_s3_parquet(connection, table):
    """Let the server write a zstd Parquet file with INSERT INTO FUNCTION s3(...), and read it with polars.

    The phase "receive" is the server's query and upload. The phase "decode" is the download and the decoding. A UUID
    arrives as 16 bytes (Binary).
    """
    with phase("receive"):
        place = _export(connection, table, PARQUET_ZSTD)
    with phase("decode"):
        return _polars_frame(connection.s3, place)


@transport("server writes to S3", "Parquet", needs=["s3"], settings=PARQUET_LZ4)
def read_polars_s3_parquet_lz4(connection, table):
    """Let the server write an lz4 Parquet file with INSERT INTO FUNCTION s3(...), and read it with polars.

    Tuned: output_format_parquet_compression_method=lz4. The phase "receive" is the server's query and upload. The phase
    "decode" is the download and the decoding. A UUID arrives as 16 bytes (Binary).
    """
    with phase("receive"):
        place = _export(connection, table, PARQUET_LZ4)
    with phase("decode"):
        return _polars_frame(connection.s3, place)


@transport("server writes to S3", "Parquet", requires=["pyarrow.parquet"], needs=["s3"], settings=PARQUET_ZSTD)
def read_pandas_s3_parquet(connection, table):
    """Let the server write a zstd Parquet file with INSERT INTO FUNCTION s3(...), and read it with pandas.

    The phase "receive" is the server's query and upload. The phase "decode" is the download and the decoding. The
    columns keep their Arrow types (dtype_backend="pyarrow"), so nulls stay nulls.
    """
    with phase("receive"):
        place = _export(connection, table, PARQUET_ZSTD)
    with phase("decode"):
        return _pandas_frame(connection.s3, place)


@transport("server writes to S3", "Parquet", requires=["pyarrow.parquet"], needs=["s3"], settings=PARQUET_LZ4)
def read_pandas_s3_parquet_lz4(connection, table):
    """Let the server write an lz4 Parquet file with INSERT INTO FUNCTION s3(...), and read it with pandas.

    Tuned: output_format_parquet_compression_method=lz4. The phase "receive" is the server's query and upload. The phase
    "decode" is the download and the decoding. The columns keep their Arrow types (dtype_backend="pyarrow"), so nulls
    stay nulls.
    """
    with phase("receive"):
        place = _export(connection, table, PARQUET_LZ4)
    with phase("decode"):
        return _pandas_frame(connection.s3, place)
