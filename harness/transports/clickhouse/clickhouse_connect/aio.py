"""clickhouse-connect's client for asyncio: https://clickhouse.com/docs/integrations/python

It sends and receives over aiohttp, and decodes in the codec of the other client.
"""

from contextlib import asynccontextmanager

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS, arguments, select
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import identifier


@asynccontextmanager
async def connect(uri):
    """Yield a client with an open connection, as by default."""
    import clickhouse_connect

    async with await clickhouse_connect.get_async_client(**arguments(uri)) as client:
        yield client


@transport("HTTP SELECT FORMAT Native", "native columns", requires=["aiohttp", "numpy"])
async def read_pandas_query_df_async(connection, table):
    """Fetch Native blocks with query_df of the client for asyncio. A table without rows comes without columns."""
    return await connection.query_df(select(table))


@transport("HTTP SELECT FORMAT Arrow", "Arrow", requires=["aiohttp", "pyarrow"], settings=ARROW_SETTINGS)
async def read_polars_query_arrow_async(connection, table):
    """Fetch the table as one lz4 Arrow file with query_arrow of the client for asyncio and hand it to polars.

    A UUID arrives as 16 bytes of Binary.
    """
    import polars as pl

    return pl.from_arrow(await connection.query_arrow(select(table), settings=ARROW_SETTINGS))


@transport("insert_df, lz4", "native columns", requires=["aiohttp", "lz4.frame", "numpy"], settings=INSERT_SETTINGS)
async def write_pandas_df_async(connection, frame, table):
    """Send the frame with insert_df of the client for asyncio. A NaN becomes a null in a Nullable column."""
    await connection.insert_df(identifier(table), frame, settings=INSERT_SETTINGS)
