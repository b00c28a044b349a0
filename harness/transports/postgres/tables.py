"""What several clients of Postgres ask about a table, and how several connections share one."""

import os
from contextlib import ExitStack, contextmanager

from harness.transports.postgres.sql import identifier

# Several connections could wait for one another in a circle that the server does not see: a part that waits behind an
# ALTER or TRUNCATE, which itself waits for a part that ends with the others; a slice that waits for a row of another
# slice, which commits only when all are done. So nobody waits for a lock longer than this.
LOCK_TIMEOUT = "10s"
# So writers over several connections take turns at a table: an advisory lock of its oid behind a class id, "lab ".
TURN = 0x6C616220 << 32


def number_of_connections():
    """Return how many connections to open: as many as this process may use cores, at least 2 and at most 8."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(cores, 2), 8)


@contextmanager
def psycopg_connection(uri):
    """Yield one connection in autocommit mode: every COPY is a transaction of its own, and no read leaves one open."""
    import psycopg

    with psycopg.connect(uri, autocommit=True) as connection:
        yield connection


@contextmanager
def psycopg_connections(uri):
    """Yield as many psycopg connections as this process may use cores, at least 2 and at most 8, in autocommit mode."""
    import psycopg

    with ExitStack() as stack:
        yield [stack.enter_context(psycopg.connect(uri, autocommit=True)) for _ in range(number_of_connections())]


def key_columns(connection, table):
    """Ask the server for the columns of the table's primary key, in its order; none gives an empty list."""
    rows = connection.execute(
        "SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number "
        "WHERE i.indisprimary AND i.indrelid = quote_ident(%s)::regclass ORDER BY k.place",
        [table],
    )
    return [name for (name,) in rows]


def take_turn(connection, table):
    """Wait until no other parallel writer is at the table; the transaction's end is the end of the turn."""
    connection.execute("SELECT pg_advisory_xact_lock(%s | quote_ident(%s)::regclass::oid::bigint)", [TURN, table])


def page_ranges(table, pages, number):
    """Return so many queries for ranges of the table's pages; the last range is open, so that no row is left out."""
    starts = [pages * part // number for part in range(number)]
    ends = [f" AND ctid < '({start},0)'" for start in starts[1:]] + [""]
    return [
        f"SELECT * FROM {identifier(table)} WHERE ctid >= '({start},0)'{end}"
        for start, end in zip(starts, ends, strict=True)
    ]
