"""The index of an empty table's primary key, made once all rows are there.

One that is made in one go is sorted once, and its pages are full; one that grows row by row is searched for each of
them: https://www.postgresql.org/docs/current/populate.html
"""

from contextlib import contextmanager

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


@contextmanager
def index_afterwards(connection, table):
    """In a transaction: drop an empty table's primary key, and add it again at the end; yield whether that was done.

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
