"""ParquetDB, a database of Parquet files on PyArrow: https://parquetdb.readthedocs.io

ParquetDB 1.0.1 catches errors while it writes or reads its files, and by default does not even log them: a create that
failed returns as if it had not, a read that failed returns an empty table. Only looking at the rows tells.
Importing it writes a configuration file into the user's configuration folder and an empty `parquetdb.log` into the
working directory, and reads a `.env` file above its own folder into the environment.
"""

import time
from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder):
    """Sleep for a second, then yield the database below the folder, made with an empty file when there is none.

    The published benchmark gives this pause to ParquetDB only, and does not say why.
    """
    from parquetdb import ParquetDB

    time.sleep(1)
    yield ParquetDB(db_path=f"{folder}/BenchmarkDB")


@transport(
    "create",
    frame="dicts",
    path="ParquetDB.create",
    payload="Parquet",
    requires=["parquetdb", "pyarrow"],
    published="ParquetDB create",
    settings={"clock": "dicts to Arrow, id column, two writes", "opening": "outside the clock", "durability": "none"},
)
def create(store, data):
    """Hand the list of dicts to an open, empty database.

    ParquetDB turns it into Arrow all at once (`pyarrow.array`), appends an id column, writes a file, reads it again and
    writes it once more in row groups of 50,000 to 100,000 rows. Nothing flushes the files to disk.
    """
    store.create(data)


@transport(
    "read",
    frame="pyarrow",
    path="ParquetDB.read",
    payload="Parquet",
    requires=["parquetdb"],
    published="ParquetDB read",
    settings={"clock": "discovery, read", "opening": "outside the clock"},
)
def read(store):
    """Read all rows of an open database as one Arrow table, with the id column.

    ParquetDB keeps the columns in the order of their names as text: col0, col1, col10, col11, ...
    """
    return store.read(filters=None)


@transport(
    "query",
    frame="pyarrow",
    path="ParquetDB.read",
    payload="Parquet",
    requires=["parquetdb", "pyarrow.compute"],
    published="ParquetDB query",
    settings={"clock": "discovery, filtered read", "opening": "outside the clock"},
)
def query(store):
    """Read the rows of an open database that pass two filters as one Arrow table, with the id column.

    ParquetDB joins the filters by "and" and gives them to PyArrow's scanner.
    """
    import pyarrow.compute as pc

    return store.read(filters=[pc.field("col1") > 100, pc.field("col97") < 1000])
