"""ArrowStream and Parquet over HTTP, in every codec: https://clickhouse.com/docs/interfaces/formats/ArrowStream"""

import io
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# httpx copies what is left of a body after every send: 130 MB in one piece cost a second of nothing else.
PIECE_BYTES = 1 << 20

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}


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


def _send(client, query, settings=None, body=b""):
    """Run one query in one request; a refusal raises RuntimeError with the server's text."""
    pieces = (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
    headers = {"Content-Length": str(len(body))}
    response = client.post("/", params={**(settings or {}), "query": query}, content=pieces, headers=headers)
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")


def _insert(client, table, columns, format_name, body):
    names = identifiers(columns)
    with phase("send"):
        _send(client, f"INSERT INTO {identifier(table)} ({names}) FORMAT {format_name}", INSERT_SETTINGS, body)


def _arrow_table(frame):
    """Return a pandas frame as Arrow; a NaN among floats stays one, which Table.from_pandas would make a null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
            for name, values in frame.items()
        }
    )


def _polars_stream(frame, compression):
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression=compression)
    return buffer.getbuffer()


def _pandas_stream(frame, compression):
    import pyarrow as pa

    table, sink = _arrow_table(frame), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return memoryview(sink.getvalue())


def _polars_parquet(frame, compression):
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression=compression)
    return buffer.getbuffer()


def _pandas_parquet(frame, compression):
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(_arrow_table(frame), sink, compression=compression)
    return memoryview(sink.getvalue())


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT ArrowStream, uncompressed",
    payload="Arrow",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_arrow(connection, frame, table):
    """Send the frame as an uncompressed Arrow stream in the body of a POST request.

    Typed columns cross the wire as they lie in memory; only the UUIDs travel as text and are parsed by the server.
    polars writes texts as string views, which older servers do not know (26.9 does).
    """
    with phase("encode"):
        body = _polars_stream(frame, "uncompressed")
    _insert(connection, table, frame.columns, "ArrowStream", body)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT ArrowStream, lz4",
    payload="Arrow",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_arrow_lz4(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with lz4.

    As write_polars_arrow; the codec is Arrow's own (IPC compression), not HTTP's.
    """
    with phase("encode"):
        body = _polars_stream(frame, "lz4")
    _insert(connection, table, frame.columns, "ArrowStream", body)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT ArrowStream, zstd",
    payload="Arrow",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_arrow_zstd(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with zstd.

    As write_polars_arrow; the codec is Arrow's own (IPC compression), not HTTP's.
    """
    with phase("encode"):
        body = _polars_stream(frame, "zstd")
    _insert(connection, table, frame.columns, "ArrowStream", body)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT ArrowStream, uncompressed",
    payload="Arrow",
    requires=["httpx", "pandas", "pyarrow.ipc"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_arrow(connection, frame, table):
    """Send the frame as an uncompressed Arrow stream in the body of a POST request.

    Typed columns cross the wire; UUIDs travel as text and dates as timestamps, which the server converts. Texts of
    pandas 3 are Arrow already. A NaN arrives as NaN.
    """
    with phase("encode"):
        body = _pandas_stream(frame, None)
    _insert(connection, table, frame.columns, "ArrowStream", body)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT ArrowStream, lz4",
    payload="Arrow",
    requires=["httpx", "pandas", "pyarrow.ipc"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_arrow_lz4(connection, frame, table):
    """Send the frame as an Arrow stream whose buffers are compressed with lz4.

    As write_pandas_arrow; the codec is Arrow's own (IPC compression), not HTTP's.
    """
    with phase("encode"):
        body = _pandas_stream(frame, "lz4")
    _insert(connection, table, frame.columns, "ArrowStream", body)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, uncompressed",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_parquet_uncompressed(connection, frame, table):
    """Send the frame as one Parquet file without compression and without statistics.

    Typed columns cross the wire; only the UUIDs travel as text and are parsed by the server, which reads no statistics
    during an insert. Dictionaries still make repeated texts small.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_parquet(buffer, compression="uncompressed", statistics=False)
    _insert(connection, table, frame.columns, "Parquet", buffer.getbuffer())


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, lz4",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_parquet_lz4(connection, frame, table):
    """Send the frame as one lz4 Parquet file; all else is as polars chooses it."""
    with phase("encode"):
        body = _polars_parquet(frame, "lz4")
    _insert(connection, table, frame.columns, "Parquet", body)


@transport(
    "write",
    frame="polars",
    path="HTTP INSERT FORMAT Parquet, zstd",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32",
    },
)
def write_polars_parquet_zstd(connection, frame, table):
    """Send the frame as one zstd Parquet file: the published way with a client without asyncio, in pieces."""
    with phase("encode"):
        body = _polars_parquet(frame, "zstd")
    _insert(connection, table, frame.columns, "Parquet", body)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Parquet, uncompressed",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_parquet_uncompressed(connection, frame, table):
    """Send the frame as one Parquet file without compression, through pyarrow.

    UUIDs travel as text and dates as timestamps, which the server converts. A NaN arrives as NaN.
    """
    with phase("encode"):
        body = _pandas_parquet(frame, "none")
    _insert(connection, table, frame.columns, "Parquet", body)


@transport(
    "write",
    frame="pandas",
    path="HTTP INSERT FORMAT Parquet, zstd",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 negative_into_unsigned "
        "fraction_into_int32 float64_beyond_float32 dates_beyond",
    },
)
def write_pandas_parquet_zstd(connection, frame, table):
    """Send the frame as one zstd Parquet file, through pyarrow.

    UUIDs travel as text and dates as timestamps, which the server converts. A NaN arrives as NaN.
    """
    with phase("encode"):
        body = _pandas_parquet(frame, "zstd")
    _insert(connection, table, frame.columns, "Parquet", body)
