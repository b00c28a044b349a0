"""DuckDB, a table in a database file: https://duckdb.org/docs/stable/clients/python/overview"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


@transport(
    "CREATE TABLE AS",
    "DuckDB",
    frame="pyarrow",
    settings={"durability": "fsync at commit and checkpoint, then of the folder"},
)
def create(store, data):
    """Create a new database file with the rows in one table; closing it checkpoints, then the folder is flushed too.

    DuckDB flushes its file and its log at commit and checkpoint by default. It does not flush the folder, so without
    our flush a power failure can lose the new file's name.
    """
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        connection.register("incoming", data)
        connection.execute("CREATE TABLE benchmark AS SELECT * FROM incoming")
    flush(store)


@transport("SELECT", "DuckDB", frame="pyarrow")
def read(store):
    """Open the database file and fetch the whole table as an Arrow table."""
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        return connection.sql("SELECT * FROM benchmark").to_arrow_table()


@transport("SELECT", "DuckDB", frame="pyarrow")
def query(store):
    """Open the database file and fetch the rows that match WHERE as an Arrow table."""
    import duckdb

    with duckdb.connect(f"{store}/store.duckdb") as connection:
        return connection.sql("SELECT * FROM benchmark WHERE col1 > 100 AND col97 < 1000").to_arrow_table()
