"""Creates the table for a frame."""

import pyarrow as pa
from pyarrow import types as of

from arrow_wire.clickhouse_http import identifier
from arrow_wire.errors import UnsupportedType

_SIMPLE = (
    (of.is_boolean, "Bool"),
    (of.is_float32, "Float32"),
    (of.is_float64, "Float64"),
    (of.is_string, "String"),
    (of.is_large_string, "String"),
    (of.is_string_view, "String"),
    (of.is_binary, "String"),
    (of.is_large_binary, "String"),
    (of.is_binary_view, "String"),
    (of.is_date, "Date32"),
    (of.is_null, "String"),
)
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def create(table: str, schema: pa.Schema) -> str:
    """Return the statement that creates a table of a schema's columns: MergeTree, in the order of arrival.

    A column that the schema does not declare free of nulls is Nullable. Raises UnsupportedType for a type without a
    counterpart there.
    """
    columns = ", ".join(f"{identifier(field.name)} {sql_type(field)}" for field in schema)
    return f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()"


def sql_type(field: pa.Field) -> str:
    """Return the ClickHouse type that holds every value of an Arrow field, except dates before 1900 or after 2299."""
    found = _type(field.type, field.nullable)
    if found is None:
        raise UnsupportedType(
            f'column "{field.name}": ClickHouse has no type for {field.type}; cast it, or create the table'
        )
    return found


def _type(arrow_type: pa.DataType, nullable: bool) -> str | None:
    if isinstance(arrow_type, pa.BaseExtensionType) and arrow_type != pa.uuid():
        return _type(arrow_type.storage_type, nullable)
    if of.is_list(arrow_type) or of.is_large_list(arrow_type) or of.is_fixed_size_list(arrow_type):
        item = _type(arrow_type.value_type, arrow_type.value_field.nullable)
        return item and f"Array({item})"
    if of.is_dictionary(arrow_type):
        inner = _type(arrow_type.value_type, nullable)
        return inner and (f"LowCardinality({inner})" if "String" in inner else inner)
    found = _plain(arrow_type)
    return found and (f"Nullable({found})" if nullable else found)


def _plain(arrow_type: pa.DataType) -> str | None:
    if arrow_type == pa.uuid():
        return "UUID"
    if of.is_integer(arrow_type):
        return f"{'U' if of.is_unsigned_integer(arrow_type) else ''}Int{arrow_type.bit_width}"
    if of.is_decimal(arrow_type):
        return f"Decimal({arrow_type.precision}, {arrow_type.scale})" if arrow_type.scale >= 0 else None
    if of.is_timestamp(arrow_type):
        zone = f", '{arrow_type.tz}'" if arrow_type.tz else ""
        return f"DateTime64({_DIGITS[arrow_type.unit]}{zone})"
    if of.is_fixed_size_binary(arrow_type):
        return f"FixedString({arrow_type.byte_width})"
    return next((name for is_one, name in _SIMPLE if is_one(arrow_type)), None)
