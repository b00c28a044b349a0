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
# The name and definition of a primary key that can be left out and made again just as it was: of a table that has no
# page yet, no other index and no relatives, and an index that nobody chose anything for.
_PRIMARY_KEY = """
SELECT quote_ident(c.conname), pg_get_constraintdef(c.oid)
FROM pg_class t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype = 'p'
JOIN pg_index i ON i.indexrelid = c.conindid JOIN pg_class x ON x.oid = c.conindid
WHERE t.oid = %s::regclass AND t.relkind = 'r' AND NOT t.relispartition AND NOT t.relhassubclass
    AND pg_relation_size(t.oid) = 0 AND (SELECT count(*) FROM pg_index o WHERE o.indrelid = t.oid) = 1
    AND x.reloptions IS NULL AND x.reltablespace = 0 AND i.indisvalid AND NOT i.indisclustered AND NOT i.indisreplident
    AND NOT EXISTS (SELECT FROM pg_description d WHERE d.objoid IN (c.oid, x.oid))"""


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


@contextmanager
def index_afterwards(connection, table):
    """In a transaction: drop an empty table's primary key, and add it again at the end; yield whether that was done.

    An index that is made in one go is sorted once, and its pages are full; one that grows row by row is searched for
    each of them: https://www.postgresql.org/docs/current/populate.html

    It is not where others use the table, or refer to its key, or where it belongs to somebody else. From here to the
    end of the transaction nobody else can read or write the table (ACCESS EXCLUSIVE).
    """
    key = _left_out(connection, table)
    yield key is not None
    if key is not None:
        name, definition = key
        connection.execute("SET LOCAL default_tablespace = ''")
        connection.execute(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


def _left_out(connection, table):
    """Return the name and definition of the key that was dropped, or None."""
    from psycopg.errors import DependentObjectsStillExist, InsufficientPrivilege, LockNotAvailable

    if connection.execute(_PRIMARY_KEY, [table]).fetchone() is None:
        return None
    try:
        with connection.transaction():  # a savepoint
            connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE NOWAIT")
            key = connection.execute(_PRIMARY_KEY, [table]).fetchone()
            if key is not None:
                connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {key[0]}")
            return key
    except (DependentObjectsStillExist, InsufficientPrivilege, LockNotAvailable):
        return None
