"""asyncpg over several connections in parallel: https://magicstack.github.io/asyncpg/current/"""

import asyncio
from contextlib import AsyncExitStack

from harness.registry import transport
from harness.transports.postgres.asyncpg.client import part_queries, several
from harness.transports.postgres.columns import arrow_of_csv, as_pandas, polars_of_csv
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import LOCK_TIMEOUT

connect = several


async def _share_snapshot(connections):
    """Put all connections, each in a transaction, under the first one's snapshot, and limit their lock waits."""
    for connection in connections:
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    snapshot = await connections[0].fetchval("SELECT pg_export_snapshot()")
    for connection in connections[1:]:
        await connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")


async def _read_part(connection, query, parse, types):
    """Collect the CSV of one query and parse it in a thread, while other connections still receive."""
    blocks = []

    async def keep(block):
        blocks.append(block)

    await connection.copy_from_query(query, output=keep, format="csv", header=True)
    return await asyncio.to_thread(parse, b"".join(blocks), types)


async def _read(connections, table, parse):
    """Return the parsed parts of the table in page order, all from one snapshot."""
    async with AsyncExitStack() as transactions:
        for connection in connections:
            transaction = connection.transaction(isolation="repeatable_read", readonly=True)
            await transactions.enter_async_context(transaction)
        await _share_snapshot(connections)
        statement = await connections[0].prepare(f"SELECT * FROM {identifier(table)}")
        types = {column.name: column.type.name for column in statement.get_attributes()}
        parts = zip(connections, await part_queries(connections, table), strict=True)
        tasks = (_read_part(*part, parse, types) for part in parts)
        # Wait for all, even after an error: a connection that still receives cannot end its transaction.
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


@transport("COPY TO STDOUT, parallel", "delimited text")
async def read_polars_copy_csv_parallel(connections, table):
    """Copy ranges of the table's pages as CSV over one connection per core, all under one exported snapshot.

    2 to 8 connections. One exports its snapshot (pg_export_snapshot) and the others import it, so the read is
    consistent. polars parses every part in a thread with the table's types, which the transport asks the server for.
    Values other than numbers and dates stay strings as the server prints them.
    """
    import polars as pl

    return pl.concat(await _read(connections, table, polars_of_csv))


@transport("COPY TO STDOUT, parallel", "delimited text")
async def read_pandas_copy_csv_parallel(connections, table):
    """Copy ranges of the table's pages as CSV over one connection per core, all under one exported snapshot.

    A consistent read, like read_polars_copy_csv_parallel. Arrow parses every part in a thread. An integer column with
    nulls arrives as a nullable type such as Int64, a date as datetime64[us], a null in a float column as NaN.
    """
    import pyarrow as pa

    return as_pandas(pa.concat_tables(await _read(connections, table, arrow_of_csv)))
