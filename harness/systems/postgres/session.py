"""A user's query in their own session: with the search path of their address, role and database, read-only.

All statements run in one transaction, so that a pooler may be in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from adbc_driver_manager.dbapi import Connection, Error

from harness.datasets.user_data.columnar import require_different
from harness.model import Facts, LabError
from harness.systems.postgres import client
from harness.systems.queries import DOLLARS, without_end
from harness.transports.postgres.sql import identifier

# Rewrite a user's query so that every value arrives unchanged: the driver has special forms for some types.
#
# ADBC's schema of a query has the name of each column's type, and for a domain its base type's.
# https://www.postgresql.org/docs/current/catalog-pg-type.html

# The types that arrive unchanged, like their arrays, except those of the second set.
_AS_THEY_ARE = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "char", "name"}
_AS_THEY_ARE |= {"uuid", "date", "time", "timestamp", "timestamptz", "bytea", "numeric", "json", "jsonb", "unknown"}
_NOT_IN_ARRAYS = {"numeric", "json", "jsonb"}
# Types that arrive as other numbers (money as cents, an oid as signed) -> expression to select instead.
_FORMS = {"money": "{0}::numeric", "oid": "{0}::bigint"}
_NO_LENGTH = "extract(epoch FROM {0})"
# The first date and timestamp of Postgres, counted from 1970. Infinity, to which the driver adds 30 years, comes before
# them.
_FIRST = {"date32": -2_440_588, "timestamp": -210_866_803_200_000_000}
_A_DAY = 86_400 * 10**6

Types = Mapping[str, tuple[str, bool]]  # the name of a column's type, and whether it or its item type is an enum


def unknown(schema: pa.Schema) -> list[str]:
    """Return the columns whose types are not built in or have no suitable form: enums, ranges, extension types."""
    return [field.name for field in schema if _told(field) not in _FORMS and not _as_it_is(_told(field))]


def question(query: str, columns: Sequence[str]) -> str:
    """Return the query for the types of some columns of a user's query, without executing it: names, whether enums.

    The driver's own names lack the schema, or are numbers for types created after it connected.
    """
    types = ", ".join(f"pg_typeof(asked.{identifier(name)})::oid" for name in columns)
    return (
        "SELECT format_type(t.oid, NULL), coalesce(item.typtype, base.typtype, t.typtype) = 'e' "
        f"FROM (SELECT) AS one LEFT JOIN ({query}\n) AS asked ON false "
        f"CROSS JOIN LATERAL unnest(ARRAY[{types}]) WITH ORDINALITY AS found (type, place) "
        "JOIN pg_catalog.pg_type t ON t.oid = found.type "
        "LEFT JOIN pg_catalog.pg_type item ON item.oid = t.typelem AND t.typlen = -1 "
        "LEFT JOIN pg_catalog.pg_type base ON base.oid = t.typbasetype ORDER BY found.place"
    )


def as_brought(query: str, schema: pa.Schema, types: Types) -> str:
    """Return a query with this result schema, rewritten so that rows arrive unchanged.

    `types` are those of the columns in `unknown`. Raises LabError for a column without a suitable form.
    """
    forms = {field.name: _form(field, types) for field in schema}
    if not any(forms.values()):
        return query
    columns = (_as(name, form) for name, form in forms.items())
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS asked"


def _as(name: str, form: str) -> str:
    quoted = identifier(name)
    return f"{form.format(quoted)} AS {quoted}" if form else quoted


def _told(field: pa.Field) -> str:
    """Return the driver's name of a column's type; an array has an underscore before its item type's name."""
    told: bytes = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    return told.decode()


def _as_it_is(of: str) -> bool:
    item = of.removeprefix("_")
    return item in _AS_THEY_ARE and (item == of or item not in _NOT_IN_ARRAYS)


def _form(field: pa.Field, types: Types) -> str:
    """Return the expression that fetches a column unchanged, empty if none is needed. Raises LabError without one."""
    of = _told(field)
    if of in _FORMS or _as_it_is(of):
        return _FORMS.get(of, "")
    named, is_enum = types[field.name]
    cast = "text[]" if named.endswith("[]") else "text"
    if is_enum:
        return f"{{0}}::{cast}"
    quoted = identifier(field.name)
    instead = _NO_LENGTH.format(quoted) if of == "interval" else f"{quoted}::{cast}"
    raise LabError(
        f'column "{field.name}": a query does not return {named} unchanged; select {instead}, or give the data as '
        "a file"
    )


def with_dimensions(query: str, schema: pa.Schema) -> str:
    """Return a user's query, whose rows have this schema, with its arrays' dimensions as extra last columns."""
    arrays = [identifier(field.name) for field in schema if pa.types.is_list(field.type)]
    if not arrays:
        return query
    asked = ", ".join(f"array_ndims({name})" for name in arrays)
    return f"SELECT *, {asked} FROM ({query}\n) AS asked"


def require_values(answer: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of a user's query, fetched with array dimensions, without the dimensions.

    Raises LabError for a column with a value that does not arrive unchanged.
    """
    dimensions = iter(answer.columns[len(schema) :])
    for place, field in enumerate(schema):
        if pa.types.is_list(field.type) and (pc.max(next(dimensions)).as_py() or 0) > 1:
            raise LabError(
                f'column "{field.name}": a query returns an array of several dimensions as one list of all items; '
                f"select array_to_json({identifier(field.name)})::text, or give the data as a file"
            )
        for what, instead in _beyond(answer.column(place)):
            raise LabError(
                f'column "{field.name}": a frame cannot hold {what}; leave these rows out, or select {instead}'
            )
    return answer.select(list(range(len(schema))))


def _beyond(column: pa.ChunkedArray) -> Iterator[tuple[str, str]]:
    """Yield the date and time values of a column that the driver changes or no frame can hold, with advice."""
    values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    if pa.types.is_time64(values.type):
        if (pc.max(values.cast(pa.int64())).as_py() or 0) >= _A_DAY:
            yield "the time 24:00", "another time"
    elif first := next((low for name, low in _FIRST.items() if str(values.type).startswith(name)), None):
        numbers = values.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(values.type) else values.cast(pa.int64())
        if (pc.min(numbers).as_py() or 0) < first:
            yield "infinity or a timestamp after 294246", "NULL instead"


_QUOTED = r"""\b[eE]'(?:[^'\\]|\\.|'')*'|"(?:[^"]|"")*"|'(?:[^']|'')*'""" + f"|{DOLLARS}"


def answer(endpoints: dict[str, str], query: str) -> tuple[pa.Table, str]:
    """Return the rows of a user's query as Arrow, and the rewritten query. Raises LabError."""
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
    return as_brought(query, schema, _types(connection, query, unknown(schema)))


def _types(connection: Connection, asked: str, columns: Sequence[str]) -> Facts:
    rows = client.query(connection, question(asked, columns)) if columns else []
    return dict(zip(columns, rows, strict=True))


def _rows(connection: Connection, query: str) -> pa.Table:
    schema = _schema(connection, query)
    with connection.cursor() as cursor:
        cursor.execute(with_dimensions(query, schema))
        return require_values(cursor.fetch_arrow_table(), schema)


def _schema(connection: Connection, query: str) -> pa.Schema:
    with connection.cursor() as cursor:
        return cursor.adbc_execute_schema(query)
