"""httpx, an HTTP client, with answers in Arrow: https://clickhouse.com/docs/interfaces/formats/ArrowStream"""

import io

from harness.registry import phase, transport
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.sql import identifier

# lz4_frame is the server's default, set explicitly because it may change.
ARROW_LZ4 = {**PLAIN, "output_format_arrow_compression_method": "lz4_frame"}
ARROW_ZSTD = {**PLAIN, "output_format_arrow_compression_method": "zstd"}
ARROW_UNCOMPRESSED = {**PLAIN, "output_format_arrow_compression_method": "none"}

# Arrow's compression off, HTTP's on.
HTTP_COMPRESSED = {"enable_http_compression": "1", "output_format_arrow_compression_method": "none"}

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def _stream(client, table, settings, *how):
    """Fetch the table as an Arrow stream. Raises RuntimeError without an end mark, which readers do not require."""
    answer = ask(client, f"SELECT * FROM {identifier(table)} FORMAT ArrowStream", settings, *how)
    if not answer.endswith(END_OF_STREAM):
        raise RuntimeError(f"the Arrow stream of {len(answer)} bytes breaks off: it has no end mark")
    return answer


def _polars_frame(client, table, settings, *how):
    """Fetch the table as an Arrow stream and decode it with polars."""
    import polars as pl

    with phase("receive"):
        arrow = _stream(client, table, settings, *how)
    with phase("decode"):
        return pl.read_ipc_stream(io.BytesIO(arrow))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_LZ4)
def read_polars_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream and let polars decode it, without pyarrow.

    Each batch of the stream is one server block. A UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    return _polars_frame(connection, table, ARROW_LZ4)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_LZ4)
def read_pandas_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream and keep its columns in pandas.

    Each batch of the stream is one server block. The columns keep their Arrow types (pandas.ArrowDtype): no value
    becomes a Python object, and nulls stay nulls.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        arrow = _stream(connection, table, ARROW_LZ4)
    with phase("decode"), pa.ipc.open_stream(arrow) as reader:
        return reader.read_all().to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_polars_arrow_stream_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow stream and let polars decode it, without pyarrow.

    Tuned: output_format_arrow_compression_method=none, for a fast network. A UUID arrives as 16 bytes (Binary), in the
    order of its string form.
    """
    return _polars_frame(connection, table, ARROW_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_pandas_arrow_stream_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow stream and keep its columns in pandas.

    Tuned: output_format_arrow_compression_method=none, for a fast network. The columns keep their Arrow types
    (pandas.ArrowDtype): no value becomes a Python object, and nulls stay nulls.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        arrow = _stream(connection, table, ARROW_UNCOMPRESSED)
    with phase("decode"), pa.ipc.open_stream(arrow) as reader:
        return reader.read_all().to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_ZSTD)
def read_polars_arrow_stream_zstd(connection, table):
    """Fetch the table as one zstd Arrow stream and let polars decode it, without pyarrow.

    Tuned: output_format_arrow_compression_method=zstd, for a slow network. A UUID arrives as 16 bytes (Binary), in the
    order of its string form.
    """
    return _polars_frame(connection, table, ARROW_ZSTD)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=HTTP_COMPRESSED)
def read_polars_arrow_stream_http_lz4(connection, table):
    """Fetch the table as one Arrow stream with HTTP compression lz4 and let polars decode it, without pyarrow.

    Tuned: HTTP compresses the whole answer (Accept-Encoding: lz4) instead of Arrow its columns. httpx does not support
    lz4, so this function decompresses the body. A UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    import lz4.frame

    return _polars_frame(connection, table, HTTP_COMPRESSED, "lz4", lz4.frame.decompress)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["zstandard"], settings=HTTP_COMPRESSED)
def read_polars_arrow_stream_http_zstd(connection, table):
    """Fetch the table as one Arrow stream with HTTP compression zstd and let polars decode it, without pyarrow.

    Tuned: HTTP compresses the whole answer (Accept-Encoding: zstd) instead of Arrow its columns. A UUID arrives as 16
    bytes (Binary), in the order of its string form.
    """
    return _polars_frame(connection, table, HTTP_COMPRESSED, "zstd")


@transport("HTTP SELECT FORMAT Arrow", "Arrow", settings=ARROW_LZ4)
def read_polars_arrow_file(connection, table):
    """Fetch the table as one lz4 Arrow file and let polars decode it, without pyarrow.

    A UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    import polars as pl

    with phase("receive"):
        arrow = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT Arrow", ARROW_LZ4)
    with phase("decode"):
        return pl.read_ipc(io.BytesIO(arrow))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", settings=ARROW_LZ4)
def read_pandas_arrow_file(connection, table):
    """Fetch the table as one lz4 Arrow file and keep its columns in pandas.

    The columns keep their Arrow types (pandas.ArrowDtype): no value becomes a Python object, and nulls stay nulls.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        arrow = ask(connection, f"SELECT * FROM {identifier(table)} FORMAT Arrow", ARROW_LZ4)
    with phase("decode"), pa.ipc.open_file(arrow) as reader:
        return reader.read_all().to_pandas(types_mapper=pd.ArrowDtype)
