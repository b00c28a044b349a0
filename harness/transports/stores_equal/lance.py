"""Lance, a columnar format for random access, the package pylance: https://lance.org"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


@transport("write_dataset", "Lance", frame="pyarrow", settings={"durability": "fsync of files and folder"})
def create(store, data):
    """Write the table as a new Lance dataset with the defaults and flush it to disk.

    pylance 14.0.2 flushes neither data nor manifest on a local disk, so the transport does.
    """
    import lance

    lance.write_dataset(data, f"{store}/store.lance")
    flush(store)


@transport("to_table", "Lance", frame="pyarrow")
def read(store):
    """Open the dataset and read all of it into one Arrow table."""
    import lance

    return lance.dataset(f"{store}/store.lance").to_table()


@transport("to_table", "Lance", frame="pyarrow")
def query(store):
    """Open the dataset and read the rows that match the filter, which its scanner applies, into one Arrow table."""
    import lance

    return lance.dataset(f"{store}/store.lance").to_table(filter="col1 > 100 AND col97 < 1000")
