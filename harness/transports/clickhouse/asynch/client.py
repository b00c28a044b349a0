"""asynch, the native protocol for asyncio, a port of clickhouse-driver: https://github.com/long2ice/asynch"""

from contextlib import asynccontextmanager

from harness.registry import phase
from harness.transports.clickhouse.sql import insert_into

ENDPOINT = "clickhouse_native"


@asynccontextmanager
async def connect(uri):
    """Yield an open, uncompressed connection.

    Columns go through its protocol connection, `connection._connection`, because cursors of asynch 0.4.0 support only
    rows.

    Settings are marked as important. A server older than 26.5 therefore refuses inline inserts with code 115
    (UNKNOWN_SETTING). Otherwise it would ignore the unknown setting and wait forever.
    """
    import asynch

    async with asynch.connect(uri, settings_is_important=True) as connection:
        yield connection


async def insert_text(connection, frame, table, settings, format_name, encode, *how):
    """Encode a frame as text with `encode(frame, *how)`, and run an INSERT whose text contains it."""
    with phase("encode"):
        payload = encode(frame, *how)
    with phase("send"):
        async with connection.cursor() as cursor:
            cursor.set_settings(settings)
            await cursor.execute(f"{insert_into(table, frame.columns)} FORMAT {format_name}\n{payload}")


async def insert_columns(connection, frame, table, settings, encode):
    """Insert the columns of a frame, as the lists of `encode(frame)`, which the client packs into native blocks."""
    with phase("encode"):
        columns = encode(frame)
    query = f"{insert_into(table, frame.columns)} VALUES"
    with phase("send"):
        await connection._connection.execute(query, args=columns, columnar=True, settings=settings)
