"""The Native format, blocks of typed columns, encoded with Arrow and NumPy: https://clickhouse.com/docs/interfaces/formats/Native

The layout (ClickHouse's src/Formats/NativeWriter.cpp, for clients that name no protocol version), one block after the
other: number of columns and of rows as LEB128; then of every column its name, its type (texts: length as LEB128, UTF-8)
and its values. Numbers are little-endian; a Date is UInt16 days since 1970, a Date32 Int32; a UUID is its two halves as
little-endian UInt64, the high one first; a String is length and bytes, row after row. Before the values of a Nullable
stands one byte per row, 1 for null. The type sent may differ from the column's: the server converts, so that a
LowCardinality(String) can be sent as String.
"""

import json
from contextlib import contextmanager

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# httpx copies what is left of a body after every send: 130 MB in one piece cost a second of nothing else.
PIECE_BYTES = 1 << 20

# A block of the size that a server itself makes of a longer insert (max_insert_block_size).
BLOCK_ROWS = 1_048_576

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}

# ClickHouse type -> Arrow type with the same bytes; a Date takes two steps, through days in 32 bits.
ARROW_TYPES = {
    **{f"{sign}Int{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)},
    "Float32": "float32",
    "Float64": "float64",
    "Bool": "uint8",
    "Date": "uint16",
    "Date32": "int32",
}


@contextmanager
def connect(uri):
    """Yield a client that holds one open connection."""
    import httpx

    url = httpx.URL(uri)
    with httpx.Client(
        base_url=url.copy_with(userinfo=b"", query=None),
        params=url.params,
        auth=(url.username, url.password),
        headers={"Content-Type": "application/octet-stream"},
        timeout=TIMEOUT_SECONDS,
    ) as client:
        _send(client, "SELECT 1")
        yield client


def _send(client, query, settings=None, body=b"", encoding=None):
    """Run one query in one request and return the answer; a refusal raises RuntimeError with the server's text."""
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))} | ({"Content-Encoding": encoding} if encoding else {})
    response = client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    return response.content


def _column_types(client, table):
    """Return of every column its type, without LowCardinality and Nullable around it, and whether it is Nullable."""
    rows = json.loads(_send(client, f"DESCRIBE TABLE {identifier(table)} FORMAT JSONCompact"))["data"]
    return {row[0]: (_inner(row[1]), "Nullable(" in row[1]) for row in rows}


def _inner(kind):
    return kind.removeprefix("LowCardinality(").removeprefix("Nullable(").rstrip(")")


def _insert(client, table, frame, to_arrow, encoding=None):
    """Encode a frame as Native and insert it; `encoding` is the codec of the HTTP body."""
    import pyarrow as pa

    with phase("send"):
        types = _column_types(client, table)
    with phase("encode"):
        arrow = to_arrow(frame)
        blocks = (arrow.slice(start, BLOCK_ROWS) for start in range(0, arrow.num_rows, BLOCK_ROWS))
        body = b"".join(piece for block in blocks for piece in _block(block.combine_chunks(), types))
        if encoding:
            body = pa.compress(body, codec=encoding, asbytes=True)  # its lz4 is the frame format, as HTTP's
    names = identifiers(arrow.column_names)
    with phase("send"):
        _send(client, f"INSERT INTO {identifier(table)} ({names}) FORMAT Native", INSERT_SETTINGS, body, encoding)


def _leb128(number):
    """Return a number in groups of seven bits, the lowest first; all bytes but the last have their top bit set."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _text(text):
    data = text.encode()
    return _leb128(len(data)) + data


def _block(arrow, types):
    """Yield the pieces of a block of at least one row."""
    import numpy as np

    yield _leb128(arrow.num_columns) + _leb128(arrow.num_rows)
    for name, chunks in zip(arrow.column_names, arrow.columns, strict=True):
        column, (kind, nullable) = chunks.chunk(0), types[name]
        if column.null_count and not nullable:  # the server would make it an empty value without a word
            raise ValueError(f"column {name} has nulls, the table's column cannot")
        yield _text(name) + _text(f"Nullable({kind})" if column.null_count else kind)
        if column.null_count:
            yield column.is_null().cast("uint8").to_numpy(zero_copy_only=False)
        yield np.ascontiguousarray(_values(name, column, kind))


def _values(name, column, kind):
    """Return the values of a column as they stand in a block; in the place of a null stands an empty value."""
    import pyarrow as pa

    if kind == "UUID":
        return _uuids(column.cast(pa.large_string()).fill_null("00000000-0000-0000-0000-000000000000"))
    if kind == "String":
        return _strings(column.cast(pa.large_string()).fill_null(""))
    if kind not in ARROW_TYPES:
        raise Unsupported(f"column {name}: this encoder has no type {kind}")
    if kind.startswith("Date"):
        column = column.cast("date32").cast("int32")
    return _numbers(name, column, kind).fill_null(0).to_numpy()


def _numbers(name, column, kind):
    """Return a column in the Arrow type of a number; what does not fit raises ValueError."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_temporal(column.type):  # Arrow would cast it to what it counts
        raise ValueError(f"column {name}: {column.type} is no {kind}")
    numbers = column.cast(ARROW_TYPES[kind])
    if kind == "Float32" and pa.types.is_floating(column.type) and not pc.is_inf(numbers).equals(pc.is_inf(column)):
        raise ValueError(f"column {name} has floats that are larger than a {kind} holds")
    return numbers


def _uuids(texts):
    """Turn texts of 36 characters into two little-endian 64-bit halves, 16 bytes a row."""
    import numpy as np

    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if (np.diff(offsets) != 36).any():
        raise ValueError("expected UUIDs as texts of 36 characters")
    letters = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].reshape(-1, 36)
    value_of = np.full(256, 255, np.uint8)
    for alphabet in (b"0123456789abcdef", b"0123456789ABCDEF"):
        value_of[np.frombuffer(alphabet, np.uint8)] = np.arange(16)
    digits = value_of[letters[:, [place for place in range(36) if place not in (8, 13, 18, 23)]]]
    if (digits == 255).any():
        raise ValueError("expected hexadecimal digits in UUIDs")
    return np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2]).view(">u8").astype("<u8")


def _strings(texts):
    """Return the texts one behind the other, each after its length."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = (_lengths(texts), texts.cast(pa.large_binary()), pa.scalar(b"", pa.large_binary()))
    joined = pc.binary_join_element_wise(*parts)
    end = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset + len(joined)]
    return np.frombuffer(joined.buffers()[2], np.uint8)[:end]


def _lengths(texts):
    """Return the lengths of texts in bytes as LEB128, as Arrow binaries."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.binary_length(texts).to_numpy()
    sizes = 1 + sum((lengths >> 7 * groups > 0).astype(np.int64) for groups in range(1, 5))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.empty(offsets[-1], np.uint8)
    for group in range(sizes.max()):
        reaching = sizes > group
        more = np.where(sizes[reaching] > group + 1, 0x80, 0)
        data[offsets[:-1][reaching] + group] = lengths[reaching] >> 7 * group & 0x7F | more
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)


def _from_polars(frame):
    import polars as pl

    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _from_pandas(frame):
    """Return a pandas frame as Arrow; a NaN among floats stays one, which Table.from_pandas would make a null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
            for name, values in frame.items()
        }
    )


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Native, uncompressed",
    payload="native columns",
    requires=["httpx", "numpy", "polars", "pyarrow.compute"],
    settings=INSERT_SETTINGS,
    lossy={
        "refused": "timestamps timestamps_tz decimals arrays nested padded_text enum json "
        "float64_into_decimal date_into_timestamp timestamp_into_int64",
    },
)
def write_polars_native(connection, frame, table):
    """Encode the frame as Native blocks with Arrow and NumPy and send them in the body of a POST request.

    The server parses nothing and converts nothing. The types of the columns come from one DESCRIBE before; UUID texts
    become 16 bytes here.
    """
    _insert(connection, table, frame, _from_polars)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Native, lz4",
    payload="native columns",
    requires=["httpx", "numpy", "polars", "pyarrow.compute"],
    settings=INSERT_SETTINGS,
    lossy={
        "refused": "timestamps timestamps_tz decimals arrays nested padded_text enum json "
        "float64_into_decimal date_into_timestamp timestamp_into_int64",
    },
)
def write_polars_native_lz4(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding lz4; all else as write_polars_native."""
    _insert(connection, table, frame, _from_polars, "lz4")


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Native, zstd",
    payload="native columns",
    requires=["httpx", "numpy", "polars", "pyarrow.compute"],
    settings=INSERT_SETTINGS,
    lossy={
        "refused": "timestamps timestamps_tz decimals arrays nested padded_text enum json "
        "float64_into_decimal date_into_timestamp timestamp_into_int64",
    },
)
def write_polars_native_zstd(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding zstd; all else as write_polars_native."""
    _insert(connection, table, frame, _from_polars, "zstd")


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Native, uncompressed",
    payload="native columns",
    requires=["httpx", "numpy", "pandas", "pyarrow.compute"],
    settings=INSERT_SETTINGS,
    lossy={
        "refused": "timestamps timestamps_tz decimals arrays nested padded_text enum json "
        "float64_into_decimal date_into_timestamp timestamp_into_int64",
    },
)
def write_pandas_native(connection, frame, table):
    """Encode the frame as Native blocks with Arrow and NumPy and send them in the body of a POST request.

    The server parses nothing and converts nothing. The types of the columns come from one DESCRIBE before; UUID texts
    become 16 bytes here, timestamps days. A NaN arrives as NaN.
    """
    _insert(connection, table, frame, _from_pandas)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Native, lz4",
    payload="native columns",
    requires=["httpx", "numpy", "pandas", "pyarrow.compute"],
    settings=INSERT_SETTINGS,
    lossy={
        "refused": "timestamps timestamps_tz decimals arrays nested padded_text enum json "
        "float64_into_decimal date_into_timestamp timestamp_into_int64",
    },
)
def write_pandas_native_lz4(connection, frame, table):
    """Send the frame as Native blocks in a body with Content-Encoding lz4; all else as write_pandas_native."""
    _insert(connection, table, frame, _from_pandas, "lz4")
