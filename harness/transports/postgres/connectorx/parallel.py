"""connectorx over several connections in parallel: https://sfu-db.github.io/connector-x/"""

from contextlib import contextmanager

from harness.registry import Unsupported, transport
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import LOCK_TIMEOUT, number_of_connections, page_ranges


@contextmanager
def connect(uri):
    """Yield the URI, and a psycopg connection in autocommit mode for queries about the table.

    connectorx itself opens and closes its connections in every call; it cannot reuse open ones.
    """
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        yield uri, connection


def _integer_column(connection, table):
    """Ask the server for the first NOT NULL integer column. Raises Unsupported if the table has none."""
    found = connection.execute(
        "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = quote_ident(%s)::regclass AND attnum > 0 "
        "AND attnotnull AND NOT attisdropped AND atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) "
        "ORDER BY attnum LIMIT 1",
        [table],
    ).fetchone()
    if found is None:
        raise Unsupported(f"the table {table} has no integer column that is not null, which connectorx could divide")
    return found[0]


def _partitioned(source, table, frame):
    """Read the table in ranges of an integer column, one per connection."""
    import connectorx

    uri, connection = source
    column = _integer_column(connection, table)
    query = f"SELECT * FROM {identifier(table)}"
    number = number_of_connections()
    return connectorx.read_sql(uri, query, return_type=frame, partition_on=column, partition_num=number)


def _by_pages(source, table, frame):
    """Read the table in ranges of its pages, one per connection, all under one exported snapshot."""
    import connectorx

    uri, connection = source
    with connection.transaction():
        limit = f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; {limit}")
        snapshot, pages = connection.execute(
            "SELECT pg_export_snapshot(), "
            "pg_relation_size(quote_ident(%s)::regclass) / current_setting('block_size')::bigint",
            [table],
        ).fetchone()
        queries = page_ranges(table, pages, number_of_connections())
        begin = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", limit, f"SET TRANSACTION SNAPSHOT '{snapshot}'"]
        return connectorx.read_sql(uri, queries, return_type=frame, pre_execution_query=begin)


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows", requires=["pyarrow"])
def read_polars_partition_on(source, table):
    """Read ranges of an integer column over one connection per core, with connectorx's own partition_on.

    2 to 8 connections. The transport asks the server for the first NOT NULL integer column. connectorx asks for its
    minimum and maximum and divides that range: uneven values make uneven parts. Every connection has a separate
    snapshot, so rows written meanwhile may be in one part and missing in another.
    """
    return _partitioned(source, table, "polars")


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows")
def read_pandas_partition_on(source, table):
    """Read ranges of an integer column over one connection per core, with connectorx's own partition_on.

    Like read_polars_partition_on, this is not a consistent read of a table under writes. connectorx counts the rows
    first. Strings and uuids arrive as Python strings (dtype object), integers as the nullable Int64.
    """
    return _partitioned(source, table, "pandas")


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows", requires=["pyarrow"])
def read_polars_ctid_snapshot(source, table):
    """Read ranges of the table's pages over one connection per core, all under one exported snapshot.

    2 to 8 connections. Exactly one connection reads each page, whatever the values. psycopg exports a snapshot
    (pg_export_snapshot). connectorx imports it on every connection before its query (pre_execution_query), so the read
    is consistent.
    """
    return _by_pages(source, table, "polars")


@transport("COPY TO STDOUT (FORMAT binary), parallel", "binary rows")
def read_pandas_ctid_snapshot(source, table):
    """Read ranges of the table's pages over one connection per core, all under one exported snapshot.

    A consistent read, like read_polars_ctid_snapshot. connectorx counts the rows first. Strings and uuids arrive as
    Python strings (dtype object), integers as the nullable Int64.
    """
    return _by_pages(source, table, "pandas")
