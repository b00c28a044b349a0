"""Shared by Postgres clients: questions about a table, parts of a frame, and one table over several connections."""

import os
from contextlib import ExitStack, contextmanager

from harness.transports.postgres.sql import identifier, identifiers

# Several connections can deadlock in a circle that the server does not see. A part may wait for an ALTER or TRUNCATE,
# which waits for another part that ends only with the rest. A slice may wait for a row of another slice, which commits
# only when all are done. Therefore no connection waits longer than this for a lock.
LOCK_TIMEOUT = "10s"
# Writers over several connections take turns at a table: an advisory lock of the class id "lab " and the table's oid.
TURN = 0x6C616220 << 32


def number_of_connections():
    """Return how many connections to open: one per core this process may use, at least 2 and at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(cores, 2), 8)


@contextmanager
def psycopg_connection(uri):
    """Yield one connection in autocommit mode: every COPY is a separate transaction, and a read leaves none open."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


@contextmanager
def sqlalchemy_engine(uri, driver):
    """Yield a SQLAlchemy engine over a driver, whose pool already holds one open connection."""
    import sqlalchemy as sa

    engine = sa.create_engine(sa.make_url(uri).set(drivername=f"postgresql+{driver}"))
    try:
        engine.connect().close()  # an engine connects at its first use; the connection returns to the pool
        yield engine
    finally:
        engine.dispose()


@contextmanager
def psycopg_connections(uri):
    """Yield one psycopg connection per core this process may use, at least 2 and at most 8, in autocommit mode."""
    import psycopg

    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(uri, autocommit=True)) for _ in range(number_of_connections())]


def types_of(connection, table, columns=()):
    """Ask the server for the names of the types of these columns, or of all, e.g. `int4` (one round trip)."""
    found = connection.execute(f"SELECT {identifiers(columns) or '*'} FROM {identifier(table)} LIMIT 0")
    known = {info.oid: info.name for info in connection.adapters.types}
    return {column.name: known.get(column.type_code, "") for column in found.description}


def key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in key order; an empty list without a key."""
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident(%s)::regclass ORDER BY k.place",
        [table],
    )
    return [name for (name,) in rows]


def take_turn(connection, table):
    """Wait until no other parallel writer uses the table; the turn ends with the transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(%s | quote_ident(%s)::regclass::oid::bigint)", [TURN, table])


def page_ranges(table, pages, number):
    """Return this many queries for ranges of the table's pages; the last range is open-ended to include every row."""
    starts = [pages * part // number for part in range(number)]
    ends = [f" AND ctid < '({start},0)'" for start in starts[1:]] + [""]
    return [
        f"SELECT * FROM {identifier(table)} WHERE ctid >= '({start},0)'{end}"
        for start, end in zip(starts, ends, strict=True)
    ]


def rows_of_pandas(frame):
    """Return the rows as tuples with None for missing values; NaN in a float column stays NaN."""
    columns = []
    for _, values in frame.items():
        if values.hasnans and values.dtype not in ("float64", "float32"):
            values = values.astype(object).where(values.notna(), None)
        columns.append(values.tolist())
    return zip(*columns, strict=True)
