"""The work of workers on parts of the rows in Postgres: exactly once, all or nothing, or from one snapshot.

The ledger: https://www.postgresql.org/docs/current/sql-insert.html#SQL-ON-CONFLICT, the snapshot:
https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-SNAPSHOT-SYNCHRONIZATION
"""

from contextlib import contextmanager

from harness.transports.parts import batches, write_part
from harness.transports.postgres.binary_copy import copy_batches
from harness.transports.postgres.sql import identifier, literal
from harness.transports.postgres.tables import page_ranges


def copy_part(uri, table, source, group):
    """COPY a row group of a Parquet file in a separate transaction; a repetition duplicates the rows."""
    import psycopg

    with psycopg.connect(uri) as connection:
        return copy_batches(connection, table, batches(source, [group]))


def copy_part_once(uri, table, ledger, source, group):
    """COPY a row group unless the ledger has it; both are one transaction, so a repetition does nothing.

    If a worker died in its transaction, this waits: the server ends the transaction when it sees the closed connection.
    """
    import psycopg

    with psycopg.connect(uri) as connection:
        entered = f"INSERT INTO {identifier(ledger)} VALUES (%s) ON CONFLICT DO NOTHING RETURNING part"
        if connection.execute(entered, [group]).fetchone() is None:
            return 0
        return copy_batches(connection, table, batches(source, [group]))


@contextmanager
def ledger_of(uri, table):
    """Yield the name of an empty table that records the loaded parts; it is dropped at the end."""
    import psycopg

    ledger = f"{table}_ledger"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {identifier(ledger)} (part integer PRIMARY KEY)")
        try:
            yield ledger
        finally:
            connection.execute(f"DROP TABLE {identifier(ledger)}")


@contextmanager
def staging_of(uri, table):
    """Yield the name of an empty copy of an empty table, which replaces it in one transaction on success.

    No row is visible before that, and none ever if anything fails. The copy loses the table's privileges. If other
    objects depend on the table (views, foreign keys), the server refuses to replace it. Raises RuntimeError if the
    table has rows by then, because they would be lost.
    """
    import psycopg

    name, staging = identifier(table), identifier(f"{table}_staging")
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {staging} (LIKE {name} INCLUDING ALL)")
        try:
            yield f"{table}_staging"
            with connection.transaction():
                connection.execute(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
                if connection.execute(f"SELECT FROM {name} LIMIT 1").fetchone() is not None:
                    raise RuntimeError(f"{table} is no longer empty; nothing was loaded")
                comment = f"SELECT obj_description({literal(name)}::regclass, 'pg_class')"
                [(said,)] = connection.execute(comment).fetchall()
                connection.execute(f"DROP TABLE {name}")
                connection.execute(f"ALTER TABLE {staging} RENAME TO {name}")
                if said is not None:
                    connection.execute(f"COMMENT ON TABLE {name} IS {literal(said)}")
        finally:
            connection.execute(f"DROP TABLE IF EXISTS {staging}")


@contextmanager
def one_moment(uri):
    """Yield the name of a snapshot of the database that other connections can read during the block."""
    import psycopg

    with psycopg.connect(uri) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        [(snapshot,)] = connection.execute("SELECT pg_export_snapshot()").fetchall()
        yield snapshot


def part_queries(uri, table, pages=2_000, least=8):
    """Return queries that together read a table, each this many of its pages (8 kB); the last one is open-ended.

    A small table is divided too, into up to `least` parts, so that several workers have one.
    """
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        asked = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
        [(found,)] = connection.execute(asked, [identifier(table)]).fetchall()
    return page_ranges(table, found, max(1, min(found, least), -(-found // pages)))


def read_part(uri, query, snapshot, destination, name):
    """Write a query's result as one Parquet file, from a snapshot or (None) from the current state.

    ADBC reads it with COPY ... TO STDOUT (FORMAT binary) as Arrow record batches and holds one at a time.
    """
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(uri) as connection, connection.cursor() as cursor:
        if snapshot is not None:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute(f"SET TRANSACTION SNAPSHOT {literal(snapshot)}")
        cursor.execute(query)
        return write_part(destination, name, cursor.fetch_record_batch())
