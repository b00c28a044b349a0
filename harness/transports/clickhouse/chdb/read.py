"""chDB, the ClickHouse engine in this process, as a client of a server by remote(): https://clickhouse.com/docs/chdb

chDB cannot read a running server's files, because an engine locks its data folder. The blocks therefore come over the
native protocol, as between two servers, and the engine in this process builds the frame.
"""

import tempfile
from pathlib import Path

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import literal


@transport("native SELECT through remote()", "native columns", requires=["pyarrow"])
def read_polars_remote_arrow(connection, table):
    """Let chDB fetch the table through remote() as an Arrow table and hand it to polars.

    The server sends compressed native blocks, which chDB converts to Arrow in this process. A UUID arrives as 16 bytes
    (Binary).
    """
    import polars as pl

    session, source = connection
    return pl.from_arrow(session.query(f"SELECT * FROM {source(table)}", "ArrowTable"))


@transport("native SELECT through remote()", "native columns", requires=["pyarrow"])
def read_pandas_remote_arrow(connection, table):
    """Let chDB fetch the table through remote() as an Arrow table and keep its columns in pandas.

    The server sends compressed native blocks, which chDB converts to Arrow in this process. The columns keep their
    Arrow types (pandas.ArrowDtype).
    """
    import pandas as pd

    session, source = connection
    return session.query(f"SELECT * FROM {source(table)}", "ArrowTable").to_pandas(types_mapper=pd.ArrowDtype)


@transport("native SELECT through remote()", "native columns")
def read_pandas_remote_dataframe(connection, table):
    """Let chDB fetch the table through remote() and build the pandas frame itself.

    The server sends compressed native blocks. UUIDs are Python objects (uuid.UUID), and integers with nulls become
    Int64.
    """
    session, source = connection
    return session.query(f"SELECT * FROM {source(table)}", "DataFrame")


@transport("native SELECT INTO OUTFILE", "Parquet")
def read_polars_into_outfile(connection, table):
    """Let chDB write the table into a local Parquet file with INTO OUTFILE and read that with polars.

    Only a client with an engine has INTO OUTFILE (clickhouse-client, clickhouse-local, chDB); a server refuses it. A
    UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    session, source = connection
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.parquet")
        with phase("receive"):
            session.query(f"SELECT * FROM {source(table)} INTO OUTFILE {literal(str(path))} FORMAT Parquet")
        with phase("decode"):
            return pl.read_parquet(path, memory_map=False)


@transport("native SELECT INTO OUTFILE", "Parquet", requires=["pyarrow.parquet"])
def read_pandas_into_outfile(connection, table):
    """Let chDB write the table into a local Parquet file with INTO OUTFILE and read that with pandas.

    Only a client with an engine has INTO OUTFILE (clickhouse-client, clickhouse-local, chDB); a server refuses it. The
    columns keep their Arrow types (dtype_backend="pyarrow").
    """
    import pandas as pd

    session, source = connection
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.parquet")
        with phase("receive"):
            session.query(f"SELECT * FROM {source(table)} INTO OUTFILE {literal(str(path))} FORMAT Parquet")
        with phase("decode"):
            return pd.read_parquet(path, dtype_backend="pyarrow")
