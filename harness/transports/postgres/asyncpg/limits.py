"""Lower bounds for every transport into and out of Postgres: the server alone, measured in the same run.

asyncpg (https://magicstack.github.io/asyncpg/current/) passes on COPY's data in large pieces.
"""

import asyncio

from harness.registry import transport
from harness.transports.postgres.asyncpg.client import part_queries, several
from harness.transports.postgres.sql import identifier

connect = several


async def _throw_away(connection, query, form):
    """Let COPY send a query's answer, discard it unread, and return the number of rows it sent."""

    async def forget(_):
        pass

    status = await connection.copy_from_query(query, output=forget, format=form)
    return int(status.removeprefix("COPY "))


async def _at_once(connections, table, form):
    queries = await part_queries(connections, table)
    counts = await asyncio.gather(*(_throw_away(*pair, form) for pair in zip(connections, queries, strict=True)))
    return sum(counts)


@transport("COPY TO STDOUT (FORMAT binary), thrown away", "nothing kept", origin="limit")
async def read_copy_binary_thrown_away(connection, table):
    """Let one COPY send the whole table in binary form and discard it: server and network, no client."""
    return await _throw_away(connection[0], f"SELECT * FROM {identifier(table)}", "binary")


@transport("COPY TO STDOUT (FORMAT csv), thrown away", "nothing kept", origin="limit")
async def read_copy_csv_thrown_away(connection, table):
    """Let one COPY send the whole table as CSV and discard it: server and network, no client."""
    return await _throw_away(connection[0], f"SELECT * FROM {identifier(table)}", "csv")


@transport("COPY TO STDOUT (FORMAT binary), thrown away, parallel", "nothing kept", origin="limit")
async def read_copy_binary_thrown_away_parallel(connection, table):
    """Let a COPY on every connection send its range of blocks in binary form and discard it."""
    return await _at_once(connection, table, "binary")


@transport("COPY TO STDOUT (FORMAT csv), thrown away, parallel", "nothing kept", origin="limit")
async def read_copy_csv_thrown_away_parallel(connection, table):
    """Let a COPY on every connection send its range of blocks as CSV and discard it."""
    return await _at_once(connection, table, "csv")


@transport("INSERT SELECT", "nothing", frame="table", origin="limit")
async def write_insert_select(connection, source, table):
    """Let the server copy an unlogged table without a key, in its order: no client, no network, nothing to parse."""
    await connection[0].execute(f"INSERT INTO {identifier(table)} SELECT * FROM {identifier(source)}")


@transport("INSERT SELECT", "nothing", frame="sorted table", origin="limit")
async def write_insert_select_sorted(connection, source, table):
    """Like write_insert_select, from a table in key order: an index that grows only at its end takes less time."""
    await connection[0].execute(f"INSERT INTO {identifier(table)} SELECT * FROM {identifier(source)}")


@transport("INSERT SELECT, parallel", "nothing", frame="sorted table", origin="limit")
async def write_insert_select_sorted_parallel(connection, source, table):
    """Like write_insert_select_sorted on every connection in parallel, each with a range of the table's blocks."""
    inserts = [f"INSERT INTO {identifier(table)} {query}" for query in await part_queries(connection, source)]
    await asyncio.gather(*(one.execute(insert) for one, insert in zip(connection, inserts, strict=True)))


@transport("INSERT SELECT, index afterwards", "nothing", frame="table", origin="limit")
async def write_insert_select_index_afterwards(connection, source, table):
    """Let the server copy an unlogged table without a key, and build the primary key's index afterwards."""
    first, table = connection[0], identifier(table)
    async with first.transaction():
        keys = await first.fetch(
            "SELECT quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint "
            "WHERE conrelid = $1::text::regclass AND contype = 'p'",
            table,
        )
        for name, _ in keys:
            await first.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}")
        await first.execute(f"INSERT INTO {table} SELECT * FROM {identifier(source)}")
        for name, definition in keys:
            await first.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")
