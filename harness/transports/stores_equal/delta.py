"""Delta Lake without Spark, the package deltalake (delta-rs): https://delta-io.github.io/delta-rs/

deltalake 1.6.6 reads a path as a URL: it refuses a folder name with a square bracket or a sequence such as %20.
"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


@transport("write_deltalake", "Delta Lake", frame="pyarrow", settings={"durability": "fsync of files and folder"})
def create(store, data):
    """Write the table as a new Delta table with the defaults (Parquet with snappy) and flush it to disk.

    deltalake 1.6.6 flushes neither data nor log on a local disk, so the transport does.
    """
    from deltalake import write_deltalake

    write_deltalake(store, data)
    flush(store)


@transport("DeltaTable.scan", "Delta Lake", frame="pyarrow")
def read(store):
    """Open the table and read all of it with its own engine (DataFusion) into an Arrow table.

    The order of the rows is not guaranteed.
    """
    import pyarrow as pa
    from deltalake import DeltaTable

    return pa.table(DeltaTable(store).scan())


@transport("DeltaTable.scan", "Delta Lake", frame="pyarrow")
def query(store):
    """Open the table and read the rows that match the predicate with its engine (DataFusion) into an Arrow table."""
    import pyarrow as pa
    from deltalake import DeltaTable

    return pa.table(DeltaTable(store).scan(predicate="col1 > 100 AND col97 < 1000"))
