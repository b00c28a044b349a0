"""ADBC over several connections in parallel: https://arrow.apache.org/adbc/current/driver/postgresql.html"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from harness.registry import transport
from harness.transports.postgres.columns import as_pandas
from harness.transports.postgres.sql import identifier, literal
from harness.transports.postgres.tables import LOCK_TIMEOUT, number_of_connections, page_ranges


@contextmanager
def connect(uri):
    """Yield one connection per core this process may use, at least 2 and at most 8, in autocommit mode."""
    from adbc_driver_postgresql import dbapi

    with ExitStack() as stack:
        yield [stack.enter_context(dbapi.connect(uri, autocommit=True)) for _ in range(number_of_connections())]


def _ask(connection, statement):
    """Execute a query and return its one row."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


def _do(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _begin(connections, stack):
    """Begin a transaction on every connection under the snapshot that the first exports; the stack ends them."""
    for connection in connections:
        _do(connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        stack.callback(_do, connection, "ROLLBACK")
        _do(connection, f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    (snapshot,) = _ask(connections[0], "SELECT pg_export_snapshot()")
    for connection in connections[1:]:
        _do(connection, f"SET TRANSACTION SNAPSHOT '{snapshot}'")


def _queries(connection, table, number):
    """Return this many queries for ranges of the table's pages; the last range is open-ended to include every row."""
    (pages,) = _ask(
        connection,
        f"SELECT pg_relation_size({literal(identifier(table))}::regclass) / current_setting('block_size')::bigint",
    )
    return page_ranges(table, pages, number)


def _fetch(connection, query):
    """Return the rows of one query as Arrow."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def _read(connections, table):
    """Return the whole table as Arrow, read in parts over all connections under one snapshot."""
    import pyarrow as pa

    with ExitStack() as stack:
        _begin(connections, stack)
        queries = _queries(connections[0], table, len(connections))
        with ThreadPoolExecutor(len(connections)) as pool:
            return pa.concat_tables(pool.map(_fetch, connections, queries))


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows")
def read_polars_ctid_snapshot(connections, table):
    """Read ranges of the table's pages with ADBC over one connection per core, all under one exported snapshot.

    2 to 8 connections, each in a thread. One exports its snapshot (pg_export_snapshot) and the others import it, so the
    read is consistent. ADBC copies in binary and fills Arrow columns. A uuid arrives as 16 bytes (polars dtype Binary).
    """
    import polars as pl

    return pl.from_arrow(_read(connections, table))


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows")
def read_pandas_ctid_snapshot(connections, table):
    """Read ranges of the table's pages with ADBC over one connection per core, all under one exported snapshot.

    A consistent read, like read_polars_ctid_snapshot. Arrow passes the columns to pandas. A uuid arrives as a Python
    object (dtype object), a date as datetime64[us], an integer column with nulls as a nullable type such as Int64.
    """
    return as_pandas(_read(connections, table))
