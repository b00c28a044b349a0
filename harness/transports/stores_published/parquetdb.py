"""ParquetDB, a database of Parquet files on PyArrow: https://parquetdb.readthedocs.io

ParquetDB 1.0.1 catches errors while it writes or reads its files, and does not log them by default. A failed create
returns normally, and a failed read returns an empty table. Only a check of the rows shows the failure. Importing it
writes a configuration file into the user's configuration folder and an empty `parquetdb.log` into the working
directory. It also reads a `.env` file above its own folder into the environment.
"""

import time
from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder):
    """Sleep for a second, then yield the database below the folder, created with an empty file if it does not exist.

    The published benchmark pauses only for ParquetDB, and does not give a reason.
    """
    from parquetdb import ParquetDB

    time.sleep(1)
    yield ParquetDB(db_path=f"{folder}/BenchmarkDB")


@transport(
    "ParquetDB.create",
    "Parquet",
    frame="dicts",
    requires=["pyarrow"],
    settings={"clock": "dicts to Arrow, id column, two writes", "opening": "outside the clock", "durability": "none"},
    published="ParquetDB create",
)
def create(store, data):
    """Pass the list of dicts to an open, empty database.

    ParquetDB turns the list into Arrow in one call (`pyarrow.array`), appends an id column, writes a file, and reads it
    again. It then writes it once more in row groups of 50,000 to 100,000 rows. Nothing flushes the files to disk.
    """
    store.create(data)


@transport(
    "ParquetDB.read",
    "Parquet",
    frame="pyarrow",
    settings={"clock": "discovery, read", "opening": "outside the clock"},
    published="ParquetDB read",
)
def read(store):
    """Read all rows of an open database as one Arrow table, with the id column.

    ParquetDB sorts the columns by name as strings: col0, col1, col10, col11, ...
    """
    return store.read(filters=None)


@transport(
    "ParquetDB.read",
    "Parquet",
    frame="pyarrow",
    settings={"clock": "discovery, filtered read", "opening": "outside the clock"},
    published="ParquetDB query",
)
def query(store):
    """Read the rows of an open database that match two filters as one Arrow table, with the id column.

    ParquetDB combines the filters with "and" and passes them to PyArrow's scanner.
    """
    import pyarrow.compute as pc

    return store.read(filters=[pc.field("col1") > 100, pc.field("col97") < 1000])
