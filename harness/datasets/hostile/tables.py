"""The rows of a kind of values as a frame, and the table they go into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from harness.canonical import polars_dtype
from harness.datasets.hostile.kinds import ORDINARY, Kind
from harness.transports.clickhouse import sql as clickhouse_sql
from harness.transports.postgres import sql as postgres_sql

ROW_KEY = ("row_number",)
_IDENTIFIERS = {"postgres": postgres_sql.identifier, "clickhouse": clickhouse_sql.identifier}
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
    },
}


def kinds_of(columns: dict[str, str]) -> dict[str, str]:
    """Return all columns of a table with their kinds: the key and these."""
    return {ROW_KEY[0]: "int32", **columns}


def rows(kind: Kind, system: str) -> pl.DataFrame:
    """Return the rows of a kind in a system as a canonical frame in the order of its key."""
    values = [{**ORDINARY, **row} for row in kind.rows[system]]
    return frame(kind.columns, [[row[name] for name in kind.columns] for row in values])


def frame(columns: dict[str, str], values: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Return rows of values as a canonical frame, numbered from 0. A date may be days since 1970-01-01."""
    series = [pl.Series(ROW_KEY[0], range(len(values)), pl.Int32)]
    for place, (name, kind) in enumerate(columns.items()):
        column = [row[place] for row in values]
        days = kind == "date" and any(isinstance(value, int) for value in column)
        made = pl.Series(name, column, pl.Int32 if days else polars_dtype(kind), strict=True)
        series.append(made.cast(pl.Date) if days else made)
    return pl.DataFrame(series)


def definition(columns: dict[str, str], system: str) -> str:
    """Return CREATE TABLE with `{table}` for `format` to fill in: every column but the key is nullable."""
    types, identifier = _TYPES[system], _IDENTIFIERS[system]
    named = ((identifier(name).replace("{", "{{").replace("}", "}}"), kind) for name, kind in columns.items())
    parts = "".join(f", {name} {types[kind]}" for name, kind in named)
    if system == "postgres":
        return f"CREATE TABLE {{table}} ({ROW_KEY[0]} integer PRIMARY KEY{parts})"
    return f"CREATE TABLE {{table}} ({ROW_KEY[0]} Int32{parts}) ENGINE = MergeTree ORDER BY {ROW_KEY[0]}"
