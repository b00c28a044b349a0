"""Frames on their way into a table, for transports that take Arrow: the names of their columns, and their chunks."""


def require_names(names):
    """Raise ValueError unless there are columns, all named by a text, and each name once."""
    if not names:
        raise ValueError("expected a frame with columns of the table, found none; give it some")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: expected a text for a name, found {type(name).__name__}; rename it")
        if names.count(name) > 1:
            raise ValueError(f'column "{name}": expected each name once, found {names.count(name)}; rename or drop one')


def joined(table):
    """Return an Arrow table as one record batch; what is in one piece already is not copied."""
    import pyarrow as pa

    arrays = []
    for column in table.columns:
        if column.num_chunks > 1:
            column = column.unify_dictionaries()
        arrays.append(column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks))
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
