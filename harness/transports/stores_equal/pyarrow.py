"""PyArrow, one Parquet file: https://arrow.apache.org/docs/python/parquet.html"""

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
    path="write_table",
    payload="Parquet",
    requires=["pyarrow", "pyarrow.parquet"],
    settings={"durability": "fsync of files and folder"},
)
def create(store, data):
    """Write the table as one Parquet file with the defaults (snappy, row groups of 2**20 rows) and flush it to disk.

    PyArrow itself leaves the file to the operating system; the flush is ours.
    """
    import pyarrow.parquet as pq

    pq.write_table(data, f"{store}/store.parquet")
    _flush(store)


@transport(
    "read",
    frame="pyarrow",
    path="read_table",
    payload="Parquet",
    requires=["pyarrow", "pyarrow.parquet"],
)
def read(store):
    """Read the whole file into one Arrow table."""
    import pyarrow.parquet as pq

    return pq.read_table(f"{store}/store.parquet")


@transport(
    "query",
    frame="pyarrow",
    path="read_table",
    payload="Parquet",
    requires=["pyarrow", "pyarrow.compute", "pyarrow.parquet"],
)
def query(store):
    """Read the rows that pass the filter, which PyArrow's scanner applies while it reads."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    passes = (pc.field("col1") > 100) & (pc.field("col97") < 1000)
    return pq.read_table(f"{store}/store.parquet", filters=passes)
