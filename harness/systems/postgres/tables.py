"""Tables of datasets in Postgres."""

from __future__ import annotations

from harness.check.logical_types import NANOSECONDS, depth, digits, items, plain
from harness.datasets.specification import PLAIN, Column, Specification
from harness.model import LabError
from harness.transports.postgres.sql import identifier, identifiers

TYPES = {
    "text": "text",
    "uuid": "uuid",
    "date": "date",
    "int8": "smallint",  # Postgres has no 8-bit and no unsigned types
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "integer",
    "uint32": "bigint",
    "uint64": "numeric(20, 0)",
    "float32": "real",
    "float64": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "timestamp_tz": "timestamptz",
    "time": "time",
    "duration": "interval",
    "category": "text",
    "binary": "bytea",
}
# The type that a read returns if Postgres lacks the written logical type.
STORED = {"int8": "int16", "uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "decimal(20, 0)"}
STORED |= {"category": "text"}
# Profile -> how to create the table, and whether with its key.
_PROFILES = {
    PLAIN: ("CREATE TABLE", True),
    "heap": ("CREATE TABLE", False),
    "unlogged": ("CREATE UNLOGGED TABLE", False),
}
_LONGEST_NAME = 63  # bytes; the server truncates longer names
_MOST_COLUMNS = 1_600
_DEEPEST = 6  # dimensions of an array
# Advice for a column that Postgres has no type for.
_INSTEAD = {
    **dict.fromkeys(NANOSECONDS, " (its timestamps count microseconds); round them"),
    "map": " (hstore has strings alone, and of jsonb numbers come back changed); make it text of JSON, or two lists",
    "nested": " (a composite type would have to be made next to the table); unnest it, or make it text of JSON",
}


def definition(spec: Specification, profile: str) -> str | None:
    """Return CREATE TABLE with `{table}` for the name; None without such a profile or table.

    As in the article, no column is nullable, and a string column's default is the empty string. Of described columns,
    those with nulls are nullable, and none has a default. Raises LabError for a column that Postgres cannot hold.
    """
    if profile not in _PROFILES or not spec.in_databases:
        return None
    create, keyed = _PROFILES[profile]
    if len(spec.columns) > _MOST_COLUMNS:
        raise LabError(
            f"expected at most {_MOST_COLUMNS} columns, which is what Postgres has, found {len(spec.columns)}"
        )
    columns = [_described(column) for column in spec.columns] or [
        f"{identifier(name)} {TYPES[logical]} NOT NULL" + (" DEFAULT ''" if logical == "text" else "")
        for name, logical in spec.logical_types.items()
    ]
    if keyed and spec.order:
        columns.append(f"PRIMARY KEY ({identifiers(spec.order)})")
    return f"{create} {{table}} ({', '.join(columns)})"


def column_type(logical: str) -> str | None:
    """Return the SQL type of a column of this logical type; None without one."""
    if plain(logical) == "decimal":
        return f"numeric({', '.join(map(str, digits(logical)))})"
    if plain(logical) == "array":
        of_items = column_type(items(logical))
        return of_items and f"{of_items}[]"
    return TYPES.get(logical)


def _described(column: Column) -> str:
    sql_type = column_type(column.logical_type)
    if sql_type is None:
        instead = _INSTEAD.get(plain(column.logical_type), "; leave it out or cast it")
        raise LabError(f"{column.place('finer')}: Postgres has no type for {column.logical_type}{instead}")
    if depth(column.logical_type) > 1:
        _require_rectangle(column)
    if len(column.name.encode()) > _LONGEST_NAME:
        raise LabError(f'column "{column.name}": Postgres cuts names of more than {_LONGEST_NAME} bytes; rename it')
    if "nul_character" in column.odd or "nul" in column.rows:
        raise LabError(f"{column.place('nul')}: text of Postgres has no U+0000; replace it or leave the column out")
    return f"{identifier(column.name)} {sql_type}" + ("" if column.nullable else " NOT NULL")


def _require_rectangle(column: Column) -> None:
    """Raise LabError for nested lists that do not form an array: https://www.postgresql.org/docs/current/arrays.html"""
    if depth(column.logical_type) > _DEEPEST:
        raise LabError(f"{column.place('')}: an array of Postgres has at most {_DEEPEST} dimensions; make it text")
    for what, found in {"missing": "a list that is null", "ragged": "lists of other lengths, or empty ones"}.items():
        if what in column.rows:
            raise LabError(
                f"{column.place(what)}: expected lists in a list to be of one length, as in an array of Postgres, "
                f"found {found}; make it text"
            )
