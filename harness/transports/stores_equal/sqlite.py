"""SQLite through Python's own sqlite3, with its default guarantees: https://www.sqlite.org/pragma.html"""

from contextlib import closing

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


def _fetch(folder, query):
    """Return the rows of a query as an Arrow table of int64 columns."""
    import sqlite3

    import pyarrow as pa

    with closing(sqlite3.connect(f"{folder}/store.sqlite")) as connection:
        cursor = connection.execute(query)
        names = [column[0] for column in cursor.description]
        columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=names)


@transport(
    "executemany",
    "SQLite",
    frame="pyarrow",
    requires=["sqlite3"],
    settings={"journal_mode": "DELETE", "synchronous": "FULL", "durability": "fsync at commit, then of the folder"},
)
def create(store, data):
    """Create a new database and insert the table, turned into tuples inside the timed call, in one transaction.

    The journal and the wait for the disk are SQLite's defaults, set explicitly because a build can change them. After a
    commit SQLite does not flush the folder (that would be synchronous = EXTRA). Without our flush a power failure can
    restore the journal, which removes the rows.
    """
    import sqlite3

    with closing(sqlite3.connect(f"{store}/store.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"CREATE TABLE benchmark ({', '.join(f'{name} INTEGER' for name in data.column_names)})")
        rows = zip(*(column.to_pylist() for column in data.columns), strict=True)
        connection.executemany(f"INSERT INTO benchmark VALUES ({', '.join('?' * data.num_columns)})", rows)
        connection.commit()
    flush(store)


@transport("fetchall", "SQLite", frame="pyarrow", requires=["sqlite3"])
def read(store):
    """Connect, fetch all rows as tuples and turn them into an Arrow table."""
    return _fetch(store, "SELECT * FROM benchmark")


@transport("fetchall", "SQLite", frame="pyarrow", requires=["sqlite3"])
def query(store):
    """Connect, fetch the rows that match WHERE as tuples and turn them into an Arrow table; there is no index."""
    return _fetch(store, "SELECT * FROM benchmark WHERE col1 > 100 AND col97 < 1000")
