"""asyncpg, the asyncio driver that speaks Postgres' binary protocol: https://magicstack.github.io/asyncpg/current/"""

from contextlib import AsyncExitStack, asynccontextmanager

from harness.transports.postgres.sql import identifier, identifiers
from harness.transports.postgres.tables import number_of_connections, page_ranges


@asynccontextmanager
async def connect(uri):
    """Yield one connection; asyncpg commits every statement unless a transaction is open."""
    import asyncpg

    connection = await asyncpg.connect(uri)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def several(uri):
    """Yield one connection per core this process may use, at least 2 and at most 8."""
    import asyncpg

    async with AsyncExitStack() as stack:
        connections = []
        for _ in range(number_of_connections()):
            connections.append(await asyncpg.connect(uri))
            stack.push_async_callback(connections[-1].close)
        yield connections


async def part_queries(connections, table):
    """Return one query per connection for a range of the table's pages; together they cover every row once."""
    pages = await connections[0].fetchval(
        "SELECT pg_relation_size(quote_ident($1::text)::regclass) / current_setting('block_size')::bigint", table
    )
    return page_ranges(table, pages, len(connections))


async def received(connection, table, **options):
    """Return the bytes of COPY ... TO STDOUT with these options, and the type of every column by name."""
    query = f"SELECT * FROM {identifier(table)}"  # COPY of a table omits generated columns
    statement = await connection.prepare(query)
    types = {column.name: column.type.name for column in statement.get_attributes()}
    blocks = []

    async def keep(block):
        blocks.append(block)

    await connection.copy_from_query(query, output=keep, **options)
    return b"".join(blocks), types


async def uuid_positions(connection, table, columns):
    """Ask the server which of the columns are uuid and return their positions (one round trip)."""
    names = identifiers(columns)
    statement = await connection.prepare(f"SELECT {names} FROM {identifier(table)}")
    return [i for i, column in enumerate(statement.get_attributes()) if column.type.name == "uuid"]
