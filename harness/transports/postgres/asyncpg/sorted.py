"""asyncpg with the frame in key order: https://magicstack.github.io/asyncpg/current/"""

import uuid

from harness.registry import phase, transport
from harness.transports.postgres.asyncpg.client import uuid_positions


async def _key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in key order; an empty list without a key."""
    rows = await connection.fetch(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident($1::text)::regclass ORDER BY k.place",
        table,
    )
    return [name for (name,) in rows]


def _with_uuids(rows, positions):
    """Yield every row with the strings at these positions turned into UUID objects; a missing value stays None."""
    for row in rows:
        values = list(row)
        for position in positions:
            values[position] = uuid.UUID(values[position]) if values[position] is not None else None
        yield values


@transport("COPY FROM STDIN (FORMAT binary)", "rows, sorted by key")
async def write_polars_copy_binary_sorted(connection, frame, table):
    """Sort the frame by the table's primary key, then send its rows into a binary COPY like the published transport.

    Otherwise like the published transport: every uuid string becomes a UUID object, and asyncpg stores Python's first
    and last date as -infinity and infinity. Rows in key order go into adjacent places of the index, so the server
    touches each index page once. Without a key the order stays.
    """
    with phase("encode"):
        keys = await _key_columns(connection, table)
        frame = frame.sort([frame[key] for key in keys]) if keys else frame  # the name * would be a pattern
    positions = await uuid_positions(connection, table, frame.columns)
    records = _with_uuids(frame.iter_rows(), positions)
    await connection.copy_records_to_table(table, records=records, columns=frame.columns)
