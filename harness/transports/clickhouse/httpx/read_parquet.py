"""httpx, an HTTP client, with answers in Parquet: https://clickhouse.com/docs/interfaces/formats/Parquet"""

import io

from harness.registry import phase, transport
from harness.transports.clickhouse.httpx.client import PLAIN, ask
from harness.transports.clickhouse.server import PARQUET_LZ4_SETTINGS, PARQUET_SETTINGS
from harness.transports.clickhouse.sql import identifier

PARQUET_ZSTD = {**PLAIN, **PARQUET_SETTINGS}
PARQUET_LZ4 = {**PLAIN, **PARQUET_LZ4_SETTINGS}
PARQUET_UNCOMPRESSED = {**PARQUET_ZSTD, "output_format_parquet_compression_method": "none"}
PARQUET_ROW_GROUPS = {**PARQUET_LZ4, "output_format_parquet_row_group_size": "50000"}


def _polars_frame(client, table, settings):
    """Fetch the table as Parquet and decode it with polars."""
    import polars as pl

    with phase("receive"):
        parquet = ask(client, f"SELECT * FROM {identifier(table)} FORMAT Parquet", settings)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


def _pandas_frame(client, table, settings):
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
    return _polars_frame(connection, table, PARQUET_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_UNCOMPRESSED)
def read_pandas_parquet_uncompressed(connection, table):
    """Fetch the table as one uncompressed Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=none, for a fast network. The columns keep their Arrow types
    (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_frame(connection, table, PARQUET_UNCOMPRESSED)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_LZ4)
def read_polars_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let polars decode it.

    Tuned: output_format_parquet_compression_method=lz4, which takes both sides less time than the default zstd. A UUID
    arrives as 16 bytes (Binary), in the order of its string form.
    """
    return _polars_frame(connection, table, PARQUET_LZ4)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_LZ4)
def read_pandas_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=lz4, which takes both sides less time than the default zstd. The
    columns keep their Arrow types (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_frame(connection, table, PARQUET_LZ4)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", settings=PARQUET_ROW_GROUPS)
def read_polars_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let polars decode it.

    Tuned: output_format_parquet_row_group_size=50000 plus lz4. The reader decodes row groups in parallel. With the
    default of a million rows most tables have only one. A UUID arrives as 16 bytes (Binary), in the order of its string
    form.
    """
    return _polars_frame(connection, table, PARQUET_ROW_GROUPS)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_ROW_GROUPS)
def read_pandas_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let pandas decode it.

    Tuned: output_format_parquet_row_group_size=50000 plus lz4. The reader decodes row groups in parallel. With the
    default of a million rows most tables have only one. The columns keep their Arrow types (dtype_backend="pyarrow"):
    no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_frame(connection, table, PARQUET_ROW_GROUPS)


@transport("HTTP SELECT FORMAT Parquet", "Parquet", requires=["pyarrow.parquet"], settings=PARQUET_ZSTD)
def read_pandas_parquet_lossless(connection, table):
    """Fetch the table as one zstd Parquet file and keep its Arrow columns in pandas.

    The published read turns integers with nulls into float64, and a null in a float column into NaN. Here the columns
    keep their Arrow types (dtype_backend="pyarrow"): no value becomes a Python object, and nulls stay nulls.
    """
    return _pandas_frame(connection, table, PARQUET_ZSTD)
