"""chDB, the ClickHouse engine in this process, between Parquet files and a server: https://clickhouse.com/docs/chdb"""

from harness.registry import transport
from harness.transports.clickhouse.sql import identifiers, literal

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


def _as_sql(settings):
    return ", ".join(f"{name} = {literal(value)}" for name, value in settings.items())


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
