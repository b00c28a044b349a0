"""Parquet files a piece at a time: row groups to load, and files that workers leave, each a part of a table."""

import itertools
import os


def row_groups(source):
    """Return the numbers of a Parquet file's row groups: the parts that workers load."""
    from pyarrow import parquet

    return list(range(parquet.read_metadata(source).num_row_groups))


def batches(source, groups=None):
    """Yield the rows of a Parquet file, or of some of its row groups, as Arrow record batches of at most 65,536 rows.

    One batch is held at a time, and the file is read without a map of it into memory.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(source, memory_map=False, pre_buffer=False) as file:
        yield from file.iter_batches(65_536, row_groups=groups)


def write_part(destination, name, batches):
    """Write Arrow record batches, each when it comes, as one Parquet file of a folder; return how many rows.

    The file takes its name when it is whole: whoever writes a part again, because its first writer died, leaves one.
    Of no batch there is no file.
    """
    from pyarrow import parquet

    remaining = iter(batches)
    if (first := next(remaining, None)) is None:
        return 0
    rows, path = 0, os.path.join(destination, f"{name}.parquet")
    unfinished = f"{path}.{os.getpid()}"
    with parquet.ParquetWriter(unfinished, first.schema, compression="lz4") as writer:
        for batch in itertools.chain([first], remaining):
            writer.write_batch(batch)
            rows += batch.num_rows
    os.replace(unfinished, path)
    return rows
