"""Frames as Arrow, without a copy where that is possible: what the ways into ClickHouse begin with."""

from harness.registry import Unsupported


def check_names(names):
    """Raise ValueError unless there are columns, all named by a text, and each name once."""
    if not names:
        raise ValueError("expected a frame with columns of the table, found none; give it some")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"column {name!r}: expected a text for a name, found {type(name).__name__}; rename it")
        if names.count(name) > 1:
            raise ValueError(f'column "{name}": expected each name once, found {names.count(name)}; rename or drop one')


def table_of_polars(frame):
    """Return a polars frame as an Arrow table that shares its memory, but for objects and numbers of 128 bits."""
    import polars as pl
    import pyarrow as pa

    wide = pl.col(pl.Int128, pl.UInt128)  # for which Arrow has no type
    objects = {column.name: _of_objects(column.name, column.to_list()) for column in frame if column.dtype == pl.Object}
    plain = frame.drop(list(objects)).with_columns(wide.cast(pl.String))
    table = plain.to_arrow(compat_level=pl.CompatLevel.newest())
    return pa.table({name: objects[name] if name in objects else table[name] for name in frame.columns})


def table_of_pandas(frame):
    """Return a pandas frame as an Arrow table, which shares the memory of numpy's and Arrow's columns.

    A NaN among floats stays one; in a column of objects it is a null, as None is.
    """
    import pyarrow as pa

    return pa.table({name: _of_series(name, values) for name, values in frame.items()})


def _of_series(name, values):
    import pyarrow as pa

    if values.dtype == object:
        return _of_objects(name, values, from_pandas=True)
    return pa.array(values.to_numpy() if values.dtype in ("float64", "float32", "float16") else values)


def _of_objects(name, values, **how):
    import pyarrow as pa

    try:
        return pa.array(values, **how)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise Unsupported(f'column "{name}": expected objects of one type, found: {error}; cast them first') from None
