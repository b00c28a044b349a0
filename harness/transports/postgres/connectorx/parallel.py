"""connectorx over several connections at once: https://sfu-db.github.io/connector-x/"""

from contextlib import contextmanager

from harness.registry import Unsupported, transport
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.tables import LOCK_TIMEOUT, number_of_connections, page_ranges


@contextmanager
def connect(uri):
    """Yield the URI, and a psycopg connection in autocommit mode that asks what the queries need to know.

    connectorx itself opens its connections in every call and closes them: it cannot be given open ones.
    """
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        yield uri, connection


def _integer_column(connection, table):
    """Ask the server for the first integer column that is not null. Raises Unsupported where the table has none."""
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
    """Read the table in as many ranges of an integer column as there are connections."""
    import connectorx

    uri, connection = source
    column = _integer_column(connection, table)
    query = f"SELECT * FROM {identifier(table)}"
    number = number_of_connections()
    return connectorx.read_sql(uri, query, return_type=frame, partition_on=column, partition_num=number)


def _by_pages(source, table, frame):
    """Read the table in as many ranges of its pages as there are connections, all under one exported snapshot."""
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


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["polars", "pyarrow", "psycopg", "connectorx"],
    lossy={"refused": "far_dates decimals"},
)
def read_polars_partition_on(source, table):
    """Read ranges of an integer column over as many connections as cores, with connectorx's own partition_on.

    2 to 8 connections. The column is the first integer one that is not null (the server is asked); connectorx asks for
    its smallest and largest value and divides what is between: uneven values make uneven parts. Every connection has
    a snapshot of its own: rows written meanwhile may be in one part and not in another.
    """
    return _partitioned(source, table, "polars")


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["pandas", "psycopg", "connectorx"],
    lossy={"changed": "decimals", "refused": "far_dates arrays"},
)
def read_pandas_partition_on(source, table):
    """Read ranges of an integer column over as many connections as cores, with connectorx's own partition_on.

    As to polars: no consistent read of a table that is written to. Texts and uuids come as Python strings (dtype
    object), integers as the nullable Int64; the rows are counted first.
    """
    return _partitioned(source, table, "pandas")


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["polars", "pyarrow", "psycopg", "connectorx"],
    lossy={"refused": "far_dates decimals"},
)
def read_polars_ctid_snapshot(source, table):
    """Read ranges of the table's pages over as many connections as cores, all under one exported snapshot.

    2 to 8 connections. Every page is read once and by one connection, whatever the values are. psycopg exports a
    snapshot (pg_export_snapshot), and what connectorx runs before its queries (pre_execution_query) puts every
    connection under it: a consistent read.
    """
    return _by_pages(source, table, "polars")


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT (FORMAT binary), parallel",
    payload="binary rows",
    requires=["pandas", "psycopg", "connectorx"],
    lossy={"changed": "decimals", "refused": "far_dates arrays"},
)
def read_pandas_ctid_snapshot(source, table):
    """Read ranges of the table's pages over as many connections as cores, all under one exported snapshot.

    As to polars: a consistent read. Texts and uuids come as Python strings (dtype object), integers as the nullable
    Int64; the rows are counted first.
    """
    return _by_pages(source, table, "pandas")
