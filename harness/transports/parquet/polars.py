"""Polars, a dataframe library with lazy queries: https://docs.pola.rs/api/python/stable/reference/api/polars.scan_parquet.html"""

import os
from contextlib import contextmanager
from datetime import date
from decimal import Decimal

from harness.registry import transport


@contextmanager
def connect(folder):
    """Yield None: polars has no connection, and this query nothing that it would spill to the folder."""
    yield None


def _query(files):
    """Return the lazy frame of one number: how many rows of all files pass.

    The filter is that of TPC-H query 6: about 1.9 % of the rows of lineitem at every scale. Decimals stay decimals. A
    file given twice counts twice, though the optimizer reads it once.
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


@transport("scan", path="scan_parquet, concat", payload="Parquet", requires=["polars"], published="Polars (default)")
def scan(connection, files):
    """Count with a lazy query over scan_parquet, one scan a file put together by concat, all settings as they come.

    The published benchmark ran on Polars 1, which mapped local Parquet files into memory. Polars 2 no longer does: it
    reads the three columns with positional reads (https://github.com/pola-rs/polars/pull/29091) and has no setting to
    map them again, so the memory the article explains by mapping is not there to be found. The default engine of
    Polars 2 is the streaming one: collect() does the same as collect(engine="streaming").
    """
    return _query(files).collect().item()


@transport(
    "scan",
    path="scan_parquet, concat",
    payload="Parquet",
    requires=["polars"],
    settings={"POLARS_FORCE_ASYNC": "1"},
    published="Polars (forced async)",
)
def scan_forced_async(connection, files):
    """Count with the same lazy query under POLARS_FORCE_ASYNC=1: local files go through the reader for object stores.

    That reader fetches ahead into memory and merges byte ranges that lie close together: in row groups of 300,000 rows
    it also reads the three small columns between l_discount and l_shipdate, a third more bytes; in row groups of 4,096
    more than twice as many, and it may warn that 512 threads are reading. Polars 2 looks at the environment once, when
    it is imported; loading a configuration, here an empty one, makes it look again.
    """
    import polars as pl

    os.environ["POLARS_FORCE_ASYNC"] = "1"
    pl.Config.load("{}")
    return _query(files).collect().item()


@transport(
    "scan",
    path="scan_parquet, concat",
    payload="Parquet",
    requires=["polars"],
    settings={"engine": "in-memory"},
)
def scan_in_memory(connection, files):
    """Count with the same lazy query on the in-memory engine, which was the default of Polars 1.

    The same reader scans and filters; but the rows of a file that pass become a frame before they are counted.
    """
    return _query(files).collect(engine="in-memory").item()
