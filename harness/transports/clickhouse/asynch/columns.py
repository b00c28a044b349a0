"""asynch beyond plain columns: rows with executemany, and compression: https://github.com/long2ice/asynch"""

from contextlib import AsyncExitStack, asynccontextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.asynch.client import insert_columns
from harness.transports.clickhouse.columns import pandas_lists_with_none, pandas_rows, polars_lists
from harness.transports.clickhouse.server import INSERT_SETTINGS
from harness.transports.clickhouse.sql import insert_into

# Codec of the server's answers. The default is zstd since 26.9, which asynch 0.4.0 fails to read ("argument 1 must be
# read-only bytes-like object, not bytearray").
COMPRESSED_INSERT_SETTINGS = {**INSERT_SETTINGS, "network_compression_method": "LZ4"}


@asynccontextmanager
async def connect(uri):
    """Yield open connections by compression.

    Columns go through the protocol connection, `._connection`, because cursors of asynch 0.4.0 support only rows.
    """
    import asynch

    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(asynch.connect(uri, compression=name != "plain" and name))
            for name in ("plain", "lz4", "zstd")
        }


async def _insert_rows(connection, frame, table, encode):
    with phase("encode"):
        rows = encode(frame)
    with phase("send"):
        async with connection.cursor() as cursor:
            cursor.set_settings(INSERT_SETTINGS)
            await cursor.executemany(f"{insert_into(table, frame.columns)} VALUES", rows)


@transport("executemany", "rows", requires=["clickhouse_cityhash", "lz4.block", "zstd"], settings=INSERT_SETTINGS)
async def write_polars_executemany(connection, frame, table):
    """Pass all rows to executemany() as tuples; the client turns them into columns of typed native blocks."""
    await _insert_rows(connection["plain"], frame, table, lambda frame: frame.rows())


@transport("executemany", "rows", requires=["clickhouse_cityhash", "lz4.block", "zstd"], settings=INSERT_SETTINGS)
async def write_pandas_executemany(connection, frame, table):
    """Pass all rows to executemany() as tuples; the client turns them into columns of typed native blocks."""
    await _insert_rows(connection["plain"], frame, table, pandas_rows)


@transport(
    "native columnar insert, lz4",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "zstd"],
    settings=COMPRESSED_INSERT_SETTINGS,
)
async def write_polars_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    await insert_columns(connection["lz4"], frame, table, COMPRESSED_INSERT_SETTINGS, polars_lists)


@transport(
    "native columnar insert, zstd",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "zstd"],
    settings=COMPRESSED_INSERT_SETTINGS,
)
async def write_polars_columnar_zstd(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with zstd.

    The published columnar insert, which does not compress, plus compression. The server parses nothing. The client
    creates one Python object per value and parses the UUID strings.
    """
    await insert_columns(connection["zstd"], frame, table, COMPRESSED_INSERT_SETTINGS, polars_lists)


@transport(
    "native columnar insert, lz4",
    "columns",
    requires=["clickhouse_cityhash", "lz4.block", "zstd"],
    settings=COMPRESSED_INSERT_SETTINGS,
)
async def write_pandas_columnar_lz4(connection, frame, table):
    """Send every column as a list of Python objects in native blocks compressed with lz4.

    The published columnar insert, which does not compress, plus compression. The client converts each date through a
    Timestamp.
    """
    await insert_columns(connection["lz4"], frame, table, COMPRESSED_INSERT_SETTINGS, pandas_lists_with_none)
