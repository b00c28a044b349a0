"""httpx and a decoder for RowBinaryWithNamesAndTypes: https://clickhouse.com/docs/interfaces/formats/RowBinary

The layout, from RowBinaryWithNamesAndTypes in that documentation and BinaryRowInputFormat.cpp of ClickHouse:

    answer     varint columns, a string for each name, a string for each type, then consecutive rows
    row        consecutive values
    string     varint bytes, UTF-8                            varint: 7 bits a byte, low ones first, bit 7 = more follow
    value      numbers little-endian; Date: UInt16 days; Date32: Int32 days; String: string
               UUID: two UInt64, the high half first, each little-endian: reversing both gives the string's order
               Nullable(T): one byte, 1 = null and nothing follows, 0 = the value follows
               LowCardinality(T): the value of T
"""

import functools

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.columns import NUMPY_TYPES
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.sql import identifier

# ClickHouse fixed-width type -> numpy type.
FIXED = {**NUMPY_TYPES, "UUID": "V16"}


@functools.cache
def _compiled():
    """Return two functions, which numba compiles at their first call on a machine (about three seconds).

    The first finds where each value begins and its length (-1: null). It returns the number of rows, or -1 if the
    answer ends within a row. `widths` are bytes per value, 0 for strings. The second concatenates strings.
    """
    import numba

    @numba.njit(cache=True)
    def find(data, place, widths, nullable, starts, sizes):
        row = 0
        while place < len(data):
            for column in range(len(widths)):
                if nullable[column]:
                    place += 1
                    if place <= len(data) and data[place - 1]:
                        sizes[column, row] = -1
                        continue
                size, shift, more = widths[column], 0, widths[column] == 0
                while more and place < len(data):
                    size |= (data[place] & 0x7F) << shift
                    more = data[place] >= 0x80
                    shift, place = shift + 7, place + 1
                if more or place + size > len(data):
                    return -1
                starts[column, row], sizes[column, row] = place, size
                place += size
            row += 1
        return row if place == len(data) else -1

    @numba.njit(cache=True)
    def gather(data, starts, offsets, out):
        for row in range(len(starts)):
            size = offsets[row + 1] - offsets[row]
            if size:
                out[offsets[row] : offsets[row + 1]] = data[starts[row] : starts[row] + size]

    return find, gather


def _texts(data, starts, sizes, missing):
    import numpy as np
    import pyarrow as pa

    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.maximum(sizes, 0), out=offsets[1:])
    text = np.empty(offsets[-1], np.uint8)
    _compiled()[1](data, starts, offsets, text)
    array = pa.LargeStringArray.from_buffers(len(sizes), pa.py_buffer(offsets), pa.py_buffer(text), missing)
    array.validate(full=True)  # a ClickHouse String can hold any bytes, an Arrow string only UTF-8
    return array


def _array(data, sql_type, starts, sizes):
    """Decode one column as an Arrow array from the offsets and sizes of its values."""
    import numpy as np
    import pyarrow as pa

    present = sizes >= 0
    missing = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    if sql_type == "String":
        return _texts(data, starts, sizes, missing)
    width = np.dtype(FIXED[sql_type]).itemsize
    octets = data[np.where(present, starts, 0)[:, None] + np.arange(width)]
    if sql_type == "UUID":
        octets = np.ascontiguousarray(octets.reshape(-1, 2, 8)[:, :, ::-1])
        return pa.Array.from_buffers(pa.binary(16), len(sizes), [missing, pa.py_buffer(octets)])
    numbers = octets.view(FIXED[sql_type]).ravel()
    arrow_type = pa.date32() if sql_type.startswith("Date") else pa.from_numpy_dtype(numbers.dtype)
    if sql_type == "Date":
        numbers = numbers.astype("<i4")
    return pa.Array.from_buffers(arrow_type, len(sizes), [missing, pa.py_buffer(numbers)])


def _header(data):
    """Return the names, the types and the offset after them."""

    def varint(place):
        value = shift = 0
        while data[place] & 0x80:
            value, shift, place = value | (int(data[place]) & 0x7F) << shift, shift + 7, place + 1
        return value | int(data[place]) << shift, place + 1

    columns, place = varint(0)
    texts = []
    for _ in range(2 * columns):
        size, place = varint(place)
        texts.append(data[place : place + size].tobytes().decode())
        place += size
    return texts[:columns], texts[columns:], place


def _table(answer):
    import numpy as np
    import pyarrow as pa

    data = np.frombuffer(answer, np.uint8)
    names, sql_types, place = _header(data)
    sql_types = [sql_type[15:-1] if sql_type.startswith("LowCardinality(") else sql_type for sql_type in sql_types]
    nullable = [sql_type.startswith("Nullable(") for sql_type in sql_types]
    sql_types = [sql_type[9:-1] if may else sql_type for sql_type, may in zip(sql_types, nullable, strict=True)]
    if unknown := set(sql_types) - {"String", *FIXED}:
        raise Unsupported(f"the decoder here does not know the type {min(unknown)}")
    widths = [0 if sql_type == "String" else np.dtype(FIXED[sql_type]).itemsize for sql_type in sql_types]
    shortest = sum(1 if may else max(width, 1) for width, may in zip(widths, nullable, strict=True))
    shape = (len(sql_types), (len(data) - place) // shortest + 1)  # an upper bound: untouched pages take no memory
    starts, sizes = np.empty(shape, np.int64), np.empty(shape, np.int64)
    rows = _compiled()[0](data, place, np.array(widths), np.array(nullable), starts, sizes)
    if rows < 0:
        raise RuntimeError(f"the RowBinary answer of {len(data)} bytes breaks off within a row")
    arrays = [_array(data, sql_type, starts[c, :rows], sizes[c, :rows]) for c, sql_type in enumerate(sql_types)]
    return pa.Table.from_arrays(arrays, names)


@transport("HTTP SELECT FORMAT RowBinaryWithNamesAndTypes", "binary rows", settings=PLAIN)
def read_polars_row_binary(connection, table):
    """Fetch binary rows and decode them here, with numpy and numba, into Arrow columns for polars.

    The decoder passes over every row twice: first it finds the values, then it copies them into columns. The format has
    no end mark, so only HTTP shows that the answer is complete. numba compiles the decoder at the first call. It
    supports numbers, dates, String, UUID, Nullable and LowCardinality, and refuses other types. A UUID arrives as 16
    bytes (Binary).
    """
    import polars as pl

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT RowBinaryWithNamesAndTypes", PLAIN)
    with phase("decode"):
        return pl.from_arrow(_table(answer))


@transport("HTTP SELECT FORMAT RowBinaryWithNamesAndTypes", "binary rows", settings=PLAIN)
def read_pandas_row_binary(connection, table):
    """Fetch binary rows and decode them here, with numpy and numba, into Arrow columns for pandas.

    The decoder passes over every row twice: first it finds the values, then it copies them into columns. The format has
    no end mark, so only HTTP shows that the answer is complete. numba compiles the decoder at the first call. Supports
    numbers, dates, String, UUID, Nullable and LowCardinality; other types are refused. The columns stay Arrow
    (pandas.ArrowDtype). A UUID arrives as 16 bytes.
    """
    import pandas as pd

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT RowBinaryWithNamesAndTypes", PLAIN)
    with phase("decode"):
        return _table(answer).to_pandas(types_mapper=pd.ArrowDtype)
