"""Tables of datasets in ClickHouse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.check.logical_types import digits, fields, items, mapped, plain
from harness.datasets.specification import PLAIN, Column, Specification
from harness.model import LabError
from harness.transports.clickhouse.sql import identifier, identifiers, literal

if TYPE_CHECKING:
    import polars as pl

TYPES = {
    "text": "String",
    "uuid": "UUID",
    "date": "Date",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float32": "Float32",
    "float64": "Float64",
    "boolean": "Bool",
    "time": "Time64(6)",
    "timestamp": "DateTime64(6)",
    "timestamp_tz": "DateTime64(6, 'UTC')",
    "timestamp_ns": "DateTime64(9)",
    "timestamp_tz_ns": "DateTime64(9, 'UTC')",
    "category": "String",
    "binary": "String",
}
STORED = {"category": "text"}  # types that a read returns
# https://clickhouse.com/docs/sql-reference/data-types/date, date32, datetime64
_DATE = dt.date(1970, 1, 1), dt.date(2149, 6, 6)
# Of Date32 and DateTime64, whose range with nine digits ends with 64 bits.
_FAR = dt.date(1900, 1, 1), dt.date(2299, 12, 31)
_NOT_NULL = {"array": "an Array", "nested": "a Tuple", "map": "a Map"}
# Advice for a column that ClickHouse has no type for.
_INSTEAD = {"duration": " (Time64 ends at 999:59:59); make it a number of microseconds"}


def definition(spec: Specification, profile: str) -> str | None:
    """Return CREATE TABLE with `{table}` for the name; None without such a profile or table.

    As in the article, a string column's default is the empty string, and columns with few distinct strings are
    LowCardinality. Of described columns, categories are LowCardinality, or Enum with the profile `enum` if their labels
    are known. Raises LabError for a column that ClickHouse cannot hold.
    """
    engines = {PLAIN: _merge_tree(spec), "heap": "MergeTree() ORDER BY tuple()", "log": "Log", "memory": "Memory"}
    enums = {column.name: _enum(column) for column in spec.columns if column.labels} if profile == "enum" else {}
    if enums:
        engines["enum"] = engines[PLAIN]
    if profile not in engines or not spec.in_databases:
        return None
    described = {column.name: _described(column) for column in spec.columns} | enums
    types = described or {name: _type(spec, name) for name in spec.logical_types}
    columns = ", ".join(f"{identifier(name)} {of}" for name, of in types.items())
    return f"CREATE TABLE {{table}} ({columns}) ENGINE = {engines[profile]}"


def column_type(logical: str, date: str = "Date") -> str | None:
    """Return the SQL type of a column of this logical type, with the date type to use; None without one."""
    if plain(logical) == "decimal":
        return f"Decimal({', '.join(map(str, digits(logical)))})"
    if plain(logical) == "array":
        of_items = _inside(items(logical), date)
        return of_items and f"Array({of_items})"
    if plain(logical) == "nested":
        parts = {name: _inside(of, date) for name, of in fields(logical).items()}
        named = ", ".join(f"{identifier(name)} {of}" for name, of in parts.items())
        return f"Tuple({named})" if all(parts.values()) else None
    if plain(logical) == "map":
        keys, values = column_type(mapped(logical)[0], date), _inside(mapped(logical)[1], date)
        return f"Map({keys}, {values})" if keys and values else None
    return date if logical == "date" else TYPES.get(logical)


def _inside(logical: str, date: str) -> str | None:
    """Return the type of items in an Array, a Tuple or a Map: Nullable, except for these three themselves."""
    sql_type = column_type(logical, date)
    return sql_type if sql_type is None or plain(logical) in _NOT_NULL else f"Nullable({sql_type})"


def _type(spec: Specification, name: str) -> str:
    sql_type = TYPES[spec.logical_types[name]]
    if spec.logical_types[name] != "text":
        return sql_type
    return (f"LowCardinality({sql_type})" if name in spec.few_strings else sql_type) + " DEFAULT ''"


def _described(column: Column) -> str:
    sql_type = column_type(column.logical_type)
    if sql_type is None:
        instead = _INSTEAD.get(column.logical_type, "; leave it out or cast it")
        raise LabError(f'column "{column.name}": ClickHouse has no type for {column.logical_type}{instead}')
    if plain(column.logical_type) in _NOT_NULL:
        _require_no_null(column)
    if column.low and column.high:
        if not _FAR[0] <= column.low <= column.high <= _FAR[1]:
            where = column.place("low" if column.low < _FAR[0] else "high")
            raise LabError(
                f"{where}: ClickHouse holds dates from {_FAR[0]} to {_FAR[1]} only; leave the others or the column out"
            )
        if not _DATE[0] <= column.low <= column.high <= _DATE[1]:
            sql_type = column_type(column.logical_type, "Date32") or sql_type
    if plain(column.logical_type) in _NOT_NULL:
        return sql_type
    made = f"Nullable({sql_type})" if column.nullable else sql_type
    return f"LowCardinality({made})" if column.logical_type == "category" else made


def _enum(column: Column) -> str:
    """Return an Enum of the column's labels: https://clickhouse.com/docs/sql-reference/data-types/enum"""
    bits = 8 if len(column.labels) < 128 else 16  # numbers start at 1 and are signed
    numbered = ", ".join(f"{literal(label)} = {number}" for number, label in enumerate(column.labels, 1))
    made = f"Enum{bits}({numbered})"
    return f"Nullable({made})" if column.nullable else made


def _require_no_null(column: Column) -> None:
    """Raise LabError for lists and structs that are null, as values or within other values."""
    for what in ("null", "missing"):
        if what in column.rows:
            raise LabError(
                f"{column.place(what)}: {_NOT_NULL[plain(column.logical_type)]} of ClickHouse cannot be null, nor a "
                "list, a struct or a map in it; make it an empty one, or a struct of nulls"
            )


def require_even(parquet: str | Path, logical_types: Mapping[str, str]) -> None:
    """Raise LabError if the list columns a.x and a.y have different lengths, because they form one Nested.

    https://clickhouse.com/docs/sql-reference/data-types/nested-data-structures/nested
    """
    parts: dict[str, dict[str, int]] = {}
    for place, (name, logical) in enumerate(logical_types.items()):
        if plain(logical) == "array" and "." in name:
            parts.setdefault(name.partition(".")[0], {})[name] = place
    for nested, places in parts.items():
        (first, place), *others = places.items()
        lengths = _lengths(parquet, place)
        for name, at in others:
            if uneven := (lengths != _lengths(parquet, at)).arg_true().to_list():
                raise LabError(
                    f'column "{name}", row {uneven[0]}: ClickHouse takes "{first}" and "{name}" for parts of one '
                    f'Nested "{nested}", whose lists have one length in a row; rename one'
                )


def _lengths(parquet: str | Path, place: int) -> pl.Series:
    import polars as pl

    return pl.read_parquet(parquet, columns=[place], memory_map=False).to_series().list.len()


def _merge_tree(spec: Specification) -> str:
    if not spec.order:
        return "MergeTree() ORDER BY tuple()"
    parted = f"PARTITION BY toYYYYMM({identifier(spec.month)}) " if spec.month else ""
    return f"MergeTree() {parted}ORDER BY ({identifiers(spec.order)})"
