"""Parquet files in pieces: row groups to load, and files that workers write, each one part of a table."""

import itertools
import os


def row_groups(source):
    """Return the numbers of a Parquet file's row groups, the parts that workers load."""
    from pyarrow import parquet

    return list(range(parquet.read_metadata(source).num_row_groups))


def batches(source, groups=None):
    """Yield the rows of a Parquet file, or of some of its row groups, as Arrow record batches of at most 16,384 rows.

    Only one batch is held at a time, and the file is not memory-mapped. One thread reads. Several threads with batches
    of 65,536 rows take three times the memory and load no database faster.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(source, memory_map=False, pre_buffer=False, buffer_size=65_536) as file:
        yield from file.iter_batches(16_384, row_groups=groups, use_threads=False)


def gathered(batches, rows):
    """Yield lists of record batches with at least this many rows in total; the last list may have fewer.

    A list is released before the next one is gathered.
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
    """Write Arrow record batches as they arrive to one Parquet file in a folder; return the number of rows.

    The file gets its final name when it is complete. If a writer dies and another repeats the part, one file remains.
    Without batches there is no file.
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
