"""clickhouse-connect, the official HTTP client: Arrow, native columns, raw bytes: https://clickhouse.com/docs/integrations/python"""

import io

from harness.registry import Unsupported, phase, transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS, ARROW_UNCOMPRESSED, select
from harness.transports.clickhouse.server import PARQUET_SETTINGS

ARROW_ZSTD = {"output_format_arrow_compression_method": "zstd"}


def _table(batches):
    """Return all batches of a stream as one table."""
    import pyarrow as pa

    table = pa.Table.from_batches(batches, schema=batches.gen.schema)
    _read_to_the_end(batches)
    return table


def _read_to_the_end(stream):
    """Raise RuntimeError, or the client's exception, unless the answer ends at Arrow's end mark.

    pyarrow, and with it the client, stops reading at the end mark. If the server broke the answer off, its error
    message follows the mark. An answer without an end mark that HTTP reports as complete goes unnoticed.
    """
    if stream.source.read():
        raise RuntimeError("ClickHouse failed in the middle of its answer")


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and hand it to polars.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. polars copies the strings. It has no UUID type: a UUID
    arrives as 16 bytes (Binary), in the order of its string form.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_SETTINGS))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_UNCOMPRESSED)
def read_polars_query_arrow_uncompressed(connection, table):
    """Fetch the table as one uncompressed Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=none, for a fast network. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_UNCOMPRESSED))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_ZSTD)
def read_polars_query_arrow_zstd(connection, table):
    """Fetch the table as one zstd Arrow file with query_arrow and hand it to polars.

    Tuned: output_format_arrow_compression_method=zstd, for a slow network. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(select(table), settings=ARROW_ZSTD))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_arrow(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and convert it to pandas' own types.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. UUIDs and dates become one Python object per value.
    Integers with nulls become float64, and a null in a float column becomes NaN.
    """
    return connection.query_arrow(select(table), settings=ARROW_SETTINGS).to_pandas()


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_arrow_types(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow and keep its Arrow columns in pandas.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. The columns keep their Arrow types (pandas.ArrowDtype):
    nothing is copied, and nulls stay nulls.
    """
    import pandas as pd

    arrow = connection.query_arrow(select(table), settings=ARROW_SETTINGS)
    return arrow.to_pandas(types_mapper=pd.ArrowDtype)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_polars_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and hand them to polars.

    The client decodes each batch while it receives the next ones. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return pl.from_arrow(_table(batches))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_pandas_query_arrow_stream(connection, table):
    """Fetch the table as a stream of lz4 Arrow batches with query_arrow_stream and turn them into pandas' own types.

    The client decodes each batch while it receives the next ones. UUIDs and dates become one Python object per value.
    Integers with nulls become float64, and a null in a float column becomes NaN.
    """
    with connection.query_arrow_stream(select(table), settings=ARROW_SETTINGS) as batches:
        return _table(batches).to_pandas()


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow(dataframe_library="polars"): query_arrow and from_arrow in one call.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. A UUID arrives as 16 bytes (Binary).
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_df_arrow(connection, table):
    """Fetch the table with query_df_arrow, which keeps the Arrow columns in pandas (pandas.ArrowDtype).

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression, because Arrow has its own. Nothing is copied, and nulls stay nulls.
    """
    return connection.query_df_arrow(select(table), settings=ARROW_SETTINGS)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_polars_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of polars frames with query_df_arrow_stream and concatenate them.

    Each frame is one server block of about 8,000 rows. A UUID arrives as 16 bytes (Binary). A table without rows has no
    block and raises ValueError.
    """
    import polars as pl

    query = connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS, dataframe_library="polars")
    with query as frames:
        frame = pl.concat(frames)
        _read_to_the_end(frames)
        return frame


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", requires=["pyarrow"], settings=ARROW_SETTINGS)
def read_pandas_query_df_arrow_stream(connection, table):
    """Fetch the table as a stream of pandas frames with query_df_arrow_stream and concatenate them.

    Each frame has Arrow columns (pandas.ArrowDtype) and is one server block of about 8,000 rows. A table without rows
    has no block and raises ValueError.
    """
    import pandas as pd

    with connection.query_df_arrow_stream(select(table), settings=ARROW_SETTINGS) as frames:
        frame = pd.concat(frames, ignore_index=True)
        _read_to_the_end(frames)
        return frame


def _objects(values):
    """Return a column of Python objects as polars accepts it: dates next to nulls are numpy's, which polars refuses."""
    import numpy as np

    first = next((value for value in values if value is not None), None)
    return values.astype(first.dtype) if isinstance(first, np.datetime64) else values.tolist()


def _named(array):
    if array.dtype.names is None:
        raise Unsupported("query_np returns no column names if all columns have one type, or if there are no rows")
    return array


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df(connection, table):
    """Fetch native blocks with query_df, the client's own method for pandas.

    The client offers every compression it finds installed, and ClickHouse picks zstd. The server holds back the whole
    answer until the query ends (wait_end_of_query=1). UUIDs become one Python object per value, and strings pandas'
    nullable string type. A table without rows arrives without columns.
    """
    return connection.query_df(select(table))


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["lz4.frame", "numpy"])
def read_pandas_query_df_lz4(connection, table):
    """Fetch native blocks with query_df, compressed with lz4.

    Tuned: the header Accept-Encoding requests lz4. Otherwise like query_df.
    """
    return connection.query_df(select(table), transport_settings={"Accept-Encoding": "lz4"})


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df_uncompressed(connection, table):
    """Fetch native blocks with query_df, uncompressed.

    Tuned: the header Accept-Encoding requests no compression. Otherwise like query_df.
    """
    return connection.query_df(select(table), transport_settings={"Accept-Encoding": "identity"})


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_df_stream(connection, table):
    """Fetch native blocks as a stream of pandas frames with query_df_stream and concatenate them.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Each frame is one server block,
    built while the next blocks arrive. UUIDs become one Python object per value, and strings pandas' nullable string
    type. A table without rows has no block and raises ValueError.
    """
    import pandas as pd

    with connection.query_df_stream(select(table)) as frames:
        return pd.concat(frames, ignore_index=True)


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_np(connection, table):
    """Fetch native blocks as one structured numpy array with query_np and hand it to polars.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Every string passes through a
    Python object. UUIDs arrive as uuid.UUID, which polars can only hold in its Object type.
    """
    import polars as pl

    array = _named(connection.query_np(select(table)))
    columns = {name: array[name] for name in array.dtype.names}
    return pl.DataFrame(
        {name: _objects(values) if values.dtype == object else values for name, values in columns.items()}
    )


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["numpy"])
def read_pandas_query_np(connection, table):
    """Fetch native blocks as one structured numpy array with query_np and hand it to pandas.

    The client offers every compression it finds installed, and ClickHouse picks zstd. Every string passes through a
    Python object. UUIDs stay objects (uuid.UUID).
    """
    import pandas as pd

    return pd.DataFrame(_named(connection.query_np(select(table))))


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_columns(connection, table):
    """Fetch native blocks as one sequence of Python objects per column with query() and build the frame from them.

    The client offers every compression it finds installed, and ClickHouse picks zstd. UUIDs arrive as uuid.UUID, which
    polars can only hold in its Object type. Integers become Int64.
    """
    import polars as pl

    result = connection.query(select(table), column_oriented=True)
    return pl.DataFrame(dict(zip(result.column_names, result.result_columns, strict=True)))


@transport("HTTP SELECT FORMAT Native", "native columns")
def read_polars_query_columns_uuid_text(connection, table):
    """Fetch native blocks as one sequence of Python objects per column with query() and UUIDs as strings.

    Tuned: query_formats={"UUID": "string"} turns each UUID into a string instead of an object. Integers become Int64.
    """
    import polars as pl

    result = connection.query(select(table), column_oriented=True, query_formats={"UUID": "string"})
    return pl.DataFrame(dict(zip(result.column_names, result.result_columns, strict=True)))


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_SETTINGS)
def read_polars_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let polars decode it.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with phase("receive"):
        parquet = connection.raw_query(select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_SETTINGS)
def read_pandas_raw_query_parquet(connection, table):
    """Fetch the table as one zstd Parquet file with raw_query and let pandas decode it.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. The columns keep their Arrow types (dtype_backend="pyarrow"): no value becomes a
    Python object, and nulls stay nulls.
    """
    import pandas as pd
    import pyarrow as pa

    with phase("receive"):
        parquet = connection.raw_query(select(table), fmt="Parquet", settings=PARQUET_SETTINGS)
    with phase("decode"):
        return pd.read_parquet(pa.BufferReader(parquet), dtype_backend="pyarrow")


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def read_polars_raw_query_arrow_stream(connection, table):
    """Fetch the table as one lz4 Arrow stream with raw_query and let polars decode it, without pyarrow.

    With wait_end_of_query=1 the client makes the server hold back the whole answer until the query ends. The client
    requests no HTTP compression. A UUID arrives as 16 bytes (Binary).
    """
    import polars as pl

    with phase("receive"):
        arrow = connection.raw_query(select(table), fmt="ArrowStream", settings=ARROW_SETTINGS)
    with phase("decode"):
        return pl.read_ipc_stream(io.BytesIO(arrow))


def _arrow_of_stream(connection, table):
    """Return the table as Arrow, which pyarrow reads from an uncompressed stream while it arrives."""
    import pyarrow as pa

    query = connection.raw_stream(select(table), fmt="ArrowStream", settings=ARROW_UNCOMPRESSED)
    with query as stream, pa.ipc.open_stream(stream) as reader:
        arrow = reader.read_all()
        if stream.read():  # pyarrow stops at the end mark; an error message may follow it
            raise RuntimeError("ClickHouse failed in the middle of its answer")
    return arrow


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_polars_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never all in memory. A UUID arrives as 16 bytes
    (Binary).
    """
    import polars as pl

    return pl.from_arrow(_arrow_of_stream(connection, table))


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_UNCOMPRESSED)
def read_pandas_raw_stream_arrow(connection, table):
    """Let pyarrow read one uncompressed Arrow stream from raw_stream while it arrives.

    Tuned: output_format_arrow_compression_method=none. The bytes are never all in memory. The columns keep their Arrow
    types (pandas.ArrowDtype).
    """
    import pandas as pd

    return _arrow_of_stream(connection, table).to_pandas(types_mapper=pd.ArrowDtype)
