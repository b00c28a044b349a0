"""clickhouse-driver, the native protocol with compression: https://clickhouse-driver.readthedocs.io/"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_driver.client import opened
from harness.transports.clickhouse.sql import identifier

METHOD = "lz4"
# Unless this is set, the server chooses the method (zstd by default since 26.9).
SETTINGS = {"network_compression_method": METHOD}


def connect(uri):
    """Open a compressed connection."""
    return opened(uri, compression=METHOD)


@transport(
    "native fetch as Arrow",
    "native columns",
    requires=["clickhouse_cityhash", "lz4.block", "numpy", "pyarrow"],
    settings=SETTINGS,
)
def read_polars_query_arrow_lz4(connection, table):
    """Fetch native blocks in lz4 with query_arrow, which builds Arrow columns, and hand them to polars.

    Tuned: compression=lz4, for a slow network. Otherwise like query_arrow.
    """
    import polars as pl

    return pl.from_arrow(connection.query_arrow(f"SELECT * FROM {identifier(table)}", settings=SETTINGS))


@transport("native columnar fetch", "columns", requires=["clickhouse_cityhash", "lz4.block"], settings=SETTINGS)
def read_pandas_columnar_lz4(connection, table):
    """Fetch native blocks in lz4 as one sequence of Python objects per column and build the frame from them.

    Tuned: compression=lz4, for a slow network. Otherwise like the published columnar fetch, which is uncompressed.
    """
    import pandas as pd

    data, columns_with_types = connection.execute(
        f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True, settings=SETTINGS
    )
    return pd.DataFrame(
        {
            name: values
            for (name, _), values in zip(columns_with_types, data or [()] * len(columns_with_types), strict=True)
        }
    )
