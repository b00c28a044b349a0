"""httpx and decoders for two binary formats, Native and RowBinaryWithNamesAndTypes: https://clickhouse.com/docs/interfaces/formats

The layouts, from NativeReader.cpp, SerializationString.cpp, SerializationNullable.cpp, SerializationUUID.cpp,
SerializationLowCardinality.cpp and BinaryRowInputFormat.cpp of ClickHouse (over HTTP at revision 0, so without custom
serializations):

    Native     consecutive blocks, to its end
    block      varint columns, varint rows, then for each column: string name, string type, values (none for 0 rows)
    values     consecutive values; of strings: string, string, ...
               Nullable(T): one byte for each row (1 = null), then the values of T with a placeholder for each null
               LowCardinality(T): UInt64 version 1, UInt64 flags (the low byte is the width of the indexes: 0 to 3 for
               UInt8 to UInt64), UInt64 keys, the keys as values of T without Nullable (if T is Nullable, the first key
               means null), UInt64 rows, the indexes
    RowBinary  varint columns, a string for each name, a string for each type, then rows: consecutive values
               Nullable(T): one byte, 1 = null and nothing follows, 0 = the value follows; LowCardinality(T): as T
    value      numbers little-endian; Date: UInt16 days; Date32: Int32 days
               UUID: two UInt64, the high half first, each little-endian: reversing both gives the order of its string
    string     varint bytes, UTF-8                            varint: 7 bits a byte, low ones first, bit 7 = more follow
"""

import functools

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.columns import NUMPY_TYPES
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.sql import identifier

HTTP_COMPRESSED = {"enable_http_compression": "1"}


def _polars_frame(client, table, format_name, decode, settings, *how):
    """Fetch the table in a format and decode it with `decode` for polars."""
    import polars as pl

    with phase("receive"):
        answer = ask(client, f"SELECT * FROM {identifier(table)} FORMAT {format_name}", settings, *how)
    with phase("decode"):
        return pl.from_arrow(decode(answer))


def _pandas_frame(client, table, format_name, decode, settings):
    """Fetch the table in a format and decode it with `decode` for pandas, whose columns stay Arrow."""
    import pandas as pd

    with phase("receive"):
        answer = ask(client, f"SELECT * FROM {identifier(table)} FORMAT {format_name}", settings)
    with phase("decode"):
        return decode(answer).to_pandas(types_mapper=pd.ArrowDtype)


def _text_array(offsets, text, missing):
    """Return consecutive strings as an Arrow array; `missing` is a validity bitmap (1 = not null)."""
    import pyarrow as pa

    array = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(text), missing)
    array.validate(full=True)  # a ClickHouse String can hold any bytes, an Arrow string only UTF-8
    return array


def _uuid_array(octets, missing):
    import numpy as np
    import pyarrow as pa

    halves = np.ascontiguousarray(octets.reshape(-1, 2, 8)[:, :, ::-1])
    return pa.Array.from_buffers(pa.binary(16), len(halves), [missing, pa.py_buffer(halves)])


def _number_array(numbers, sql_type, missing):
    import numpy as np
    import pyarrow as pa

    arrow_type = pa.date32() if sql_type.startswith("Date") else pa.from_numpy_dtype(numbers.dtype)
    if sql_type == "Date":
        numbers = numbers.astype("<i4")
    return pa.Array.from_buffers(arrow_type, len(numbers), [missing, pa.py_buffer(np.ascontiguousarray(numbers))])


class _Bytes:
    """The bytes of an answer, read from the front. Raises RuntimeError if they end too soon."""

    def __init__(self, answer):
        import numpy as np

        self.data, self.place = np.frombuffer(answer, np.uint8), 0

    def take(self, size):
        part = self.data[self.place : self.place + size]
        if len(part) < size:
            raise RuntimeError(f"the Native answer breaks off: {len(part)} of {size} bytes arrived")
        self.place += size
        return part

    def varint(self):
        value = shift = 0
        while (byte := int(self.take(1)[0])) & 0x80:
            value, shift = value | (byte & 0x7F) << shift, shift + 7
        return value | byte << shift

    def text(self):
        return self.take(self.varint()).tobytes().decode()

    def number(self):
        return int.from_bytes(self.take(8).tobytes(), "little")


@functools.cache
def _compiled_walk():
    """Return a function that separates strings; numba compiles it at the first call on a machine (about a second)."""
    import numba

    @numba.njit(cache=True)
    def walk(data, start, offsets, out):
        place, total = start, 0
        for row in range(len(offsets) - 1):
            size = shift = 0
            byte = 0x80
            while byte >= 0x80:
                if place == len(data):
                    return -1
                byte = data[place]
                place += 1
                size |= (byte & 0x7F) << shift
                shift += 7
            if place + size > len(data):
                return -1
            out[total : total + size] = data[place : place + size]
            place += size
            total += size
            offsets[row + 1] = total
        return place

    return walk


def _strings(source, rows, missing):
    import numpy as np

    offsets, left = np.zeros(rows + 1, np.int64), len(source.data) - source.place
    out = np.empty(left, np.uint8)  # an upper bound: untouched pages take no memory
    source.place = _compiled_walk()(source.data, source.place, offsets, out)
    if source.place < 0:
        raise RuntimeError("the Native answer breaks off within a column of strings")
    return _text_array(offsets, out[: offsets[-1]].copy(), missing)


def _low_cardinality(source, inner, rows):
    import pyarrow as pa

    version, flags, keys = source.number(), source.number(), source.number()
    width = 1 << (flags & 0xFF)
    if version != 1 or width > 8 or flags & 0x100:  # 0x100: keys that blocks share, as in files on disk
        raise Unsupported(f"LowCardinality of version {version} with the flags {flags:#x}")
    nullable = inner.startswith("Nullable(")
    values = _values(source, inner[9:-1] if nullable else inner, keys)
    if source.number() != rows:
        raise RuntimeError("a LowCardinality column of the Native answer does not have an index for each row")
    indexes = source.take(rows * width).view(f"<u{width}")
    return values.take(pa.array(indexes, mask=indexes == 0 if nullable else None))


def _values(source, sql_type, rows, missing=None):
    """Decode one column of a block as an Arrow array; `missing` is a validity bitmap (1 = not null)."""
    import numpy as np
    import pyarrow as pa

    if sql_type.startswith("Nullable("):
        nulls = source.take(rows)
        return _values(source, sql_type[9:-1], rows, pa.py_buffer(np.packbits(nulls == 0, bitorder="little")))
    if sql_type.startswith("LowCardinality("):
        return _low_cardinality(source, sql_type[15:-1], rows)
    if sql_type == "String":
        return _strings(source, rows, missing)
    if sql_type == "UUID":
        return _uuid_array(source.take(16 * rows), missing)
    if sql_type not in NUMPY_TYPES:
        raise Unsupported(f"the decoder here does not know the type {sql_type}")
    numbers = source.take(np.dtype(NUMPY_TYPES[sql_type]).itemsize * rows).view(NUMPY_TYPES[sql_type])
    return _number_array(numbers, sql_type, missing)


def _table_of_native(answer):
    import pyarrow as pa

    source, batches = _Bytes(answer), []
    while source.place < len(source.data):
        columns, rows = source.varint(), source.varint()
        names, arrays = [], []
        for _ in range(columns):
            names.append(source.text())
            arrays.append(_values(source, source.text(), rows))
        batches.append(pa.RecordBatch.from_arrays(arrays, names))
    if not batches:
        raise Unsupported("the Native format says nothing of the columns of a table without rows")
    return pa.Table.from_batches(batches)


@transport("HTTP SELECT FORMAT Native", "native columns", settings=PLAIN)
def read_polars_native(connection, table):
    """Fetch native blocks and decode them here, with numpy and numba, into Arrow columns for polars.

    Native has no end mark, so only HTTP shows that the answer is complete. numba compiles the decoder at the first
    call. Supports numbers, dates, String, UUID, Nullable and LowCardinality; other types are refused. A UUID arrives as
    16 bytes (Binary).
    """
    return _polars_frame(connection, table, "Native", _table_of_native, PLAIN)


@transport("HTTP SELECT FORMAT Native", "native columns", settings=PLAIN)
def read_pandas_native(connection, table):
    """Fetch native blocks and decode them here, with numpy and numba, into Arrow columns for pandas.

    Works like read_polars_native. The columns stay Arrow (pandas.ArrowDtype). A UUID arrives as 16 bytes.
    """
    return _pandas_frame(connection, table, "Native", _table_of_native, PLAIN)


@transport("HTTP SELECT FORMAT Native", "native columns", settings=HTTP_COMPRESSED)
def read_polars_native_http_lz4(connection, table):
    """Fetch native blocks with HTTP compression lz4 and decode them here, with numpy and numba, for polars.

    Tuned: Accept-Encoding: lz4, for a slow network. Otherwise like read_polars_native.
    """
    import lz4.frame

    return _polars_frame(connection, table, "Native", _table_of_native, HTTP_COMPRESSED, "lz4", lz4.frame.decompress)


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["zstandard"], settings=HTTP_COMPRESSED)
def read_polars_native_http_zstd(connection, table):
    """Fetch native blocks with HTTP compression zstd and decode them here, with numpy and numba, for polars.

    Tuned: Accept-Encoding: zstd, for a slow network. Otherwise like read_polars_native.
    """
    return _polars_frame(connection, table, "Native", _table_of_native, HTTP_COMPRESSED, "zstd")


# ClickHouse fixed-width type -> numpy type.
FIXED = {**NUMPY_TYPES, "UUID": "V16"}


@functools.cache
def _compiled_rows():
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


def _row_strings(data, starts, sizes, missing):
    import numpy as np

    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.maximum(sizes, 0), out=offsets[1:])
    text = np.empty(offsets[-1], np.uint8)
    _compiled_rows()[1](data, starts, offsets, text)
    return _text_array(offsets, text, missing)


def _array(data, sql_type, starts, sizes):
    """Decode one column as an Arrow array from the offsets and sizes of its values."""
    import numpy as np
    import pyarrow as pa

    present = sizes >= 0
    missing = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    if sql_type == "String":
        return _row_strings(data, starts, sizes, missing)
    width = np.dtype(FIXED[sql_type]).itemsize
    octets = data[np.where(present, starts, 0)[:, None] + np.arange(width)]
    if sql_type == "UUID":
        return _uuid_array(octets, missing)
    return _number_array(octets.view(FIXED[sql_type]).ravel(), sql_type, missing)


def _header(data):
    """Return the names, the types and the offset after them."""

    def varint(place):
        value = shift = 0
        while data[place] & 0x80:
            value, shift, place = value | (int(data[place]) & 0x7F) << shift, shift + 7, place + 1
        return value | int(data[place]) << shift, place + 1

    columns, place = varint(0)
    strings = []
    for _ in range(2 * columns):
        size, place = varint(place)
        strings.append(data[place : place + size].tobytes().decode())
        place += size
    return strings[:columns], strings[columns:], place


def _table_of_rows(answer):
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
    rows = _compiled_rows()[0](data, place, np.array(widths), np.array(nullable), starts, sizes)
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
    return _polars_frame(connection, table, "RowBinaryWithNamesAndTypes", _table_of_rows, PLAIN)


@transport("HTTP SELECT FORMAT RowBinaryWithNamesAndTypes", "binary rows", settings=PLAIN)
def read_pandas_row_binary(connection, table):
    """Fetch binary rows and decode them here, with numpy and numba, into Arrow columns for pandas.

    The decoder passes over every row twice: first it finds the values, then it copies them into columns. The format has
    no end mark, so only HTTP shows that the answer is complete. numba compiles the decoder at the first call. Supports
    numbers, dates, String, UUID, Nullable and LowCardinality; other types are refused. The columns stay Arrow
    (pandas.ArrowDtype). A UUID arrives as 16 bytes.
    """
    return _pandas_frame(connection, table, "RowBinaryWithNamesAndTypes", _table_of_rows, PLAIN)
