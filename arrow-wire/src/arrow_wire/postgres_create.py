"""Creates the table for a frame, or empties an existing one."""

from typing import Any

import pyarrow as pa
from psycopg import Connection, sql
from pyarrow import types as of

from arrow_wire.errors import UnsupportedType
from arrow_wire.postgres_server import ask

_SIMPLE = (
    (of.is_boolean, "boolean"),
    (of.is_int8, "smallint"),
    (of.is_uint8, "smallint"),
    (of.is_int16, "smallint"),
    (of.is_uint16, "integer"),
    (of.is_int32, "integer"),
    (of.is_uint32, "bigint"),
    (of.is_int64, "bigint"),
    (of.is_uint64, "numeric(20, 0)"),
    (of.is_float32, "real"),
    (of.is_float64, "double precision"),
    (of.is_string, "text"),
    (of.is_large_string, "text"),
    (of.is_string_view, "text"),
    (of.is_binary, "bytea"),
    (of.is_large_binary, "bytea"),
    (of.is_binary_view, "bytea"),
    (of.is_fixed_size_binary, "bytea"),
    (of.is_date, "date"),
    (of.is_time, "time"),
    (of.is_duration, "interval"),
    (of.is_interval, "interval"),
    (of.is_null, "text"),
)


def create(connection: Connection[Any], table: str, schema: pa.Schema) -> None:
    """Create a table of a schema's columns, without a key. Raises UnsupportedType for a type without a match."""
    columns = [f"{sql.Identifier(field.name).as_string()} {sql_type(field)}" for field in schema]
    ask(connection, f"CREATE TABLE {table} ({', '.join(columns)})")


def empty(connection: Connection[Any], table: str) -> bool:
    """Empty a table (TRUNCATE), and return whether there is one."""
    [(there,)] = ask(connection, "SELECT to_regclass(%s) IS NOT NULL", [table])
    if there:
        ask(connection, f"TRUNCATE {table}")
    return bool(there)


def sql_type(field: pa.Field) -> str:
    """Return the Postgres type that holds every value of an Arrow field.

    Timestamps in nanoseconds are the exception: only whole microseconds fit.
    """
    found = _type(field.type)
    if found is None:
        raise UnsupportedType(
            f'column "{field.name}": Postgres has no type for {field.type}; cast it, or create the table'
        )
    return found


def _type(arrow_type: pa.DataType) -> str | None:
    if arrow_type == pa.uuid():
        return "uuid"
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _type(arrow_type.storage_type)
    if of.is_dictionary(arrow_type):
        return _type(arrow_type.value_type)
    if of.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz is None else "timestamptz"
    if of.is_decimal(arrow_type):
        return f"numeric({arrow_type.precision}, {arrow_type.scale})" if arrow_type.scale >= 0 else None
    if of.is_list(arrow_type) or of.is_large_list(arrow_type) or of.is_fixed_size_list(arrow_type):
        item = _type(arrow_type.value_type)
        return item and (item if item.endswith("[]") else f"{item}[]")
    return next((name for is_one, name in _SIMPLE if is_one(arrow_type)), None)
