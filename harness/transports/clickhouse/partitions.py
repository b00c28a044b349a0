"""The work of workers on parts of the rows in ClickHouse: exactly once, all or nothing, or from one snapshot.

Tokens: https://clickhouse.com/docs/operations/settings/settings#insert_deduplication_token, clones:
https://clickhouse.com/docs/sql-reference/statements/create/table#with-a-schema-and-data-cloned-from-another-table
"""

from contextlib import contextmanager

from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier, literal
from harness.transports.parts import batches, write_part

WINDOW = 10_000  # insert tokens that a table remembers: more than a load has parts


def insert_part(uri, table, source, group):
    """Insert a row group of a Parquet file as one block of Arrow; a repetition duplicates the rows."""
    return _insert(uri, table, source, group, INSERT_SETTINGS)


def insert_part_once(uri, table, source, group):
    """Insert a row group under its own token: the table drops a block whose token it remembers.

    A repetition must have the same blocks. One INSERT of the same rows in the same order makes the same blocks.
    """
    token = {"insert_deduplicate": "1", "insert_deduplication_token": f"{table}/{group}"}
    return _insert(uri, table, source, group, INSERT_SETTINGS | token)


def _insert(uri, table, source, group, settings):
    import pyarrow as pa

    arrow = pa.Table.from_batches(batches(source, [group]))
    with sessionless(uri) as client:
        # clickhouse-connect keeps a name that is already quoted
        client.insert_arrow(identifier(table), arrow, settings=settings)
    return arrow.num_rows


@contextmanager
def remembering(uri, table):
    """Have a MergeTree table remember insert tokens for the block; by default it forgets them."""
    with sessionless(uri) as client:
        remember = f"ALTER TABLE {identifier(table)} MODIFY SETTING non_replicated_deduplication_window"
        before = client.query(
            "SELECT extract(create_table_query, 'non_replicated_deduplication_window = (\\\\d+)') FROM system.tables "
            f"WHERE database = currentDatabase() AND name = {literal(table)}"
        ).result_rows[0][0]
        client.command(f"{remember} = {WINDOW}")
        try:
            yield table
        finally:
            client.command(f"{remember} = {before or 0}")


@contextmanager
def staging_of(uri, table):
    """Yield the name of an empty copy of an empty table, which is exchanged with it atomically on success.

    No row is visible before the exchange, and none ever if anything fails. Raises RuntimeError if the table has rows by
    then. Another client may insert between that check and the exchange, because ClickHouse has no lock against it.
    """
    name, staging = identifier(table), identifier(f"{table}_staging")
    with sessionless(uri) as client:
        client.command(f"CREATE TABLE {staging} AS {name}")
        try:
            with remembering(uri, f"{table}_staging"):
                yield f"{table}_staging"
            if rows := client.query(f"SELECT count() FROM {name}").result_rows[0][0]:
                raise RuntimeError(f"{table} is no longer empty, it has {rows} rows; nothing was loaded")
            client.command(f"EXCHANGE TABLES {staging} AND {name}")
        finally:
            client.command(f"DROP TABLE {staging} SYNC")


@contextmanager
def one_moment(uri, table):
    """Yield the name of a clone of a table with its current rows, for the block.

    The clone's parts are links to the same files, so it takes no time and no space. ClickHouse has no snapshot that
    several connections share, and the server may merge away a part that a query names.
    """
    clone = identifier(f"{table}_clone")
    with sessionless(uri) as client:
        client.command(f"CREATE TABLE {clone} CLONE AS {identifier(table)}")
        try:
            yield f"{table}_clone"
        finally:
            client.command(f"DROP TABLE {clone} SYNC")


def part_queries(uri, table):
    """Return queries that together read a table, one for each of its partitions (PARTITION BY); see `one_moment`."""
    with sessionless(uri) as client:
        found = client.query(
            "SELECT DISTINCT partition_id FROM system.parts WHERE active AND database = currentDatabase() "
            f"AND table = {literal(table)} ORDER BY partition_id"
        ).result_rows
    return [f"SELECT * FROM {identifier(table)} WHERE _partition_id = {literal(name)}" for (name,) in found]


def read_part(uri, query, destination, name):
    """Write a query's result as one Parquet file; record batches stream, and only one is in memory."""
    with sessionless(uri) as client, client.query_arrow_stream(query) as reader:
        return write_part(destination, name, reader)
