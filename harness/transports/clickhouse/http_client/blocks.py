"""Which rows of a table go into the same block: those of one partition, as the server would only cut it up else."""

import re
from itertools import pairwise

SLICE_BYTES = 1 << 28  # of a slice at most, where rows are wide
MOST_GROUPS = 100  # blocks in a slice: more than so many partitions in one INSERT block are refused by default
KNOWN_KEY = r"(?:(toYYYYMM|toYear|toDate)\()?`?(\w+)`?\)?"


def slices(reader, most):
    """Yield the rows of a record batch reader as record batches of so many rows, or fewer where they are wide."""
    import pyarrow as pa

    held, rows, size = [], 0, 0
    for batch in reader:
        while len(batch):
            piece = batch.slice(0, most - rows)
            batch = batch.slice(len(piece))
            held.append(piece)
            rows, size = rows + len(piece), size + piece.nbytes
            if rows == most or size >= SLICE_BYTES:
                yield joined(pa.Table.from_batches(held))
                held, rows, size = [], 0, 0
    if held:
        yield joined(pa.Table.from_batches(held))


def joined(table):
    """Return a table as one record batch; what is in one piece already is not copied."""
    import pyarrow as pa

    arrays = []
    for column in table.columns:
        if column.num_chunks > 1:
            column = column.unify_dictionaries()
        arrays.append(column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def blocks_of(batch, partition_key, parts):
    """Return the rows of each block: of one partition each, or equal parts that stand together."""
    import numpy as np

    groups = _partitions(batch, partition_key, parts)
    if groups is None:
        cuts = [len(batch) * number // parts for number in range(parts + 1)]
        return [range(low, high) for low, high in pairwise(cuts) if low < high]
    order = np.argsort(groups, kind="stable").astype(np.uint64)
    ends = np.cumsum(np.bincount(groups))
    return [rows for rows in np.split(order, ends[:-1]) if len(rows)]


def _partitions(batch, partition_key, parts):
    """Return a number for every row, of its partition; None where these are too many, too few or not known.

    This is about speed alone, the server splits and sorts what it gets. The keys known here are a date, its month and
    its year.
    """
    import numpy as np
    import pyarrow as pa

    found = re.fullmatch(KNOWN_KEY, partition_key)
    if not found or found[2] not in batch.schema.names:
        return None
    column = batch[found[2]]
    dated = pa.types.is_date(column.type) or (pa.types.is_timestamp(column.type) and found[1])
    if not dated or column.null_count or not len(column):
        return None
    days = column.cast(pa.date32(), safe=False).view(pa.int32()).to_numpy()
    unit, first, last = {"toYYYYMM": "M", "toYear": "Y"}.get(found[1], "D"), int(days.min()), int(days.max())
    if last - first > 366 * MOST_GROUPS:
        return None
    numbers = np.arange(first, last + 1).astype("M8[D]").astype(f"M8[{unit}]").astype(np.int64)
    if not parts <= numbers[-1] - numbers[0] + 1 <= MOST_GROUPS:
        return None
    return (numbers - numbers[0]).astype(np.uint8)[days - first]
