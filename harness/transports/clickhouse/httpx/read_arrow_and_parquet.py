"""httpx, an HTTP client, with answers in Arrow and Parquet, in every codec: https://clickhouse.com/docs/interfaces/formats"""

import io

from harness.registry import phase, transport
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.server import PARQUET_LZ4_SETTINGS, PARQUET_SETTINGS
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


def _polars_stream(client, table, settings, *how):
    """Fetch the table as an Arrow stream and decode it with polars."""
    import polars as pl

    with phase("receive"):
        arrow = _stream(client, table, settings, *how)
    with phase("decode"):
        return pl.read_ipc_stream(io.BytesIO(arrow))


def _pandas_stream(client, table, settings):
    """Fetch the table as an Arrow stream and decode it with pyarrow for pandas, whose columns stay Arrow."""
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        arrow = _stream(client, table, settings)
    with phase("decode"), pa.ipc.open_stream(arrow) as reader:
        return reader.read_all().to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_LZ4)
def read_polars_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream and let polars decode it, without pyarrow.

    Each batch of the stream is one server block. A UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    return _polars_stream(connection, table, ARROW_LZ4)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_LZ4)
def read_pandas_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream and keep its columns in pandas.

    Each batch of the stream is one server block. The columns keep their Arrow types (pandas.ArrowDtype): no value
    becomes a Python object, and nulls stay nulls.
    """
    return _pandas_stream(connection, table, ARROW_LZ4)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_polars_arrow_stream_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow stream and let polars decode it, without pyarrow.

    Tuned: output_format_arrow_compression_method=none, for a fast network. A UUID arrives as 16 bytes (Binary), in the
    order of its string form.
    """
    return _polars_stream(connection, table, ARROW_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_pandas_arrow_stream_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow stream and keep its columns in pandas.

    Tuned: output_format_arrow_compression_method=none, for a fast network. The columns keep their Arrow types
    (pandas.ArrowDtype): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_stream(connection, table, ARROW_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_ZSTD)
def read_polars_arrow_stream_zstd(connection, table):
    """Fetch the table as one zstd Arrow stream and let polars decode it, without pyarrow.

    Tuned: output_format_arrow_compression_method=zstd, for a slow network. A UUID arrives as 16 bytes (Binary), in the
    order of its string form.
    """
    return _polars_stream(connection, table, ARROW_ZSTD)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=HTTP_COMPRESSED)
def read_polars_arrow_stream_http_lz4(connection, table):
    """Fetch the table as one Arrow stream with HTTP compression lz4 and let polars decode it, without pyarrow.

    Tuned: HTTP compresses the whole answer (Accept-Encoding: lz4) instead of Arrow its columns. httpx does not support
    lz4, so this function decompresses the body. A UUID arrives as 16 bytes (Binary), in the order of its string form.
    """
    import lz4.frame

    return _polars_stream(connection, table, HTTP_COMPRESSED, "lz4", lz4.frame.decompress)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["zstandard"], settings=HTTP_COMPRESSED)
def read_polars_arrow_stream_http_zstd(connection, table):
    """Fetch the table as one Arrow stream with HTTP compression zstd and let polars decode it, without pyarrow.

    Tuned: HTTP compresses the whole answer (Accept-Encoding: zstd) instead of Arrow its columns. A UUID arrives as 16
    bytes (Binary), in the order of its string form.
    """
    return _polars_stream(connection, table, HTTP_COMPRESSED, "zstd")


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


PARQUET_ZSTD = {**PLAIN, **PARQUET_SETTINGS}
PARQUET_LZ4 = {**PLAIN, **PARQUET_LZ4_SETTINGS}
PARQUET_UNCOMPRESSED = {**PARQUET_ZSTD, "output_format_parquet_compression_method": "none"}
PARQUET_ROW_GROUPS = {**PARQUET_LZ4, "output_format_parquet_row_group_size": "50000"}


def _polars_parquet(client, table, settings):
    """Fetch the table as Parquet and decode it with polars."""
    import polars as pl

    with phase("receive"):
        parquet = ask(client, f"SELECT * FROM {identifier(table)} FORMAT Parquet", settings)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


def _pandas_parquet(client, table, settings):
    """Fetch the table as Parquet and decode it with pandas, whose columns stay Arrow."""
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        parquet = ask(client, f"SELECT * FROM {identifier(table)} FORMAT Parquet", settings)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(parquet), dtype_backend="pyarrow")


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_UNCOMPRESSED)
def read_polars_parquet_uncompressed(connection, table):
    """Fetch the table as one uncompressed Parquet file and let polars decode it.

    Tuned: output_format_parquet_compression_method=none, for a fast network. A UUID arrives as 16 bytes (Binary), in
    the order of its string form.
    """
    return _polars_parquet(connection, table, PARQUET_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_UNCOMPRESSED)
def read_pandas_parquet_uncompressed(connection, table):
    """Fetch the table as one uncompressed Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=none, for a fast network. The columns keep their Arrow types
    (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_parquet(connection, table, PARQUET_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_LZ4)
def read_polars_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let polars decode it.

    Tuned: output_format_parquet_compression_method=lz4, which takes both sides less time than the default zstd. A UUID
    arrives as 16 bytes (Binary), in the order of its string form.
    """
    return _polars_parquet(connection, table, PARQUET_LZ4)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_LZ4)
def read_pandas_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=lz4, which takes both sides less time than the default zstd. The
    columns keep their Arrow types (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_parquet(connection, table, PARQUET_LZ4)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_ROW_GROUPS)
def read_polars_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let polars decode it.

    Tuned: output_format_parquet_row_group_size=50000 plus lz4. The reader decodes row groups in parallel. With the
    default of a million rows most tables have only one. A UUID arrives as 16 bytes (Binary), in the order of its string
    form.
    """
    return _polars_parquet(connection, table, PARQUET_ROW_GROUPS)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_ROW_GROUPS)
def read_pandas_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let pandas decode it.

    Tuned: output_format_parquet_row_group_size=50000 plus lz4. The reader decodes row groups in parallel. With the
    default of a million rows most tables have only one. The columns keep their Arrow types (dtype_backend="pyarrow"):
    no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_parquet(connection, table, PARQUET_ROW_GROUPS)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_ZSTD)
def read_pandas_parquet_lossless(connection, table):
    """Fetch the table as one zstd Parquet file and keep its Arrow columns in pandas.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here the columns
    keep their Arrow types (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_parquet(connection, table, PARQUET_ZSTD)
