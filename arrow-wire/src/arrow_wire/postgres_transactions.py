"""Transactions of several connections that end together, and a part of the caller's transaction that ends alone. All
transactions but the first are prepared. The first one's commit decides, then the prepared ones commit:
https://www.postgresql.org/docs/current/two-phase.html. Each is named after the first one. A session that finds one
later can ask the server how the first one ended, and end it in the same way.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from psycopg import Connection, Error
from psycopg.errors import ObjectNotInPrerequisiteState, UndefinedObject
from psycopg.pq import TransactionStatus

from arrow_wire.postgres_server import ask

PREFIX = "arrow-wire"  # of the names of prepared transactions: prefix, transaction id of the first one, number


def most_together(connection: Connection[Any]) -> int:
    """Return how many transactions can end together: one, and as many as this server may prepare."""
    return 1 + int(ask(connection, "SELECT current_setting('max_prepared_transactions')")[0][0])


@contextmanager
def together(first: Connection[Any]) -> Iterator[Callable[[Connection[Any]], None]]:
    """Begin a transaction on a connection in autocommit mode; yield a function that begins one on another:
    `join(connection)`.

    At the end all of them commit, or none: an error rolls all of them back. If the process, a connection or the server
    dies once all are prepared, prepared ones stay and hold their locks. `settle` ends them as the first one ended;
    later writes call it first, but those of few rows only over new connections or after an error.
    """
    others: list[Connection[Any]] = []
    prepared: list[str] = []

    def join(connection: Connection[Any]) -> None:
        ask(connection, "BEGIN")
        others.append(connection)

    try:
        ask(first, "BEGIN")
        yield join
        if others:
            _prepare(first, others, prepared)
        ask(first, "COMMIT")
    except BaseException:
        _undo([first, *others], prepared)
        raise
    if others:
        _each(others, prepared, lambda connection, name: _end(connection, name, "COMMIT"))


def _each(
    connections: Sequence[Connection[Any]], names: Sequence[str], do: Callable[[Connection[Any], str], object]
) -> None:
    with ThreadPoolExecutor(len(connections)) as pool:
        list(pool.map(do, connections, names))


def _prepare(first: Connection[Any], others: list[Connection[Any]], prepared: list[str]) -> None:
    """Prepare the other transactions. Add all names first: after an error any of them may be prepared."""
    [(number,)] = ask(first, "SELECT pg_current_xact_id()::text")
    prepared += [f"{PREFIX} {number} {place}" for place in range(1, len(others) + 1)]
    _each(others, prepared, lambda connection, name: ask(connection, f"PREPARE TRANSACTION '{name}'"))


def _undo(connections: Sequence[Connection[Any]], prepared: list[str]) -> None:
    """Roll back open and prepared transactions on the connections that still work."""
    for connection in connections:
        with suppress(Error):  # a broken connection has no transaction left
            ask(connection, "ROLLBACK")
    for connection in connections if prepared else []:
        with suppress(Error):
            settle(connection)
            return


def settle(connection: Connection[Any]) -> None:
    """End the prepared transactions that a writer left behind, as the server says that its first one ended.

    `connection` is in autocommit mode and outside of a transaction. Those of a writer that is still running stay.
    """
    left = ask(
        connection,
        "SELECT gid, pg_xact_status(split_part(gid, ' ', 2)::xid8) FROM pg_prepared_xacts "
        f"WHERE gid ~ '^{PREFIX} [0-9]+ [0-9]+$' AND database = current_database() AND owner = current_user",
    )
    for name, status in left:
        if status in ("committed", "aborted"):
            _end(connection, name, "COMMIT" if status == "committed" else "ROLLBACK")


def _end(connection: Connection[Any], name: str, how: str) -> None:
    """Commit a prepared transaction or roll it back, if no other session has done so or is about to."""
    with suppress(ObjectNotInPrerequisiteState, UndefinedObject):
        ask(connection, f"{how} PREPARED '{name}'")


@contextmanager
def within(connection: Connection[Any]) -> Iterator[None]:
    """A part of the caller's transaction, which an error undoes alone. Outside of one, in autocommit mode, it is a
    transaction.

    The caller's transaction is neither committed nor rolled back.
    """
    if connection.autocommit and connection.info.transaction_status is TransactionStatus.IDLE:
        with connection.transaction():
            yield
        return
    ask(connection, "SAVEPOINT arrow_wire")  # psycopg begins a transaction first if none is open
    try:
        yield
    except BaseException:
        with suppress(Error):  # a broken connection has no transaction left
            ask(connection, "ROLLBACK TO SAVEPOINT arrow_wire")
            ask(connection, "RELEASE SAVEPOINT arrow_wire")
        raise
    ask(connection, "RELEASE SAVEPOINT arrow_wire")
