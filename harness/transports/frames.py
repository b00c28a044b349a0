"""Frames on their way into a table, for transports that take Arrow: the names of their columns, and their chunks."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal


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
    """Return an Arrow table whose columns stand in one piece each, but for texts: encoders take these where they are.

    What is in one piece already is not copied. Columns of several are joined side by side: nothing is sent before that,
    so that other cores have no work.
    """
    import pyarrow as pa
    from arrow_wire.arrays import is_text

    if all(column.num_chunks == 1 or is_text(column.type) for column in table.columns):
        return table
    with ThreadPoolExecutor(max_workers=8) as pool:
        return pa.table(list(pool.map(_in_one_piece, table.columns)), schema=table.schema)


def _in_one_piece(column):
    import pyarrow as pa
    from arrow_wire.arrays import is_text

    if column.num_chunks == 1 or is_text(column.type):
        return column
    first = column.chunk(0)
    if pa.types.is_primitive(first.type) and _adjacent(column.chunks):
        return pa.Array.from_buffers(first.type, len(column), first.buffers(), offset=first.offset)
    return pa.concat_arrays(column.unify_dictionaries().chunks)


def _adjacent(chunks):
    """Whether arrays are slices of one, in its order: so record batches cut the columns that they were made of."""
    places = [[buffer and (buffer.address, buffer.size) for buffer in chunk.buffers()] for chunk in chunks]
    ends = [chunk.offset + len(chunk) for chunk in chunks]
    return all(place == places[0] for place in places) and ends[:-1] == [chunk.offset for chunk in chunks[1:]]


def of_objects(values):
    """Return objects of a pandas column as an Arrow array, in which a NaN is a null.

    Raises what Arrow raises for objects of several types. Decimals mostly have one number of places, that of the first:
    told of it, Arrow takes a fourth of the time.
    """
    import pyarrow as pa

    first = next((one for one in values if one is not None), None)
    exponent = first.as_tuple().exponent if isinstance(first, Decimal) else None
    if isinstance(exponent, int) and -38 <= exponent <= 0:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):  # more places, more digits, or something else
            return pa.array(values, pa.decimal128(38, -exponent), from_pandas=True)
    return pa.array(values, from_pandas=True)
