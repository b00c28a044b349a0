"""Frames of polars, pandas and others as Arrow, and Arrow as frames; the names of their columns, and their chunks."""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from arrow_wire.arrays import is_text
from arrow_wire.errors import UnsupportedType, WrongValue

MODES = ("append", "create", "replace")


def library_of(frame: Any) -> str:
    """Return the library of a frame: `polars`, `pandas`, or `arrow` for any other stream of Arrow."""
    library = type(frame).__module__.partition(".")[0]
    return library if library in ("polars", "pandas") else "arrow"


def names_of(frame: Any) -> list[Any]:
    """Return the names of a frame's columns. Raises WrongValue if no table can have them."""
    names = list(frame.columns)
    require_names(names)
    return names


def reader_of(frame: Any) -> pa.RecordBatchReader:
    """Return a record batch, or an object with `__arrow_c_stream__`, as a reader of record batches.

    Raises TypeError for anything else.
    """
    if isinstance(frame, pa.RecordBatchReader):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame]).to_reader()
    if not hasattr(frame, "__arrow_c_stream__"):
        raise TypeError(
            f"{type(frame).__name__} is not a frame; give one of polars, pandas or pyarrow, or an object with "
            "__arrow_c_stream__"
        )
    return pa.RecordBatchReader.from_stream(frame)


def require_choice(what: str, given: str, known: Collection[str]) -> None:
    """Raise ValueError for an argument that is not one of the known ones."""
    if given not in known:
        raise ValueError(f"{what} {given!r}: choose from {', '.join(known)}")


def require_names(names: Sequence[Any]) -> None:
    """Raise WrongValue unless there are columns, all names are strings, and no name repeats."""
    if not names:
        raise WrongValue("the frame has no columns; give it columns of the table")
    repeated = len(set(names)) < len(names)
    for name in names:
        if not isinstance(name, str):
            raise WrongValue(f"column {name!r}: its name is of {type(name).__name__} instead of str; rename it")
        if repeated and (found := names.count(name)) > 1:
            raise WrongValue(f'column "{name}": {found} columns have this name; rename or drop one', name)


def joined(table: pa.Table) -> pa.Table:
    """Return an Arrow table whose columns are in one piece each, except strings, which encoders read in place. A column
    in one piece is not copied. Threads join the other columns at the same time, because no row is sent before that.
    """
    if all(column.num_chunks == 1 or is_text(column.type) for column in table.columns):
        return table
    with ThreadPoolExecutor(max_workers=8) as pool:
        return pa.table(list(pool.map(_in_one_piece, table.columns)), schema=table.schema)


def _in_one_piece(column: pa.ChunkedArray) -> Any:
    if column.num_chunks == 1 or is_text(column.type):
        return column
    first = column.chunk(0)
    if pa.types.is_primitive(first.type) and _adjacent(column.chunks):
        return pa.Array.from_buffers(first.type, len(column), first.buffers(), offset=first.offset)
    return pa.concat_arrays(column.unify_dictionaries().chunks)


def _adjacent(chunks: list[pa.Array]) -> bool:
    """Whether arrays are slices of one array, in its order, as record batches are."""
    places = [[buffer and (buffer.address, buffer.size) for buffer in chunk.buffers()] for chunk in chunks]
    ends = [chunk.offset + len(chunk) for chunk in chunks]
    return all(place == places[0] for place in places) and ends[:-1] == [chunk.offset for chunk in chunks[1:]]


def of_objects(values: Any) -> pa.Array:
    """Return objects of a pandas column as an Arrow array, in which a NaN is a null.

    Raises Arrow's errors for objects of several types. Decimals mostly have as many places as the first one. With that
    number Arrow takes a quarter of the time.
    """
    first = next((one for one in values if one is not None), None)
    exponent = first.as_tuple().exponent if isinstance(first, Decimal) else None
    if isinstance(exponent, int) and -38 <= exponent <= 0:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # more places, more digits, or something else
            return pa.array(values, pa.decimal128(38, -exponent), from_pandas=True)
    return pa.array(values, from_pandas=True)


def of_polars(frame: Any, wide: Any, array_of: Callable[[Any], pa.Array] = pa.array) -> Any:
    """Return a polars frame as a reader of record batches that share its memory, but for objects and 128-bit numbers.

    These numbers, for which Arrow has no type, become `wide`, a dtype of polars. Raises UnsupportedType for objects
    that `array_of` cannot convert.
    """
    import polars as pl

    dtypes = set(map(type, frame.dtypes))  # five times as fast as comparing them
    if not dtypes.isdisjoint((pl.Int128, pl.UInt128)):
        frame = frame.with_columns(pl.col(pl.Int128, pl.UInt128).cast(wide))
    if pl.Object not in dtypes:
        return _handed_over(frame)
    objects = frame.select(pl.col(pl.Object))
    table = _handed_over(frame.drop(objects.columns)).read_all()
    made = {one.name: _of_one_type(one.name, one.to_list(), array_of) for one in objects}
    return pa.table({name: made[name] if name in made else table[name] for name in frame.columns}).to_reader()


def _handed_over(frame: Any) -> pa.RecordBatchReader:
    """Return a reader of a polars frame. A stream takes half the time of few rows, but copies several chunks."""
    import polars as pl

    if frame.n_chunks() == 1:
        return pa.RecordBatchReader.from_stream(frame)
    return frame.to_arrow(compat_level=pl.CompatLevel.newest()).to_reader()


def uuids(values: list[Any]) -> pa.Array:
    """Return objects as UUIDs. Raises ArrowTypeError for others."""
    if all(value is None or isinstance(value, uuid.UUID) for value in values):
        return pa.array(values, pa.uuid())
    raise pa.ArrowTypeError("objects that are not UUIDs")


def of_pandas(frame: Any, is_float: Callable[[str], bool]) -> pa.RecordBatchReader:
    """Return a reader of a pandas frame, which shares the memory of numpy's and Arrow's columns.

    In a column of floats a NaN stays a NaN if the server's column `is_float`; otherwise it is a null, like None.
    """
    return pa.table({name: _of_series(name, values, is_float) for name, values in frame.items()}).to_reader()


def _of_series(name: str, values: Any, is_float: Callable[[str], bool]) -> pa.Array:
    dtype, array, of_numpy = values.dtype, values.array, isinstance(values.dtype, np.dtype)
    if of_numpy and dtype.kind == "O":
        return _of_one_type(name, values, of_objects)
    # Arrow would try all interfaces of a Series, which takes longer than a thousand rows.
    given = array if hasattr(array, "__arrow_array__") else array.to_numpy() if of_numpy else values
    nan_is_null = dtype.kind != "f" or not is_float(name)
    return _of_one_type(name, given, lambda column: pa.array(column, from_pandas=nan_is_null))


def pandas_frame(columns: Iterable[tuple[str, Any]]) -> Any:
    """Return a frame of these names and arrays of numpy or pandas, which shares their memory.

    Given Series, pandas would compare and copy the index of each.
    """
    import pandas as pd

    return pd.DataFrame(dict(columns), copy=False)


def pandas_strings(column: pa.ChunkedArray) -> Any:
    """Return strings as the `str` of pandas, which shares their memory. `pd.array` takes several times as long."""
    import pandas as pd

    dtype = _of_strings()
    return dtype.__from_arrow__(column) if isinstance(dtype, pd.StringDtype) else pd.array(column, dtype="str")


@cache
def _of_strings() -> Any:
    import pandas as pd

    return pd.api.types.pandas_dtype("str")


def _of_one_type(name: str, values: Any, array_of: Callable[[Any], pa.Array]) -> pa.Array:
    try:
        return array_of(values)
    except (pa.ArrowNotImplementedError, OverflowError, TypeError, ValueError) as error:
        raise UnsupportedType(f'column "{name}": its values are not of one type: {error}; cast them first') from None


def columns_of(batch: Any) -> Iterator[tuple[str, pa.Array]]:
    """Yield name and array of each column; several may have one name."""
    return zip(batch.schema.names, batch.columns, strict=True)
