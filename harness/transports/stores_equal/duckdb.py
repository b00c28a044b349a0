"""DuckDB, a table in a database file: https://duckdb.org/docs/stable/clients/python/overview"""

import os
from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder):
    """Yield the folder: every operation opens the store itself, inside the clock."""
    yield folder


def _flush(folder):
    """Force every file below the folder to disk, and the folders' own entries."""
    for directory, _, names in os.walk(folder):
        for name in (".", *names):
            descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


@transport(
    "create",
    frame="pyarrow",
    path="CREATE TABLE AS",
    payload="DuckDB",
    requires=["duckdb", "pyarrow"],
    settings={"durability": "fsync at commit and checkpoint, then of the folder"},
)
def create(store, data):
    """Make a new database file with the rows in one table; closing it checkpoints, then the folder is flushed too.

    DuckDB flushes its file and its log at commit and checkpoint by default. It does not flush the folder: without our
    flush the new file's name can be lost with the power.
    """
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        connection.register("incoming", data)
        connection.execute("CREATE TABLE benchmark AS SELECT * FROM incoming")
    _flush(store)


@transport(
    "read",
    frame="pyarrow",
    path="SELECT",
    payload="DuckDB",
    requires=["duckdb", "pyarrow"],
)
def read(store):
    """Open the database file and fetch the whole table as an Arrow table."""
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        return connection.sql("SELECT * FROM benchmark").to_arrow_table()


@transport(
    "query",
    frame="pyarrow",
    path="SELECT",
    payload="DuckDB",
    requires=["duckdb", "pyarrow"],
)
def query(store):
    """Open the database file and fetch the rows that pass WHERE as an Arrow table."""
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        return connection.sql("SELECT * FROM benchmark WHERE col1 > 100 AND col97 < 1000").to_arrow_table()
