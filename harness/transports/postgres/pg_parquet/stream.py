"""pg_parquet over the connection itself, without a shared folder: https://github.com/CrunchyData/pg_parquet

Version 0.5.1 leaves each intermediate file between the connection and the table on the server's disk. The files are in
the folder base/pgsql_tmp/base/pgsql_tmp of its data, and a restart does not remove them either.
"""

import io
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.postgres.pg_parquet.client import pandas_with_bytes, polars_with_bytes, uuid_bytes, uuid_columns
from harness.transports.postgres.sql import identifier, identifiers


@contextmanager
def connect(uri):
    """Yield one psycopg connection in autocommit mode on which the server has already written a Parquet file.

    pg_parquet 0.5.1 creates the folder of its temporary files only when it writes. Until a server has written once
    since its start, it refuses COPY FROM STDIN.
    """
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        _copy_to_stdout(connection, "SELECT 1")
        yield connection


def _copy_to_stdout(connection, query):
    """Return the Parquet file that COPY ... TO STDOUT sends for a query, as a buffer at its start."""
    buffer = io.BytesIO()
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT WITH (FORMAT parquet)") as copy:
        while chunk := copy.read():
            buffer.write(chunk)
    buffer.seek(0)
    return buffer


def _copy_from_stdin(connection, table, columns, parquet):
    """Send a Parquet file into COPY ... FROM STDIN; columns match by position."""
    names = identifiers(columns)
    with connection.cursor().copy(f"COPY {identifier(table)} ({names}) FROM STDIN WITH (FORMAT parquet)") as copy:
        copy.write(parquet)


@transport("pg_parquet COPY FROM STDIN", "Parquet", needs=["pg_parquet"])
def write_polars_parquet_stream(connection, frame, table):
    """Send the frame as one Parquet file into COPY ... FROM STDIN (FORMAT parquet).

    The server keeps the file on its disk while it reads it. pg_parquet takes a uuid only as 16 bytes of fixed length,
    so the transport asks which columns are uuid and first decodes their strings. zstd is polars' default codec.
    """
    uuids = uuid_columns(connection, table, frame.columns)
    with phase("encode"):
        frame, schema = polars_with_bytes(frame, uuids)
        buffer = io.BytesIO()
        frame.write_parquet(buffer, arrow_schema=schema)
    with phase("send"):
        _copy_from_stdin(connection, table, frame.columns, buffer.getbuffer())


@transport("pg_parquet COPY FROM STDIN", "Parquet", requires=["pyarrow.parquet"], needs=["pg_parquet"])
def write_pandas_parquet_stream(connection, frame, table):
    """Send the frame as one Parquet file into COPY ... FROM STDIN (FORMAT parquet).

    The server keeps the file on its disk while it reads it. uuid strings first become 16 bytes, and the server casts a
    datetime64 column to date. pandas writes with snappy, its default codec, and writes a NaN as a null.
    """
    uuids = uuid_columns(connection, table, list(frame.columns))
    with phase("encode"):
        frame = pandas_with_bytes(frame, uuids)
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
    with phase("send"):
        _copy_from_stdin(connection, table, frame.columns, buffer.getbuffer())


@transport("pg_parquet COPY TO STDOUT", "Parquet", needs=["pg_parquet"])
def read_polars_parquet_stream(connection, table):
    """Let the server send the table as one Parquet file with COPY ... TO STDOUT and read it with polars.

    snappy and row groups of 122,880 rows are pg_parquet's defaults. A uuid arrives as 16 bytes (dtype Binary).
    """
    import polars as pl

    with phase("receive"):
        buffer = _copy_to_stdout(connection, f"SELECT * FROM {identifier(table)}")
    with phase("decode"):
        return pl.read_parquet(buffer)


@transport("pg_parquet COPY TO STDOUT", "Parquet", requires=["pyarrow.parquet"], needs=["pg_parquet"])
def read_pandas_parquet_stream(connection, table):
    """Let the server send the table as one Parquet file with COPY ... TO STDOUT and read it with pandas.

    snappy and row groups of 122,880 rows are pg_parquet's defaults. A uuid and a date arrive as Python objects,
    integers with nulls as float64.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        buffer = _copy_to_stdout(connection, f"SELECT * FROM {identifier(table)}")
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(buffer.getbuffer()))


@transport("pg_parquet COPY FROM STDIN", "Parquet", needs=["pg_parquet"])
def write_pandas_parquet_stream_lossless(connection, frame, table):
    """Send the frame as one Parquet file, written by pyarrow to keep NaN, into COPY ... FROM STDIN.

    The file has no Arrow schema, so categories are strings in it, which pg_parquet accepts. Otherwise like
    write_pandas_parquet_stream.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    uuids = uuid_columns(connection, table, list(frame.columns))
    with phase("encode"):
        columns = {
            name: values.to_numpy() if values.dtype in ("float64", "float32") else values
            for name, values in frame.items()
        }
        for name in uuids:
            columns[name] = uuid_bytes(frame[name])
        buffer = io.BytesIO()
        arrow = pa.table({name: pa.array(values) for name, values in columns.items()})
        pq.write_table(arrow, buffer, store_schema=False)
    with phase("send"):
        _copy_from_stdin(connection, table, frame.columns, buffer.getbuffer())


@transport("pg_parquet COPY TO STDOUT", "Parquet", needs=["pg_parquet"])
def read_pandas_parquet_stream_lossless(connection, table):
    """Let the server send the table as one Parquet file and read it with pyarrow, integers with nulls as Int64.

    Otherwise like read_pandas_parquet_stream.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    with phase("receive"):
        buffer = _copy_to_stdout(connection, f"SELECT * FROM {identifier(table)}")
    with phase("decode"):
        arrow = pq.read_table(pa.BufferReader(buffer.getbuffer()))
        nullable = {"int16": pd.Int16Dtype(), "int32": pd.Int32Dtype(), "int64": pd.Int64Dtype()}
        columns = {}
        for name, values in zip(arrow.column_names, arrow.columns, strict=True):
            dtype = nullable.get(str(values.type)) if values.null_count else None
            columns[name] = values.to_pandas(types_mapper={values.type: dtype}.get)
        return pd.DataFrame(columns)
