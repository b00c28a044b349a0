"""chdb, the ClickHouse engine in this process, between Parquet files and a server: https://clickhouse.com/docs/chdb"""

from harness.registry import transport
from harness.transports.clickhouse.chdb.client import engine_beside
from harness.transports.clickhouse.sql import identifiers, literal

connect = engine_beside

# By default chdb maps the file into its memory, reads ahead up to 4 GiB of it, and gathers 256 MiB before it sends: the
# memory would grow with the file, and the faster so the slower the server is.
LOAD_SETTINGS = {
    "async_insert": "0",
    "storage_file_read_method": "pread",
    "input_format_parquet_memory_high_watermark": str(32 << 20),
    "min_insert_block_size_bytes": str(32 << 20),
}
# As many as the datasets have; by default a million rows are gathered for each row group.
UNLOAD_SETTINGS = {"output_format_parquet_row_group_size": "100000"}


def _as_sql(settings):
    return ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())


@transport(
    "load",
    path="INSERT INTO FUNCTION remote() FROM file()",
    payload="native columns",
    requires=["chdb", "pyarrow.parquet"],
    settings=LOAD_SETTINGS,
)
def load_remote(connection, source, table):
    """Let chdb read a Parquet file and insert it into remote(), in native blocks of 32 MiB.

    The engine in this process reads and converts in several threads. It is set to hold little: by default it maps the
    file, reads up to 4 GiB of it ahead and makes blocks of 256 MiB. The size of the blocks is also the server's, which
    stores each partition of each by itself: those stay when it is ended half way.
    """
    from pyarrow import parquet

    session, remote = connection
    names = identifiers(parquet.read_schema(source).names)
    session.query(
        f"INSERT INTO FUNCTION {remote(table)} ({names}) "
        f"SELECT {names} FROM file({literal(source)}, Parquet) SETTINGS {_as_sql(LOAD_SETTINGS)}",
        "Null",
    )


@transport(
    "unload",
    path="INSERT INTO FUNCTION file() FROM remote()",
    payload="native columns",
    requires=["chdb"],
    settings=UNLOAD_SETTINGS,
)
def unload_remote(connection, table, destination):
    """Let chdb fetch the table through remote() and write it into a Parquet file, with INSERT INTO FUNCTION file().

    The server sends compressed native blocks, the engine in this process encodes Parquet of them, in zstd. A row group
    has 100,000 rows here, ten times fewer than by default, which took twice the memory. A UUID is 16 bytes.
    """
    session, remote = connection
    path = literal(f"{destination}/rows.parquet")
    session.query(
        f"INSERT INTO FUNCTION file({path}, Parquet) SELECT * FROM {remote(table)} SETTINGS {_as_sql(UNLOAD_SETTINGS)}",
        "Null",
    )
