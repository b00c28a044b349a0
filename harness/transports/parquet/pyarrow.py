"""PyArrow, the Python library of Apache Arrow: https://arrow.apache.org/docs/python/dataset.html"""

from contextlib import nullcontext
from datetime import date
from decimal import Decimal

from harness.registry import transport

connect = nullcontext  # the folder, which is not used: a dataset has no connection and does not spill


def _count(files, filesystem):
    """Return the number of matching rows in all files; a file given twice counts twice.

    The filter is TPC-H query 6's: about 1.9 % of lineitem's rows at every scale. The bounds have the columns' type,
    because pyarrow compares decimals exactly but does not convert an integer to their precision.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    shipdate, discount, quantity = ds.field("l_shipdate"), ds.field("l_discount"), ds.field("l_quantity")
    low, high, limit = (pa.scalar(Decimal(bound), pa.decimal128(15, 2)) for bound in ("0.05", "0.07", "24.00"))
    passes = (
        (shipdate >= date(1994, 1, 1))
        & (shipdate < date(1995, 1, 1))
        & (discount >= low)
        & (discount <= high)
        & (quantity < limit)
    )
    dataset = ds.dataset(files, format="parquet", filesystem=filesystem)
    return dataset.scanner(columns=["l_shipdate", "l_discount", "l_quantity"], filter=passes).count_rows()


@transport("dataset.Scanner.count_rows", "Parquet")
def scan_dataset(connection, files):
    """Count with one dataset over all files and a scanner with projection and filter.

    pyarrow skips row groups whose statistics exclude a match. Of the others it reads the three columns into memory and
    decodes them in full, many batches ahead of the filter.
    """
    return _count(files, filesystem=None)


@transport("dataset.Scanner.count_rows", "Parquet", settings={"use_mmap": "true"})
def scan_dataset_memory_map(connection, files):
    """Count with the same dataset over files that are mapped into memory instead of read.

    The pages of the three columns then count as the process's file-backed memory, which the system can reclaim.
    """
    from pyarrow.fs import LocalFileSystem

    return _count(files, filesystem=LocalFileSystem(use_mmap=True))
