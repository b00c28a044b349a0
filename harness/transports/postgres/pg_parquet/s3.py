"""pg_parquet through an S3 server that client and database both reach: https://github.com/CrunchyData/pg_parquet

The database has its own keys and endpoint in its process environment: AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION, and AWS_ALLOW_HTTP=true for an endpoint without TLS.
"""

import io
import uuid
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.postgres.pg_parquet.client import pandas_with_bytes, polars_with_bytes, uuid_columns
from harness.transports.postgres.sql import identifier, identifiers


@contextmanager
def connect(uri, s3):
    """Yield a psycopg connection in autocommit mode, a client of the S3 server that has answered, and the bucket."""
    import boto3
    import psycopg

    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key, "region_name": s3.region}
    client = boto3.client("s3", endpoint_url=s3.endpoint, **keys)
    client.head_bucket(Bucket=s3.bucket)
    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection, client, s3.bucket


@contextmanager
def _object(client, bucket):
    """Yield the key of an object that does not exist yet; remove the object afterwards, even on error."""
    key = f"{uuid.uuid4().hex}.parquet"
    try:
        yield key
    finally:
        client.delete_object(Bucket=bucket, Key=key)


def _load(connection, table, columns, parquet):
    """Put a Parquet file into the bucket and let the server load it; columns match by position."""
    postgres, client, bucket = connection
    names = identifiers(columns)
    with _object(client, bucket) as key:
        client.put_object(Bucket=bucket, Key=key, Body=parquet)
        postgres.execute(f"COPY {identifier(table)} ({names}) FROM 's3://{bucket}/{key}' WITH (FORMAT parquet)")


def _unload(connection, table):
    """Let the server write the table into the bucket and return that file as a buffer."""
    postgres, client, bucket = connection
    with _object(client, bucket) as key:
        postgres.execute(f"COPY (SELECT * FROM {identifier(table)}) TO 's3://{bucket}/{key}' WITH (FORMAT parquet)")
        return io.BytesIO(client.get_object(Bucket=bucket, Key=key)["Body"].read())


@transport("pg_parquet COPY FROM s3", "Parquet", needs=["pg_parquet", "s3"])
def write_polars_parquet_s3(connection, frame, table):
    """Put the frame as one Parquet file into a bucket and let the server load it with COPY ... FROM 's3://...'.

    The server needs its own keys (see the module). uuid strings first become 16 bytes, because pg_parquet takes no
    strings for a uuid. zstd is polars' default codec.
    """
    uuids = uuid_columns(connection[0], table, frame.columns)
    with phase("encode"):
        frame, schema = polars_with_bytes(frame, uuids)
        buffer = io.BytesIO()
        frame.write_parquet(buffer, arrow_schema=schema)
    with phase("send"):
        _load(connection, table, frame.columns, buffer.getvalue())


@transport("pg_parquet COPY FROM s3", "Parquet", requires=["pyarrow.parquet"], needs=["pg_parquet", "s3"])
def write_pandas_parquet_s3(connection, frame, table):
    """Put the frame as one Parquet file into a bucket and let the server load it with COPY ... FROM 's3://...'.

    The server needs its own keys (see the module). uuid strings first become 16 bytes, and the server casts a
    datetime64 column to date. pandas writes with snappy, its default codec, and writes a NaN as a null.
    """
    uuids = uuid_columns(connection[0], table, list(frame.columns))
    with phase("encode"):
        frame = pandas_with_bytes(frame, uuids)
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
    with phase("send"):
        _load(connection, table, frame.columns, buffer.getvalue())


@transport("pg_parquet COPY TO s3", "Parquet", needs=["pg_parquet", "s3"])
def read_polars_parquet_s3(connection, table):
    """Let the server write the table into a bucket with COPY ... TO 's3://...', fetch it and read it with polars.

    The server needs its own keys (see the module). A uuid arrives as 16 bytes (dtype Binary).
    """
    import polars as pl

    with phase("receive"):
        buffer = _unload(connection, table)
    with phase("decode"):
        return pl.read_parquet(buffer)


@transport("pg_parquet COPY TO s3", "Parquet", requires=["pyarrow.parquet"], needs=["pg_parquet", "s3"])
def read_pandas_parquet_s3(connection, table):
    """Let the server write the table into a bucket with COPY ... TO 's3://...', fetch it and read it with pandas.

    The server needs its own keys (see the module). A uuid and a date arrive as Python objects, integers with nulls as
    float64.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        buffer = _unload(connection, table)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(buffer.getbuffer()))
