"""ParquetDB, a database of Parquet files on PyArrow: https://parquetdb.readthedocs.io

ParquetDB 1.0.1 catches errors while it writes or reads its files, and does not log them by default. A failed create
returns normally, and a failed read returns an empty table. Only a check of the rows shows the failure. A table without
rows is refused. Importing it writes a configuration file into the user's configuration folder and an empty
`parquetdb.log` into the working directory. It also reads a `.env` file above its own folder into the environment.
"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


def _open(folder):
    """Return the database below the folder, created with an empty file if it does not exist."""
    from parquetdb import ParquetDB

    return ParquetDB(db_path=f"{folder}/ParquetDB")


@transport("ParquetDB.create", "Parquet", frame="pyarrow", settings={"durability": "fsync of files and folder"})
def create(store, data):
    """Create a new database, pass it the Arrow table and flush it to disk.

    ParquetDB appends an id column, writes a file with PyArrow's defaults, and reads it again. It then writes it once
    more in row groups of 50,000 to 100,000 rows. It leaves flushing to the operating system, so the transport flushes.
    """
    _open(store).create(data)
    flush(store)


@transport("ParquetDB.read", "Parquet", frame="pyarrow")
def read(store):
    """Open the database and read all rows as one Arrow table, with the id column.

    ParquetDB sorts the columns by name as strings: col0, col1, col10, col11, ...
    """
    return _open(store).read()


@transport("ParquetDB.read", "Parquet", frame="pyarrow")
def query(store):
    """Open the database and read the rows that match the filters as one Arrow table, with the id column."""
    import pyarrow.compute as pc

    return _open(store).read(filters=[pc.field("col1") > 100, pc.field("col97") < 1000])
