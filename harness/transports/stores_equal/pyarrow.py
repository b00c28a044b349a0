"""PyArrow, one Parquet file: https://arrow.apache.org/docs/python/parquet.html"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


@transport("write_table", "Parquet", frame="pyarrow", settings={"durability": "fsync of files and folder"})
def create(store, data):
    """Write the table as one Parquet file with the defaults (snappy, row groups of 2**20 rows) and flush it to disk.

    PyArrow leaves flushing to the operating system, so the transport flushes.
    """
    import pyarrow.parquet as pq

    pq.write_table(data, f"{store}/store.parquet")
    flush(store)


@transport("read_table", "Parquet", frame="pyarrow")
def read(store):
    """Read the whole file into one Arrow table."""
    import pyarrow.parquet as pq

    return pq.read_table(f"{store}/store.parquet")


@transport("read_table", "Parquet", frame="pyarrow")
def query(store):
    """Read the rows that match the filter, which PyArrow's scanner applies while it reads."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    passes = (pc.field("col1") > 100) & (pc.field("col97") < 1000)
    return pq.read_table(f"{store}/store.parquet", filters=passes)
