"""The rows of a kind of values as a frame, the table they go into, and what is to stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from harness.check.canonical import polars_dtype
from harness.datasets.hostile.kind import ORDINARY, Kind, Stored
from harness.transports.clickhouse import sql as clickhouse_sql
from harness.transports.postgres import sql as postgres_sql

ROW_KEY = ("row_number",)
_SQL: dict[str, Any] = {"postgres": postgres_sql, "clickhouse": clickhouse_sql}
_TYPES = {
    "postgres": {
        "text": "text",
        "uuid": "uuid",
        "date": "date",
        "int32": "integer",
        "int64": "bigint",
        "float64": "double precision",
        "boolean": "boolean",
        "timestamp": "timestamp",
        "timestamp_tz": "timestamptz",
        "decimal": "numeric(38, 10)",
        "array": "integer[]",
        "float32": "real",
    },
    # An Array and a Tuple cannot be null in ClickHouse; what is in an Array can.
    "clickhouse": {
        "text": "Nullable(String)",
        "uuid": "Nullable(UUID)",
        "date": "Nullable(Date)",
        "int32": "Nullable(Int32)",
        "int64": "Nullable(Int64)",
        "float64": "Nullable(Float64)",
        "boolean": "Nullable(Bool)",
        "timestamp": "Nullable(DateTime64(6))",
        "timestamp_tz": "Nullable(DateTime64(6, 'UTC'))",
        "decimal": "Nullable(Decimal(38, 10))",
        "array": "Array(Nullable(Int32))",
        "nested": "Tuple(a Int32, b String)",
        "uint32": "Nullable(UInt32)",
        "uint64": "Nullable(UInt64)",
        "float32": "Nullable(Float32)",
    },
}


def kinds_of(columns: dict[str, str]) -> dict[str, str]:
    """Return all columns of a frame with their kinds: the key and these."""
    return {ROW_KEY[0]: "int32", **columns}


def stored_kinds(kind: Kind, system: str) -> dict[str, str]:
    """Return all columns of a kind's table in a system, with the kinds of what is to stand in them."""
    return kinds_of({**kind.columns, **_stored(kind, system).kinds})


def read_kinds(kind: Kind, system: str) -> dict[str, str]:
    """Return the columns that a read of the whole table gives: those of SELECT *."""
    hidden = _stored(kind, system).hidden
    return {name: column for name, column in stored_kinds(kind, system).items() if name not in hidden}


def rows(kind: Kind, system: str) -> pl.DataFrame:
    """Return the rows of a kind in a system as a canonical frame in the order of its key."""
    values = [{**ORDINARY, **row} for row in kind.rows[system]]
    return frame(kind.columns, [[row[name] for name in kind.columns] for row in values])


def stored(kind: Kind, system: str) -> pl.DataFrame:
    """Return what is to stand in the table after the rows of a kind were written, as a canonical frame."""
    given, table = rows(kind, system), _stored(kind, system)
    made = [
        pl.Series(name, table.values[name], polars_dtype(column))
        if name in table.values
        else given[name].cast(polars_dtype(column))
        for name, column in stored_kinds(kind, system).items()
    ]
    return pl.DataFrame(made)


def frame(columns: dict[str, str], values: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Return rows of values as a canonical frame, numbered from 0. A date may be days since 1970-01-01."""
    series = [pl.Series(ROW_KEY[0], range(len(values)), pl.Int32)]
    for place, (name, kind) in enumerate(columns.items()):
        column = [row[place] for row in values]
        days = kind == "date" and any(isinstance(value, int) for value in column)
        made = pl.Series(name, column, pl.Int32 if days else polars_dtype(kind), strict=True)
        series.append(made.cast(pl.Date) if days else made)
    return pl.DataFrame(series)


def definition(kind: Kind, system: str) -> str:
    """Return CREATE TABLE with `{table}` for `format` to fill in.

    Every column of a usual type is nullable, but for the key.
    """
    usual, own, identifier = _TYPES[system], _stored(kind, system).types, _SQL[system].identifier
    types = {name: own.get(name) or usual[kind.columns[name]] for name in (*kind.columns, *own)}
    parts = "".join(f", {identifier(name)} {of}" for name, of in types.items()).replace("{", "{{").replace("}", "}}")
    if system == "postgres":
        return f"CREATE TABLE {{table}} ({ROW_KEY[0]} integer PRIMARY KEY{parts})"
    return f"CREATE TABLE {{table}} ({ROW_KEY[0]} Int32{parts}) ENGINE = MergeTree ORDER BY {ROW_KEY[0]}"


def enum(kind: Kind, system: str) -> tuple[str, ...]:
    """Return the labels of the enum that is to be made before the table, if any."""
    return _stored(kind, system).enum


def selection(kind: Kind, system: str) -> str:
    """Return what the reference client selects: all columns, also those that SELECT * leaves out."""
    shown, identifier = _stored(kind, system).shown, _SQL[system].identifier
    columns = {name: identifier(name) for name in stored_kinds(kind, system)}
    return ", ".join(f"{shown[name]} AS {column}" if name in shown else column for name, column in columns.items())


def insertion(kind: Kind, system: str) -> str | None:
    """Return INSERT of a kind's rows as texts and numbers of SQL, already cast, with `{table}` for the name.

    None where the table is the usual one, which the reference client fills from a file. Here the server parses what
    that client has no type for; that the values have arrived, the fetch shows.
    """
    if system not in kind.stored:
        return None
    given, made = rows(kind, system), stored(kind, system)
    cast = [made[name] if made.schema[name] != dtype else given[name] for name, dtype in given.schema.items()]
    values = ", ".join(f"({', '.join(_literal(value, system) for value in row)})" for row in zip(*cast, strict=True))
    return f"INSERT INTO {{table}} ({_SQL[system].identifiers(given.columns)}) VALUES {values}"


def _literal(value: object, system: str) -> str:
    if isinstance(value, int | float | Decimal):
        return str(value)
    return _SQL[system].literal(str(value))


def _stored(kind: Kind, system: str) -> Stored:
    return kind.stored.get(system, Stored({}))
