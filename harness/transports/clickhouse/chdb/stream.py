"""chdb, the ClickHouse engine in this process, between Parquet files and a server: https://clickhouse.com/docs/chdb"""

from harness.registry import transport
from harness.transports.clickhouse.chdb.client import engine_beside
from harness.transports.clickhouse.sql import identifiers, literal

connect = engine_beside

INSERT_SETTINGS = {"async_insert": "0"}


@transport(
    "load",
    path="INSERT INTO FUNCTION remote() FROM file()",
    payload="native columns",
    requires=["chdb", "pyarrow.parquet"],
)
def load_remote(connection, source, table):
    """Let chdb read a Parquet file and insert it into remote(), in native blocks."""
    from pyarrow import parquet

    session, remote = connection
    names = identifiers(parquet.read_schema(source).names)
    session.query(
        f"INSERT INTO FUNCTION {remote(table)} ({names}) SELECT {names} FROM file({literal(source)}, Parquet) "
        "SETTINGS async_insert = 0",
        "Null",
    )


@transport(
    "unload",
    path="INSERT INTO FUNCTION file() FROM remote()",
    payload="native columns",
    requires=["chdb"],
)
def unload_remote(connection, table, destination):
    """Let chdb fetch the table through remote() and write it into a Parquet file of its own."""
    session, remote = connection
    path = literal(f"{destination}/rows.parquet")
    session.query(f"INSERT INTO FUNCTION file({path}, Parquet) SELECT * FROM {remote(table)}", "Null")
