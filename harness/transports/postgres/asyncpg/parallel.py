"""asyncpg over several connections at once: https://magicstack.github.io/asyncpg/current/"""

import asyncio
from contextlib import AsyncExitStack

from harness.registry import transport
from harness.transports.postgres.asyncpg.client import TYPES, several
from harness.transports.postgres.columns import as_pandas
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import LOCK_TIMEOUT, page_ranges

connect = several


async def _share_snapshot(connections):
    """Put all connections, each in a transaction, under the snapshot of the first one, and limit what they wait."""
    for connection in connections:
        await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    snapshot = await connections[0].fetchval("SELECT pg_export_snapshot()")
    for connection in connections[1:]:
        await connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")


async def _queries(connection, table, number):
    """Return so many queries for ranges of the table's pages; the last range is open, so that no row is left out."""
    pages = await connection.fetchval(
        "SELECT pg_relation_size(quote_ident($1::text)::regclass) / current_setting('block_size')::bigint", table
    )
    return page_ranges(table, pages, number)


async def _read_part(connection, query, parse, types):
    """Collect the CSV of one query and parse it in a thread, while other connections still receive."""
    blocks = []

    async def keep(block):
        blocks.append(block)

    await connection.copy_from_query(query, output=keep, format="csv", header=True)
    return await asyncio.to_thread(parse, b"".join(blocks), types)


async def _read(connections, table, parse):
    """Return the parsed parts of the table in the order of its pages, all as one snapshot has them."""
    async with AsyncExitStack() as transactions:
        for connection in connections:
            transaction = connection.transaction(isolation="repeatable_read", readonly=True)
            await transactions.enter_async_context(transaction)
        await _share_snapshot(connections)
        statement = await connections[0].prepare(f"SELECT * FROM {identifier(table)}")
        types = {column.name: column.type.name for column in statement.get_attributes()}
        queries = await _queries(connections[0], table, len(connections))
        parts = zip(connections, queries, strict=True)
        tasks = (_read_part(*part, parse, types) for part in parts)
        # All are waited for, also after an error: a connection that still receives cannot end its transaction.
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results


def _parse_for_polars(text, types):
    """Parse a part with the types of the table."""
    import polars as pl

    wanted = {name: getattr(pl, TYPES.get(sql_type, ("String",))[0]) for name, sql_type in types.items()}
    # The names in the first line it would take with the quotes in them doubled.
    return pl.read_csv(text, has_header=False, skip_rows=1, schema=wanted)


def _parse_with_arrow(text, types):
    """Parse a part with the types of the table, telling an empty text in quotes from a NULL."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        column_types={name: getattr(pa, TYPES.get(sql_type, ("", "string"))[1])() for name, sql_type in types.items()},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert)


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT, parallel",
    payload="delimited text",
    requires=["polars", "asyncpg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
async def read_polars_copy_csv_parallel(connections, table):
    """Copy ranges of the table's pages as CSV over as many connections as cores, all under one exported snapshot.

    2 to 8 connections. One exports its snapshot (pg_export_snapshot) and the others take it, so that all see the table
    at the same moment: a consistent read. polars parses every part in a thread with the types of the table, of which
    the server is asked; whatever is neither number nor date stays the text that the server prints.
    """
    import polars as pl

    return pl.concat(await _read(connections, table, _parse_for_polars))


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT, parallel",
    payload="delimited text",
    requires=["pandas", "pyarrow", "pyarrow.csv", "asyncpg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
async def read_pandas_copy_csv_parallel(connections, table):
    """Copy ranges of the table's pages as CSV over as many connections as cores, all under one exported snapshot.

    As to polars, a consistent read; Arrow parses every part in a thread. An integer column with nulls comes as Int64
    and the like, a date as datetime64[us], a null among floats as NaN.
    """
    import pyarrow as pa

    return as_pandas(pa.concat_tables(await _read(connections, table, _parse_with_arrow)))
