"""Connections to Postgres, and statements: types of columns, the key of a table, an index that is added afterwards."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, TypeAlias

import psycopg
from psycopg import Connection, errors, generators, sql
from psycopg.errors import DependentObjectsStillExist, InsufficientPrivilege, LockNotAvailable
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row

from arrow_wire import postgres_types
from arrow_wire.cores import number_of_connections
from arrow_wire.errors import WrongValue
from arrow_wire.postgres_types import ServerType

# Several connections could deadlock without the server noticing. A slice waits for a row of
# another slice, which commits only when all are done. So no connection waits for a lock longer than this.
LOCK_TIMEOUT = "10s"
# So writers over several connections take turns at a table: an advisory lock of its oid behind a class id, "lab ".
TURN = 0x6C616220 << 32
Table: TypeAlias = str | tuple[str, ...]  # "orders", "sales.orders", ("sales", "orders")
_NAME = r'\s*(?:"((?:[^"]|"")+)"|([^\W\d][\w$]*))\s*'
_TABLE = re.compile(rf"{_NAME}(?:\.{_NAME})?")
# The name and definition of a primary key that can be dropped and made again just as it was. The table has no page yet,
# no other index and no relatives. The key's index has no settings or comment.
_PRIMARY_KEY = """
SELECT quote_ident(c.conname), pg_get_constraintdef(c.oid)
FROM pg_class t JOIN pg_constraint c ON c.conrelid = t.oid AND c.contype = 'p'
JOIN pg_index i ON i.indexrelid = c.conindid JOIN pg_class x ON x.oid = c.conindid
WHERE t.oid = %s::regclass AND t.relkind = 'r' AND NOT t.relispartition AND NOT t.relhassubclass
    AND pg_relation_size(t.oid) = 0 AND (SELECT count(*) FROM pg_index o WHERE o.indrelid = t.oid) = 1
    AND x.reloptions IS NULL AND x.reltablespace = 0 AND i.indisvalid AND NOT i.indisclustered AND NOT i.indisreplident
    AND NOT EXISTS (SELECT FROM pg_description d WHERE d.objoid IN (c.oid, x.oid))"""


def ask(connection: Connection[Any], query: str, given: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
    """Send a statement, never prepared, and return its rows, if it has any."""
    cursor = connection.cursor(row_factory=tuple_row)
    cursor.execute(query.encode(), given, prepare=False)
    return cursor.fetchall() if cursor.description else []


def answers(
    connection: Connection[Any], statements: bytes, meanwhile: Callable[[], None] = lambda: None
) -> list[PGresult]:
    """Send statements, with semicolons between them, as one message, and return the result of each.

    They are one transaction if none is open. A cursor takes longer. The caller holds the connection's lock. Raises the
    server's error, or else that of `meanwhile`, which is called while the server works.
    """
    connection.pgconn.send_query(statements)
    try:
        meanwhile()
    finally:
        results = connection.wait(generators.execute(connection.pgconn))
        if results[-1].status == ExecStatus.FATAL_ERROR:
            raise errors.error_from_result(results[-1])
    return results


@lru_cache(256)
def quoted(table: Table) -> str:
    """Return a table's name as SQL. A string may have a schema before a point; a part between double quotes is taken as
    it is. Unlike in SQL, upper case stays. Raises WrongValue for a string that is not a name; a tuple may have any
    names.
    """
    parts = table if isinstance(table, tuple) else parts_of(table)
    if not parts:
        raise WrongValue(f"{table!r} is not the name of a table; give table, schema.table, or a tuple of any names")
    return ".".join(map(_identifier, parts))


@lru_cache(256)
def listed(names: tuple[str, ...]) -> str:
    """Return the names of columns as SQL, with commas between them."""
    return ", ".join(map(_identifier, names))


def _identifier(name: str) -> str:
    """Return a name as SQL, in a tenth of the time of psycopg.sql: each table has another one."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a string as SQL."""
    return sql.quote(text) if "'" in text or "\\" in text else f"'{text}'"


def parts_of(text: str) -> tuple[str, ...]:
    """Return the names of a schema, if it is given, and a table; nothing for any other string, such as a query."""
    found = _TABLE.fullmatch(text)
    if found is None:
        return ()
    names = [(found[1] or "").replace('""', '"') or found[2], (found[3] or "").replace('""', '"') or found[4]]
    return tuple(name for name in names if name)


class Connections(Sequence[Connection[Any]]):
    """Connections to one server in autocommit mode, each opened when it is first used."""

    def __init__(self, uri: str, stack: ExitStack) -> None:
        self.uri, self._stack, self._count = uri, stack, number_of_connections()
        self._open: list[Connection[Any]] = []
        self.settled = False  # whether a write over them has asked for prepared transactions, and none failed since

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(self._count))]
        number = range(self._count)[place]
        while len(self._open) <= number:
            self._open.append(self._stack.enter_context(psycopg.connect(self.uri, **_SETTINGS)))
        return self._open[number]


# Strings are UTF-8 in both directions: the server converts them, or checks them if the database is SQL_ASCII. This
# setting overrides PGCLIENTENCODING, and those of a role or a database.
# Nothing is prepared: a table may change, and the server would then refuse a prepared statement.
_SETTINGS: dict[str, Any] = {"autocommit": True, "client_encoding": "utf8", "prepare_threshold": None}


@contextmanager
def opened(uri: str) -> Iterator[Connections]:
    """Yield connections that open when they are first used; close them at the end."""
    with ExitStack() as stack:
        yield Connections(uri, stack)


def require_utf_8(connection: Connection[Any]) -> None:
    """Raise WrongValue if the caller's connection converts strings to anything else."""
    if connection.info.encoding != "utf-8":
        raise WrongValue(
            f"the connection's client_encoding is {connection.info.encoding}; connect with client_encoding='utf8'"
        )


def columns_of(connection: Connection[Any], query: str) -> tuple[list[str], list[ServerType]]:
    """Return the names and the types of a query's columns; the server describes its own types."""
    cursor = connection.cursor(row_factory=tuple_row)
    cursor.execute(f"{query} LIMIT 0".encode(), prepare=False)
    result = cursor.pgresult
    assert result is not None
    found = _oids(result)
    unknown = [oid for oid, _ in found if not postgres_types.built_in(oid)]
    answer = ask(connection, postgres_types.question(unknown)) if unknown else []
    return [column.name for column in cursor.description or ()], postgres_types.types(found, answer)


def types_of(result: PGresult) -> list[ServerType] | None:
    """Return the types of a result's columns; None if one of them is a type that not every server has."""
    return postgres_types.all_built_in(tuple(_oids(result)))


def _oids(result: PGresult) -> list[tuple[int, int]]:
    """Return the oid and the modifier of the type of each column."""
    return [(result.ftype(number), result.fmod(number)) for number in range(result.nfields)]


@contextmanager
def index_afterwards(connection: Connection[Any], table: str) -> Iterator[bool]:
    """Drop an empty table's primary key, and add it again at the end, in one transaction; yield whether that was done.

    An index that is built afterwards is sorted once, and its pages are full. An index that grows is searched for each
    row: https://www.postgresql.org/docs/current/populate.html

    The key stays if another session uses the table, a foreign key refers to it, or another role owns it. From here to
    the end of the transaction no other session can read or write the table (ACCESS EXCLUSIVE).
    """
    key = _left_out(connection, table)
    yield key is not None
    if key is not None:
        name, definition = key
        ask(connection, "SET LOCAL default_tablespace = ''")
        ask(connection, f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}")


def _left_out(connection: Connection[Any], table: str) -> tuple[str, str] | None:
    """Return the name and definition of the key that was dropped, or None."""
    if not ask(connection, _PRIMARY_KEY, [table]):
        return None
    try:
        with connection.transaction():  # a savepoint
            ask(connection, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE NOWAIT")
            found = ask(connection, _PRIMARY_KEY, [table])
            if not found:
                return None
            name, definition = found[0]
            ask(connection, f"ALTER TABLE {table} DROP CONSTRAINT {name}")
            return name, definition
    except (DependentObjectsStillExist, InsufficientPrivilege, LockNotAvailable):
        return None
