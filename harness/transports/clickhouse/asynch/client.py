"""asynch, the native protocol for asyncio, a port of clickhouse-driver: https://github.com/long2ice/asynch"""

from contextlib import asynccontextmanager

ENDPOINT = "clickhouse_native"


@asynccontextmanager
async def connect(uri):
    """Yield an open, uncompressed connection.

    Columns go through its protocol connection, `connection._connection`: the cursors of asynch 0.4.0 know only rows.

    Settings are marked important: a server older than 26.5 refuses the inline inserts with code 115 (UNKNOWN_SETTING)
    instead of ignoring a setting it does not know and waiting forever.
    """
    import asynch

    async with asynch.connect(uri, settings_is_important=True) as connection:
        yield connection


async def insert_text(connection, query, settings):
    """Run an INSERT with the rows inside its text."""
    async with connection.cursor() as cursor:
        cursor.set_settings(settings)
        await cursor.execute(query)
