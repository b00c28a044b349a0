"""Polars, a dataframe library with lazy queries: https://docs.pola.rs/api/python/stable/reference/api/polars.scan_parquet.html"""

import os
from contextlib import nullcontext
from datetime import date
from decimal import Decimal

from harness.registry import transport

connect = nullcontext  # the folder, to which this query spills nothing: polars has no connection


def _query(files):
    """Return the lazy frame of one number: the matching rows in all files.

    The filter is TPC-H query 6's: about 1.9 % of lineitem's rows at every scale. Decimals stay decimals. A file given
    twice counts twice, though the optimizer reads it once.
    """
    import polars as pl

    passes = (
        pl.col("l_shipdate") >= date(1994, 1, 1),
        pl.col("l_shipdate") < date(1995, 1, 1),
        pl.col("l_discount") >= Decimal("0.05"),
        pl.col("l_discount") <= Decimal("0.07"),
        pl.col("l_quantity") < Decimal("24"),
    )
    scans = [
        pl.scan_parquet(file, glob=False)  # a path, not a pattern
        .select("l_shipdate", "l_discount", "l_quantity")
        .filter(*passes)
        for file in files
    ]
    return pl.concat(scans).select(pl.len())


@transport("scan_parquet, concat", "Parquet", published="Polars (default)")
def scan(connection, files):
    """Count with a lazy query over scan_parquet, one scan a file combined by concat, with default settings.

    The published benchmark ran on Polars 1, which mapped local Parquet files into memory, and explains its memory
    figures by that. Polars 2 reads the three columns with positional reads
    (https://github.com/pola-rs/polars/pull/29091) and has no setting to map files, so its figures cannot be reproduced.
    Polars 2 uses the streaming engine by default: collect() equals collect(engine="streaming").
    """
    return _query(files).collect().item()


@transport("scan_parquet, concat", "Parquet", settings={"POLARS_FORCE_ASYNC": "1"}, published="Polars (forced async)")
def scan_forced_async(connection, files):
    """Count with the same lazy query under POLARS_FORCE_ASYNC=1: local files go through the object store reader.

    That reader prefetches into memory and merges nearby byte ranges. In row groups of 300,000 rows it also reads the
    three small columns between l_discount and l_shipdate, a third more bytes. In row groups of 4,096 rows it reads more
    than twice as many bytes, and may warn that 512 threads are reading. Polars 2 reads the environment once, when it is
    imported. Loading a configuration, here an empty one, makes it read the environment again.
    """
    import polars as pl

    os.environ["POLARS_FORCE_ASYNC"] = "1"
    pl.Config.load("{}")
    return _query(files).collect().item()


@transport("scan_parquet, concat", "Parquet", settings={"engine": "in-memory"})
def scan_in_memory(connection, files):
    """Count with the same lazy query on the in-memory engine, Polars 1's default.

    The same reader scans and filters, but the matching rows of a file become a frame before they are counted.
    """
    return _query(files).collect(engine="in-memory").item()
