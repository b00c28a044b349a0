"""chDB, the ClickHouse engine in this process, as a client of a server by remote(): https://clickhouse.com/docs/chdb

chDB cannot read or write a running server's files, because an engine locks its data folder. The blocks therefore cross
the native protocol, as between two servers, and the engine in this process reads and builds the frames.
"""

import tempfile
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifiers, literal

ENDPOINT = "clickhouse_native"
# Without prefer_localhost_replica=0 chDB treats a server on 127.0.0.1:9000 as itself and looks for the table there.
INSERT_SETTINGS = {"async_insert": "0", "prefer_localhost_replica": "0"}
ZSTD = INSERT_SETTINGS | {"network_compression_method": "ZSTD"}
LZ4 = INSERT_SETTINGS | {"network_compression_method": "LZ4"}
# By default chDB maps the file into memory, reads up to 4 GiB ahead, and gathers 256 MiB before it sends. Memory would
# grow with the file, faster the slower the server is.
LOAD_SETTINGS = {
    "async_insert": "0",
    "storage_file_read_method": "pread",
    "input_format_parquet_memory_high_watermark": str(32 << 20),
    "min_insert_block_size_bytes": str(32 << 20),
}
# As many rows as the datasets' row groups have. By default chDB gathers a million rows for each row group.
UNLOAD_SETTINGS = {"output_format_parquet_row_group_size": "100000"}


@contextmanager
def connect(uri):
    """Yield an engine session and a function that returns a table's remote(...), after one query through both.

    The engine keeps its connection to the server open. network_compression_method sets the compression (zstd since
    26.9).
    """
    import chdb

    parts = urlsplit(uri)
    secure = parts.scheme == "clickhouses"
    address = f"{parts.hostname}:{parts.port or (9440 if secure else 9000)}"
    user, password = unquote(parts.username or "default"), unquote(parts.password or "")
    own_database = unquote(parts.path[1:]) or "default"

    def source(table, database=own_database):
        arguments = ", ".join(literal(argument) for argument in (address, database, table, user, password))
        return f"{'remoteSecure' if secure else 'remote'}({arguments})"

    session = chdb.connect(":memory:")
    try:
        # Without this, the engine treats a server on its own machine as itself.
        session.query("SET prefer_localhost_replica = 0")
        session.query(f"SELECT * FROM {source('one', 'system')}")
        yield session, source
    finally:
        session.close()


def _as_sql(settings):
    return ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())


def _insert(connection, frame, table, settings):
    """Insert a frame, which chDB finds by the name of this variable."""
    session, remote = connection
    names = identifiers(frame.columns)
    session.query(
        f"INSERT INTO FUNCTION {remote(table)} ({names}) "
        f"SELECT {names} FROM Python(frame) SETTINGS {_as_sql(settings)}",
        "Null",
    )


@transport("INSERT INTO FUNCTION remote(), zstd", "native columns", settings=ZSTD)
def write_polars_remote(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with zstd.

    The engine converts in several threads, where other clients convert in Python, and the server parses nothing. zstd
    is the default between servers since 26.9 (before: lz4), set explicitly here.
    """
    _insert(connection, frame, table, ZSTD)


@transport("INSERT INTO FUNCTION remote(), lz4", "native columns", settings=LZ4)
def write_polars_remote_lz4(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with lz4."""
    _insert(connection, frame, table, LZ4)


@transport("INSERT INTO FUNCTION remote(), zstd", "native columns", settings=ZSTD)
def write_pandas_remote(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with zstd.

    Works like write_polars_remote. chDB turns a NaN in the frame into a null.
    """
    _insert(connection, frame, table, ZSTD)


@transport("INSERT INTO FUNCTION remote(), lz4", "native columns", settings=LZ4)
def write_pandas_remote_lz4(connection, frame, table):
    """Let chDB read the frame in place and insert it into remote(), in native blocks compressed with lz4."""
    _insert(connection, frame, table, LZ4)


@transport("SELECT 1", "one value", origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    session, remote = connection
    return 1 + int(str(session.query(f"SELECT dummy FROM {remote('one', 'system')}", "TSV")))


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


def _through_a_file(connection, table, read, **how):
    """Let chDB write the table into a local Parquet file, and read that with `read(path, **how)`."""
    session, source = connection
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "result.parquet")
        with phase("receive"):
            session.query(f"SELECT * FROM {source(table)} INTO OUTFILE {literal(str(path))} FORMAT Parquet")
        with phase("decode"):
            return read(path, **how)


@transport("native SELECT INTO OUTFILE", "Parquet")
def read_polars_into_outfile(connection, table):
    """Let chDB write the table into a local Parquet file with INTO OUTFILE and read that with polars.

    Only a client with an engine has INTO OUTFILE (clickhouse-client, clickhouse-local, chDB); a server refuses it. A
    UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    return _through_a_file(connection, table, pl.read_parquet, memory_map=False)


@transport("native SELECT INTO OUTFILE", "Parquet", requires=["pyarrow.parquet"])
def read_pandas_into_outfile(connection, table):
    """Let chDB write the table into a local Parquet file with INTO OUTFILE and read that with pandas.

    Only a client with an engine has INTO OUTFILE (clickhouse-client, clickhouse-local, chDB); a server refuses it. The
    columns keep their Arrow types (dtype_backend="pyarrow").
    """
    import pandas as pd

    return _through_a_file(connection, table, pd.read_parquet, dtype_backend="pyarrow")


@transport("INSERT INTO FUNCTION remote() FROM file()", "native columns", settings=LOAD_SETTINGS)
def load_remote(connection, source, table):
    """Let chDB read a Parquet file and insert it into remote(), in native blocks of 32 MiB.

    The engine in this process reads and converts in several threads, with settings that limit its memory. By default it
    maps the file, reads up to 4 GiB ahead and makes blocks of 256 MiB. The server receives the same blocks and stores
    each partition of a block separately. If the load is interrupted, the stored partitions stay.
    """
    from pyarrow import parquet

    session, remote = connection
    names = identifiers(parquet.read_schema(source).names)
    session.query(
        f"INSERT INTO FUNCTION {remote(table)} ({names}) "
        f"SELECT {names} FROM file({literal(source)}, Parquet) SETTINGS {_as_sql(LOAD_SETTINGS)}",
        "Null",
    )


@transport("INSERT INTO FUNCTION file() FROM remote()", "native columns", settings=UNLOAD_SETTINGS)
def unload_remote(connection, table, destination):
    """Let chDB fetch the table by remote() and write it to a Parquet file, with INSERT INTO FUNCTION file().

    The server sends compressed native blocks, and the engine in this process encodes zstd Parquet. A row group has
    100,000 rows, a tenth of the default, which took twice the memory. A UUID is 16 bytes.
    """
    session, remote = connection
    path = literal(f"{destination}/rows.parquet")
    session.query(
        f"INSERT INTO FUNCTION file({path}, Parquet) SELECT * FROM {remote(table)} SETTINGS {_as_sql(UNLOAD_SETTINGS)}",
        "Null",
    )
