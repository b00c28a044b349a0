"""httpx and a decoder for the Native format: https://clickhouse.com/docs/interfaces/formats/Native

The layout, from NativeReader.cpp, SerializationString.cpp, SerializationNullable.cpp, SerializationUUID.cpp and
SerializationLowCardinality.cpp of ClickHouse (over HTTP at revision 0, so without custom serializations):

    answer     consecutive blocks, to its end
    block      varint columns, varint rows, then for each column: string name, string type, values (none for 0 rows)
    string     varint bytes, UTF-8                            varint: 7 bits a byte, low ones first, bit 7 = more follow
    values     consecutive little-endian numbers; Date: UInt16 days; Date32: Int32 days
               UUID: two UInt64, the high half first, each little-endian: reversing both gives the string's order
               String: string, string, ...
               Nullable(T): one byte for each row (1 = null), then the values of T with a placeholder for each null
               LowCardinality(T): UInt64 version 1, UInt64 flags (the low byte is the width of the indexes: 0 to 3 for
               UInt8 to UInt64), UInt64 keys, the keys as values of T without Nullable (if T is Nullable, the first key
               means null), UInt64 rows, the indexes
"""

import functools

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.columns import NUMPY_TYPES
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.sql import identifier

HTTP_COMPRESSED = {"enable_http_compression": "1"}


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
    import pyarrow as pa

    offsets, left = np.zeros(rows + 1, np.int64), len(source.data) - source.place
    out = np.empty(left, np.uint8)  # an upper bound: untouched pages take no memory
    source.place = _compiled_walk()(source.data, source.place, offsets, out)
    if source.place < 0:
        raise RuntimeError("the Native answer breaks off within a column of strings")
    text = out[: offsets[-1]].copy()
    array = pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text), missing)
    array.validate(full=True)  # a ClickHouse String can hold any bytes, an Arrow string only UTF-8
    return array


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
        halves = source.take(16 * rows).reshape(rows, 2, 8)
        octets = np.ascontiguousarray(halves[:, :, ::-1])
        return pa.Array.from_buffers(pa.binary(16), rows, [missing, pa.py_buffer(octets)])
    if sql_type not in NUMPY_TYPES:
        raise Unsupported(f"the decoder here does not know the type {sql_type}")
    numbers = source.take(np.dtype(NUMPY_TYPES[sql_type]).itemsize * rows).view(NUMPY_TYPES[sql_type])
    arrow_type = pa.date32() if sql_type.startswith("Date") else pa.from_numpy_dtype(numbers.dtype)
    if sql_type == "Date":
        numbers = numbers.astype("<i4")
    return pa.Array.from_buffers(arrow_type, rows, [missing, pa.py_buffer(np.ascontiguousarray(numbers))])


def _table(answer):
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
    import polars as pl

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT Native", PLAIN)
    with phase("decode"):
        return pl.from_arrow(_table(answer))


@transport("HTTP SELECT FORMAT Native", "native columns", settings=PLAIN)
def read_pandas_native(connection, table):
    """Fetch native blocks and decode them here, with numpy and numba, into Arrow columns for pandas.

    Works like read_polars_native. The columns stay Arrow (pandas.ArrowDtype). A UUID arrives as 16 bytes.
    """
    import pandas as pd

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT Native", PLAIN)
    with phase("decode"):
        return _table(answer).to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT Native", "native columns", settings=HTTP_COMPRESSED)
def read_polars_native_http_lz4(connection, table):
    """Fetch native blocks with HTTP compression lz4 and decode them here, with numpy and numba, for polars.

    Tuned: Accept-Encoding: lz4, for a slow network. Otherwise like read_polars_native.
    """
    import lz4.frame
    import polars as pl

    with phase("receive"):
        answer = ask(
            connection, f"SELECT * FROM {identifier(table)} FORMAT Native", HTTP_COMPRESSED, "lz4", lz4.frame.decompress
        )
    with phase("decode"):
        return pl.from_arrow(_table(answer))


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["zstandard"], settings=HTTP_COMPRESSED)
def read_polars_native_http_zstd(connection, table):
    """Fetch native blocks with HTTP compression zstd and decode them here, with numpy and numba, for polars.

    Tuned: Accept-Encoding: zstd, for a slow network. Otherwise like read_polars_native.
    """
    import polars as pl

    with phase("receive"):
        answer = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT Native", HTTP_COMPRESSED, "zstd")
    with phase("decode"):
        return pl.from_arrow(_table(answer))
