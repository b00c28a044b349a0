"""SQLite through Python's own sqlite3, set not to wait for the disk: https://www.sqlite.org/pragma.html"""

from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder):
    """Yield the database's path and a list of the connections made to it, which are closed after the timing."""
    opened: list = []
    try:
        yield f"{folder}/benchmark.sqlite", opened
    finally:
        for connection in opened:
            connection.close()


def _open(store):
    """Return a new connection to the database, to be closed later."""
    import sqlite3

    path, opened = store
    opened.append(sqlite3.connect(path))
    return opened[-1]


@transport(
    "executemany",
    "SQLite",
    frame="tuples",
    requires=["sqlite3", "pyarrow"],
    settings={
        "synchronous": "OFF",
        "journal_mode": "MEMORY",
        "clock": "connect, create table, insert, commit",
        "durability": "none",
    },
    published="SQLite create",
)
def create(store, data):
    """Create a table of INTEGER columns in a new database and insert the tuples (at least one) in one transaction.

    With synchronous = OFF nothing is flushed to disk. The journal is in memory, so a crash within the transaction can
    corrupt the file. The time does not include turning the dicts into tuples. For the other stores, turning the dicts
    into Arrow takes most of the time.
    """
    connection = _open(store)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = MEMORY")
    width = len(data[0])
    connection.execute(f"CREATE TABLE benchmark ({', '.join(f'col{number} INTEGER' for number in range(width))})")
    connection.executemany(f"INSERT INTO benchmark VALUES ({', '.join('?' * width)})", data)
    connection.commit()


@transport(
    "fetchall",
    "SQLite",
    frame="tuples",
    requires=["sqlite3"],
    settings={"clock": "connect, fetch as tuples"},
    published="SQLite read",
)
def read(store):
    """Connect and fetch all rows as a list of Python tuples.

    The time includes creating 101 Python objects a row. The other stores return Arrow tables and create none.
    """
    return _open(store).execute("SELECT * FROM benchmark").fetchall()


@transport(
    "fetchall",
    "SQLite",
    frame="tuples",
    requires=["sqlite3"],
    settings={"clock": "connect, fetch as tuples"},
    published="SQLite query",
)
def query(store):
    """Connect and fetch the rows that match the filter as a list of Python tuples; there is no index."""
    return _open(store).execute("SELECT * FROM benchmark WHERE col1 > 100 AND col97 < 1000").fetchall()
