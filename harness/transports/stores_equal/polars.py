"""Polars, one Parquet file: https://docs.pola.rs/user-guide/io/parquet/"""

from harness.registry import transport
from harness.transports.stores_equal.disk import flush, folder_of_store

connect = folder_of_store


@transport("write_parquet", "Parquet", frame="pyarrow", settings={"durability": "fsync of files and folder"})
def create(store, data):
    """Turn the table into a polars frame, write it as one Parquet file with the defaults (zstd) and flush it to disk.

    Polars leaves flushing to the operating system, so the transport flushes.
    """
    import polars as pl

    pl.DataFrame(data).write_parquet(f"{store}/store.parquet")
    flush(store)


@transport("read_parquet", "Parquet", frame="pyarrow")
def read(store):
    """Read the whole file and return it as an Arrow table."""
    import polars as pl

    return pl.read_parquet(f"{store}/store.parquet", glob=False).to_arrow()


@transport("scan_parquet", "Parquet", frame="pyarrow")
def query(store):
    """Scan the file lazily with the filter pushed into the scan and return the rows as an Arrow table."""
    import polars as pl

    passes = (pl.col("col1") > 100) & (pl.col("col97") < 1000)
    return pl.scan_parquet(f"{store}/store.parquet", glob=False).filter(passes).collect().to_arrow()
