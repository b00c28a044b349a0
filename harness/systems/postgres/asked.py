"""A person's query as its rows are brought as they are: the driver has a form of its own for some types of Postgres.

The schema that ADBC tells of a query has the name of each column's type, of a domain that of the type below it, and of
a type that the driver does not know its number. https://www.postgresql.org/docs/current/catalog-pg-type.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from harness.datasets.own.reading import require_different
from harness.model import LabError
from harness.transports.postgres.sql import identifier

if TYPE_CHECKING:
    import pyarrow as pa

# The types that come as they are, and so do their arrays but those of the second set.
_AS_THEY_ARE = {"bool", "int2", "int4", "int8", "float4", "float8", "text", "varchar", "bpchar", "char", "name"}
_AS_THEY_ARE |= {"uuid", "date", "time", "timestamp", "timestamptz", "bytea", "numeric", "json", "jsonb", "unknown"}
_NOT_IN_ARRAYS = {"numeric", "json", "jsonb"}
# Types that come as other numbers (money as cents, an oid with a sign) or as bytes, and what is asked for instead.
_FORMS = {"money": "{0}::numeric", "oid": "{0}::bigint", "enum": "{0}::text", "_enum": "{0}::text[]"}
_UNNAMED = re.compile(r"unnamed<oid:(\d+)>")
_NO_LENGTH = "extract(epoch FROM {0})"
# The first day and moment of Postgres, from 1970 on: infinity, to which the driver adds 30 years, comes before them.
_FIRST = {"date32": -2_440_588, "timestamp": -210_866_803_200_000_000}
_A_DAY = 86_400 * 10**6

Types = Mapping[int, tuple[str, bool]]  # the name of a type, and whether it, or what it is an array of, is an enum


def unknown(schema: pa.Schema) -> list[int]:
    """Return the numbers of types in a schema that the driver does not know: of enums, ranges, extensions."""
    return [int(found[1]) for field in schema if (found := _UNNAMED.fullmatch(_told(field)))]


def question(numbers: list[int]) -> str:
    """Return the query for the names of types, and whether they are enums or arrays of such."""
    return (
        "SELECT t.oid::bigint, format_type(t.oid, NULL), coalesce(item.typtype, t.typtype) = 'e' FROM pg_type t "
        "LEFT JOIN pg_type item ON item.oid = t.typelem AND t.typlen = -1 "
        f"WHERE t.oid IN ({', '.join(map(str, numbers))})"
    )


def as_brought(query: str, schema: pa.Schema, types: Types) -> str:
    """Return a query whose answer has this schema as one whose rows come as they are.

    `types` are those whose numbers are `unknown`. Raises LabError for a column that does not, and for two of one name.
    """
    require_different(list(schema.names), "the answer of the query")
    forms = {field.name: _form(field, types) for field in schema}
    if not any(forms.values()):
        return query
    columns = (_as(name, form) for name, form in forms.items())
    return f"SELECT {', '.join(columns)} FROM ({query}\n) AS asked"


def _as(name: str, form: str) -> str:
    quoted = identifier(name)
    return f"{form.format(quoted)} AS {quoted}" if form else quoted


def _told(field: pa.Field) -> str:
    """Return what the driver calls the type of a column; an array has a line before the name of its items."""
    return (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()


def _form(field: pa.Field, types: Types) -> str:
    """Return what brings a column as it is, empty where it comes as it is. Raises LabError where nothing does."""
    of = _told(field)
    known = of
    if found := _UNNAMED.fullmatch(of):
        known, is_enum = types[int(found[1])]
        of = ("_enum" if known.endswith("[]") else "enum") if is_enum else of
    if of in _FORMS:
        return _FORMS[of]
    item = of.removeprefix("_")
    if item in _AS_THEY_ARE and (item == of or item not in _NOT_IN_ARRAYS):
        return ""
    named = f"{item}[]" if item != of else known
    quoted = identifier(field.name)
    instead = _NO_LENGTH.format(quoted) if of == "interval" else f"{quoted}::text{'[]' if named.endswith('[]') else ''}"
    raise LabError(
        f'column "{field.name}": expected a type that a query brings as it is, found {named}; ask for {instead}, or '
        "give the data as a file"
    )


def with_dimensions(query: str, schema: pa.Schema) -> str:
    """Return a person's query, whose rows have this schema, with the dimensions of its arrays behind all columns."""
    import pyarrow as pa

    arrays = [identifier(field.name) for field in schema if pa.types.is_list(field.type)]
    if not arrays:
        return query
    asked = ", ".join(f"array_ndims({name})" for name in arrays)
    return f"SELECT *, {asked} FROM ({query}\n) AS asked"


def require_values(answer: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of a person's query, asked with their dimensions, without these.

    Raises LabError for a column with a value that does not come as it is.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    dimensions = iter(answer.columns[len(schema) :])
    for place, field in enumerate(schema):
        if pa.types.is_list(field.type) and (pc.max(next(dimensions)).as_py() or 0) > 1:
            raise LabError(
                f'column "{field.name}": a query brings an array of several dimensions as one list of all items; ask '
                f"for array_to_json({identifier(field.name)})::text, or give the data as a file"
            )
        for what, instead in _beyond(answer.column(place)):
            raise LabError(
                f'column "{field.name}": expected what a frame holds, found {what}; leave these rows out, or ask for '
                f"{instead}"
            )
    return answer.select(list(range(len(schema))))


def _beyond(column: pa.ChunkedArray) -> Iterator[tuple[str, str]]:
    """Yield what a column has of times that the driver turns into others or no frame has, and what to ask for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    if pa.types.is_time64(values.type):
        if (pc.max(values.cast(pa.int64())).as_py() or 0) >= _A_DAY:
            yield "the time 24:00", "another time"
    elif first := next((low for name, low in _FIRST.items() if str(values.type).startswith(name)), None):
        numbers = values.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(values.type) else values.cast(pa.int64())
        if (pc.min(numbers).as_py() or 0) < first:
            yield "infinity or a moment after 294246", "NULL in their place"
