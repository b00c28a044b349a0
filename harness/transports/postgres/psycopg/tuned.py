"""What the tuned transports share: names and types of columns, and transactions that end together.

Of several transactions all but the first are prepared, then the first one commits, which decides, then the prepared
ones do: https://www.postgresql.org/docs/current/two-phase.html. Each is named after the first one, so that
whoever finds one later can ask the server what became of that, and do the same.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

PREFIX = "dataframe-io-lab"  # of the names of prepared transactions: prefix, transaction id of the first one, number


def columns_of(connection, query):
    """Return the names and the types of a query's columns; types that not every server has are asked for."""
    from arrow_wire import postgres_types

    cursor = connection.execute(f"{query} LIMIT 0")
    result = cursor.pgresult
    found = [(result.ftype(number), result.fmod(number)) for number in range(result.nfields)]
    unknown = [oid for oid, _ in found if not postgres_types.known(oid)]
    answer = connection.execute(postgres_types.question(unknown)).fetchall() if unknown else ()
    return [column.name for column in cursor.description], postgres_types.types(found, answer)


def most_together(connection):
    """Return on how many connections transactions can end together: on this server, one and what it may prepare."""
    return 1 + int(connection.execute("SELECT current_setting('max_prepared_transactions')").fetchone()[0])


@contextmanager
def together(first):
    """Begin a transaction on a connection in autocommit mode; yield what does so on another: `join(connection)`.

    In the end all of them commit, or none: an error rolls all of them back. Should the process, a connection or the
    server die once all are prepared, prepared ones stay, and hold their locks, until `settle` ends them as the first
    one ended; every later write does so first.
    """
    others: list[Any] = []
    prepared: list[str] = []

    def join(connection):
        connection.execute("BEGIN")
        others.append(connection)

    try:
        first.execute("BEGIN")
        yield join
        if others:
            _prepare(first, others, prepared)
        first.execute("COMMIT")
    except BaseException:
        _undo([first, *others], prepared)
        raise
    if others:
        _each(others, prepared, lambda connection, name: _end(connection, name, "COMMIT"))


def _each(connections, names, do):
    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(do, connections, names))


def _prepare(first, others, prepared):
    """Prepare the other transactions and add their names, all of them before the first may be there."""
    (number,) = first.execute("SELECT pg_current_xact_id()::text").fetchone()
    prepared += [f"{PREFIX} {number} {place}" for place in range(1, len(others) + 1)]
    _each(others, prepared, lambda connection, name: connection.execute(f"PREPARE TRANSACTION '{name}'"))


def _undo(connections, prepared):
    """Roll back what was begun and what was prepared, as far as a connection lives."""
    from psycopg import Error

    for connection in connections:
        with suppress(Error):  # a broken connection has no transaction left
            connection.execute("ROLLBACK")
    for connection in connections if prepared else []:
        with suppress(Error):
            settle(connection)
            return


def settle(connection):
    """End the prepared transactions that a writer left behind, as the server says that its first one ended.

    `connection` is in autocommit mode and outside of a transaction. One of a writer that is still at it stays.
    """
    left = connection.execute(
        "SELECT gid, pg_xact_status(split_part(gid, ' ', 2)::xid8) FROM pg_prepared_xacts "
        f"WHERE gid ~ '^{PREFIX} [0-9]+ [0-9]+$' AND database = current_database() AND owner = current_user"
    ).fetchall()
    for name, status in left:
        if status in ("committed", "aborted"):
            _end(connection, name, "COMMIT" if status == "committed" else "ROLLBACK")


def _end(connection, name, how):
    """Commit a prepared transaction or roll it back, if nobody else has done so or is about to."""
    from psycopg.errors import ObjectNotInPrerequisiteState, UndefinedObject

    with suppress(ObjectNotInPrerequisiteState, UndefinedObject):
        connection.execute(f"{how} PREPARED '{name}'")
