"""PyArrow, one Parquet file in a folder: https://arrow.apache.org/docs/python/parquet.html"""

from contextlib import nullcontext

from harness.registry import transport

connect = nullcontext  # the folder: PyArrow keeps nothing open, so every operation starts from it


@transport(
    "write_table",
    "Parquet",
    frame="dicts",
    settings={"clock": "dicts to Arrow, id column, write", "durability": "none"},
    published="PyArrow create",
)
def create(store, data):
    """Turn the list of dicts into a table, put an id column before it and write one Parquet file.

    More than half of the time goes into `Table.from_pylist`, which iterates over all rows in Python once for every
    column. The rest goes into the ids, counted in Python, and the file. Nothing flushes it to disk.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(data)
    pq.write_table(table.add_column(0, "id", [range(len(data))]), f"{store}/0.parquet")


@transport("dataset", "Parquet", frame="pyarrow", settings={"clock": "discovery, read"}, published="PyArrow read")
def read(store):
    """Discover the folder as a dataset and read all of it into one Arrow table, with the id column."""
    import pyarrow.dataset as ds

    return ds.dataset(store, format="parquet").to_table()


@transport(
    "dataset", "Parquet", frame="pyarrow", settings={"clock": "discovery, filtered read"}, published="PyArrow query"
)
def query(store):
    """Discover the folder as a dataset and read the rows that match the filter, with the id column.

    The scanner filters the rows while it reads them. Row group statistics, by which it could skip a group, help only at
    small sizes: every large group has matching values.
    """
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    passes = (pc.field("col1") > 100) & (pc.field("col97") < 1000)
    return ds.dataset(store, format="parquet").to_table(filter=passes)
