"""asynch, the native protocol for asyncio, without loss: https://github.com/long2ice/asynch"""

from contextlib import asynccontextmanager

from harness.registry import transport
from harness.transports.clickhouse.sql import identifier

CLIENT = "asynch"
ENDPOINT = "clickhouse_native"


@asynccontextmanager
async def connect(uri):
    """Yield an open, uncompressed connection.

    Columns go through its protocol connection, `connection._connection`: the cursors of asynch 0.4.0 know only rows.
    """
    import asynch

    async with asynch.connect(uri) as connection:
        yield connection


def _typed(values, kind):
    """Return a column for pandas: Arrow where a number may be null (None and NaN differ there), all else as it is."""
    import pandas as pd
    import pyarrow as pa

    kind = kind.removeprefix("LowCardinality(")
    if not kind.startswith(("Nullable(Int", "Nullable(UInt", "Nullable(Float")):
        return values
    return pd.arrays.ArrowExtensionArray(pa.array(values, pa.type_for_alias(kind[9:].rstrip(")").lower())))


@transport(
    "read",
    frame="pandas",
    path="native columnar fetch",
    payload="columns",
    requires=["asynch", "pandas", "pyarrow"],
    lossy={"changed": "timestamps_tz"},
)
async def read_pandas_columnar_lossless(connection, table):
    """Fetch native blocks as one sequence of Python objects per column and keep nulls among numbers: nothing is lost.

    The published read makes float64 of integers with nulls and NaN of a null among floats; here these columns are Arrow
    (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    data, columns_with_types = await connection._connection.execute(
        f"SELECT * FROM {identifier(table)}", with_column_types=True, columnar=True
    )
    columns = zip(columns_with_types, data or [()] * len(columns_with_types), strict=True)
    return pd.DataFrame({name: _typed(values, kind) for (name, kind), values in columns})


@transport(
    "read",
    frame="pandas",
    path="row fetch",
    payload="rows",
    requires=["asynch", "pandas", "pyarrow"],
    lossy={"changed": "timestamps_tz"},
)
async def read_pandas_rows_lossless(connection, table):
    """Fetch all rows as tuples through a cursor, turn them into columns and keep nulls among numbers: nothing is lost.

    The published read makes float64 of integers with nulls and NaN of a null among floats; here these columns are Arrow
    (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd

    async with connection.cursor() as cursor:
        await cursor.execute(f"SELECT * FROM {identifier(table)}")
        rows = await cursor.fetchall()
        columns = zip(
            cursor.description, zip(*rows, strict=True) if rows else [()] * len(cursor.description), strict=True
        )
    return pd.DataFrame({column.name: _typed(values, column.type_code) for column, values in columns})
