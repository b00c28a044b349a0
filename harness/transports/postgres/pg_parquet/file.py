"""pg_parquet, an extension that lets COPY read and write Parquet files: https://github.com/CrunchyData/pg_parquet

If a column's type differs from the table's, version 0.5.1 casts it like Arrow, not like Postgres. It drops the fraction
of a float that goes into an integer, and turns a float too large for real into infinity. It does not support Arrow
dictionaries, which polars and pandas write for categories.
"""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from harness.registry import phase, transport
from harness.transports.postgres.pg_parquet.client import pandas_with_bytes, polars_with_bytes
from harness.transports.postgres.sql import identifier, identifiers, literal
from harness.transports.postgres.tables import sqlalchemy_engine
from harness.transports.sqlalchemy import for_text


@contextmanager
def connect(uri, io):
    """Yield a psycopg 3 engine with one open connection, and the folder shared with the server.

    `io.here` is the folder's path in this process, `io.there` its path on the server. Both must run as the same user
    (or this process as root), because Postgres creates every file with mode 0600.
    """
    with sqlalchemy_engine(uri, "psycopg") as engine:
        yield engine, io


@contextmanager
def _shared_file(io):
    """Yield the path of a new file as seen by this process and by the server; remove it afterwards, even on error.

    The file has its own folder. The server first writes a second file next to it (data.parquet#1) and then renames
    that. Removing the folder removes both, whatever their owner.
    """
    with tempfile.TemporaryDirectory(dir=io.here) as folder:
        os.chmod(folder, 0o777)  # created with 0700, but a server that runs as another user must create its file there
        yield f"{folder}/data.parquet", f"{io.there}/{Path(folder).name}/data.parquet"


def _copy_from(server, table, columns, path):
    """Load a Parquet file that the server sees at `path`; columns match by position."""
    from sqlalchemy import text

    names = identifiers(columns)
    server.execute(text(for_text(f"COPY {identifier(table)} ({names}) FROM {literal(path)} WITH (FORMAT parquet)")))


def _copy_to(connection, table):
    """Let the server write all rows to a new Parquet file, read it with pyarrow and return an Arrow table."""
    import pyarrow.parquet as pq
    from sqlalchemy import text

    engine, io = connection
    with _shared_file(io) as (here, there):
        with phase("receive"), engine.begin() as server:
            query = f"COPY (SELECT * FROM {identifier(table)}) TO {literal(there)} WITH (FORMAT parquet)"
            server.execute(text(for_text(query)))
        try:
            with phase("decode"):
                return pq.read_table(here)
        except PermissionError as error:
            raise PermissionError(
                f"{here}: Postgres made this file for its own user only (mode 0600), and user {os.getuid()} may not "
                "read it; run the harness and the server as one user"
            ) from error


def _uuid_columns(server, table, columns):
    """Ask the server which of the columns are uuid and return their names (one round trip)."""
    from sqlalchemy import text

    query = "SELECT attname FROM pg_attribute WHERE attrelid = CAST(:table AS regclass) AND atttypid = 'uuid'::regtype"
    found = server.execute(text(query), {"table": identifier(table)}).scalars()
    return [name for name in found if name in columns]


@transport(
    "pg_parquet COPY FROM file",
    "Parquet",
    requires=["psycopg"],
    needs=["pg_parquet", "shared_io"],
    published="psycopg pg_parquet COPY FROM file.parquet from Polars dataframe",
)
def write_polars_parquet_file(connection, frame, table):
    """Write the frame to a Parquet file in the shared folder and let the server load it with COPY ... FROM.

    pg_parquet 0.5 takes a uuid only as 16 bytes of fixed length, so the transport first decodes uuid strings, which the
    article does not show. It asks the server which columns are uuid.
    """
    engine, io = connection
    with engine.begin() as server, _shared_file(io) as (here, there):
        uuids = _uuid_columns(server, table, frame.columns)
        frame, schema = polars_with_bytes(frame, uuids)
        with phase("encode"):
            frame.write_parquet(here, arrow_schema=schema)
        os.chmod(here, 0o644)  # regardless of our umask, because the server may run as another user
        with phase("send"):
            _copy_from(server, table, frame.columns, there)


@transport(
    "pg_parquet COPY FROM file",
    "Parquet",
    requires=["pyarrow.parquet", "psycopg"],
    needs=["pg_parquet", "shared_io"],
    published="psycopg pg_parquet COPY FROM file.parquet from Pandas dataframe",
)
def write_pandas_parquet_file(connection, frame, table):
    """Write the frame to a Parquet file in the shared folder and let the server load it with COPY ... FROM.

    pg_parquet 0.5 takes a uuid only as 16 bytes of fixed length, so the transport first decodes uuid strings, which the
    article does not show. It asks the server which columns are uuid. The server casts a datetime64 column to date.
    """
    engine, io = connection
    with engine.begin() as server, _shared_file(io) as (here, there):
        frame = pandas_with_bytes(frame, _uuid_columns(server, table, frame.columns))
        with phase("encode"):
            frame.to_parquet(here, index=False)
        os.chmod(here, 0o644)  # regardless of our umask, because the server may run as another user
        with phase("send"):
            _copy_from(server, table, frame.columns, there)


@transport(
    "pg_parquet COPY TO file",
    "Parquet",
    requires=["pyarrow.dataset", "psycopg"],
    needs=["pg_parquet", "shared_io"],
    published="psycopg pg_parquet COPY TO file.parquet -> Polars dataframe",
)
def read_polars_parquet_file(connection, table):
    """Let the server write a Parquet file to the shared folder with COPY ... TO and read it with pyarrow.

    Columns keep their types, except that a uuid arrives as 16 bytes (polars has no uuid type: Binary).
    """
    import polars as pl

    return pl.from_arrow(_copy_to(connection, table))


@transport(
    "pg_parquet COPY TO file",
    "Parquet",
    requires=["pyarrow.dataset", "psycopg"],
    needs=["pg_parquet", "shared_io"],
    published="psycopg pg_parquet COPY TO file.parquet -> Pandas dataframe",
)
def read_pandas_parquet_file(connection, table):
    """Let the server write a Parquet file to the shared folder with COPY ... TO and read it with pyarrow.

    Integers, floats and strings keep their types. A uuid and a date arrive as Python objects (dtype object).
    """
    return _copy_to(connection, table).to_pandas()
