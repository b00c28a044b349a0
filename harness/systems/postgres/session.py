"""A user's query in their own session: with the search path of their address, role and database, read-only.

All statements run in one transaction, so that a pooler may be in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.datasets.user_data.reading import require_different
from harness.model import Facts, LabError
from harness.systems.postgres import asked as of_query
from harness.systems.postgres import client
from harness.systems.queries import DOLLARS, without_end

if TYPE_CHECKING:
    import pyarrow as pa
    from adbc_driver_manager.dbapi import Connection

_QUOTED = r"""\b[eE]'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|'(?:[^']|'')*'""" + f"|{DOLLARS}"


def answer(endpoints: dict[str, str], query: str) -> tuple[pa.Table, str]:
    """Return the rows of a user's query as Arrow, and the rewritten query. Raises LabError."""
    from adbc_driver_manager.dbapi import Error

    try:
        with client.connected(endpoints["postgres"]) as connection:
            connection.adbc_connection.set_autocommit(False)
            client.say(connection, "SET TRANSACTION READ ONLY")
            asked = _asked(connection, without_end(query, _QUOTED, nested=True))
            return _rows(connection, asked), asked
    except Error as error:
        raise LabError(f"postgres refused the query: {client.said(error)}") from None


def _asked(connection: Connection, query: str) -> str:
    """Return a user's query rewritten so that rows arrive unchanged. Raises LabError.

    The driver appends to it, so the query must not end in an open comment.
    """
    schema = _schema(connection, query)
    if not schema.names:
        raise LabError("postgres: the query returns no columns; give a SELECT: a query only reads")
    require_different(list(schema.names), "the answer of the query")
    return of_query.as_brought(query, schema, _types(connection, query, of_query.unknown(schema)))


def _types(connection: Connection, asked: str, columns: Sequence[str]) -> Facts:
    rows = client.query(connection, of_query.question(asked, columns)) if columns else []
    return dict(zip(columns, rows, strict=True))


def _rows(connection: Connection, query: str) -> pa.Table:
    schema = _schema(connection, query)
    with connection.cursor() as cursor:
        cursor.execute(of_query.with_dimensions(query, schema))
        return of_query.require_values(cursor.fetch_arrow_table(), schema)


def _schema(connection: Connection, query: str) -> pa.Schema:
    with connection.cursor() as cursor:
        return cursor.adbc_execute_schema(query)
