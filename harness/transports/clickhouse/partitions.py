"""What workers do with ClickHouse, each with a part of the rows: once, all or nothing, and as of one moment.

Tokens: https://clickhouse.com/docs/operations/settings/settings#insert_deduplication_token, clones:
https://clickhouse.com/docs/sql-reference/statements/create/table#with-a-schema-and-data-cloned-from-another-table
"""

from contextlib import contextmanager

from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier, literal
from harness.transports.parts import batches, write_part

WINDOW = 10_000  # inserts of which a table remembers the tokens: more than one load has parts


def insert_part(uri, table, source, group):
    """Insert a row group of a Parquet file as one block of Arrow; done twice it is there twice."""
    return _insert(uri, table, source, group, INSERT_SETTINGS)


def insert_part_once(uri, table, source, group):
    """Insert a row group under its own token: the table, which remembers tokens, drops one that it has had.

    The blocks of a repetition have to be the same; one INSERT of the same rows in the same order makes the same.
    """
    token = {"insert_deduplicate": "1", "insert_deduplication_token": f"{table}/{group}"}
    return _insert(uri, table, source, group, INSERT_SETTINGS | token)


def _insert(uri, table, source, group, settings):
    import pyarrow as pa

    arrow = pa.Table.from_batches(batches(source, [group]))
    with sessionless(uri) as client:
        # clickhouse-connect leaves what is quoted already as it is
        client.insert_arrow(identifier(table), arrow, settings=settings)
    return arrow.num_rows


@contextmanager
def remembering(uri, table):
    """Have a table remember the tokens of its inserts meanwhile; a table of the MergeTree family forgets them else."""
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
    """Yield the name of an empty copy of an empty table, which is exchanged with it at once if all goes well.

    Until then nobody sees a row; if anything goes wrong nobody ever does. Raises RuntimeError where the table has rows
    by then. Between that look and the exchange somebody else may insert: ClickHouse has no lock against it.
    """
    name, staging = identifier(table), identifier(f"{table}_staging")
    with sessionless(uri) as client:
        client.command(f"CREATE TABLE {staging} AS {name}")
        try:
            with remembering(uri, f"{table}_staging"):
                yield f"{table}_staging"
            if rows := client.query(f"SELECT count() FROM {name}").result_rows[0][0]:
                raise RuntimeError(f"expected {table} to be empty still, found {rows} rows; nothing was loaded")
            client.command(f"EXCHANGE TABLES {staging} AND {name}")
        finally:
            client.command(f"DROP TABLE {staging} SYNC")


@contextmanager
def one_moment(uri, table):
    """Yield the name of a table with the rows of this moment, meanwhile: a clone.

    Its parts are links to the same files, so that it costs no time and no space. ClickHouse has no snapshot that
    several connections share, and a part named in a query may be merged away.
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
    """Write what a query returns as one Parquet file; Arrow record batches stream, one is held at a time."""
    with sessionless(uri) as client, client.query_arrow_stream(query) as reader:
        return write_part(destination, name, reader)
