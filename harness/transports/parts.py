"""Parquet files a piece at a time: row groups to load, and files that workers leave, each a part of a table."""

import itertools
import os


def row_groups(source):
    """Return the numbers of a Parquet file's row groups: the parts that workers load."""
    from pyarrow import parquet

    return list(range(parquet.read_metadata(source).num_row_groups))


def batches(source, groups=None):
    """Yield the rows of a Parquet file, or of some of its row groups, as Arrow record batches of at most 16,384 rows.

    One batch is held at a time, and the file is read without a map of it into memory. One thread reads: several, and
    batches of 65,536 rows, take three times the memory and feed no database faster.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(source, memory_map=False, pre_buffer=False, buffer_size=65_536) as file:
        yield from file.iter_batches(16_384, row_groups=groups, use_threads=False)


def gathered(batches, rows):
    """Yield lists of record batches that together have so many rows or a few more; the last list may have fewer.

    A list is not held any longer when the next is gathered.
    """
    held, number = [], 0
    for batch in batches:
        held.append(batch)
        number += batch.num_rows
        if number >= rows:
            yield held
            held, number = [], 0
        del batch
    if held:
        yield held


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
