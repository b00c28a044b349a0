"""Hostile values in ClickHouse."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from clickhouse_connect.driver.client import Client

from harness.datasets.hostile.common_kinds import MOMENTS
from harness.datasets.hostile.kind import KEY, LABELS, Own, column
from harness.machine.variables import namespace
from harness.model import Scalar
from harness.systems.clickhouse.tables import column_type
from harness.transports.clickhouse.sql import identifier, literal

_LABELS = ", ".join(f"{literal(label)} = {number}" for number, label in enumerate(LABELS, 1))
# An Array and a Tuple cannot be null here; an Array's items can. FixedString columns are not nullable, as usual; in a
# nullable one the server itself may store a null instead of a string that is too long.
_USUAL = ("text", "uuid", "date", "int32", "int64", "float32", "float64", "boolean", "timestamp", "timestamp_tz")
TYPES: dict[str, str] = {
    logical: f"Nullable({column_type(logical)})" for logical in (*_USUAL, "decimal", "uint32", "uint64")
} | {
    "array": str(column_type("array")),
    "nested": "Tuple(a Int32, b String)",
    "padded_text": "FixedString(4)",
    "short_text": "FixedString(4)",
    "label": f"Enum8({_LABELS})",
    "json": "JSON",
    "computed": "Nullable(Int32) MATERIALIZED int_value * 2",
    "defaulted": "Nullable(Int32) DEFAULT int_value * 2",
}
_DOUBLED = {"double_value": [14, -16, 0]}
_AS_TEXT = Own(shown={"text_value": "toString(text_value)"})  # Arrow returns an Enum8 as its number
_NO_FAR_YEARS = "DateTime64 has neither of these years"
_INSTANTS = [moment for moment in MOMENTS if 1900 <= moment.year <= 2299]


def _dates(*values: str) -> list[dict[str, dt.date]]:
    return column("date_value", *map(dt.date.fromisoformat, values))


OWN = {
    "dates": Own(
        rows=_dates("1970-01-01", "1970-01-02", "2000-02-29", "2149-06-06"), remark="the first and the last Date"
    ),
    "dates_beyond": Own(rows=_dates("2025-03-04", "1969-12-31", "2149-06-07")),
    "timestamps": Own(rows=column("timestamp_value", *_INSTANTS), remark=_NO_FAR_YEARS),
    "timestamps_tz": Own(
        rows=column("timestamp_tz_value", *(moment.replace(tzinfo=dt.UTC) for moment in _INSTANTS)),
        remark=_NO_FAR_YEARS,
    ),
    "padded_text": Own(made={"text_value": ["ab\0\0", "abcd"]}, remark="U+0000"),
    "enum": _AS_TEXT,
    "unknown_label": _AS_TEXT,
    "generated": Own(hidden=("double_value",), remark="not in SELECT *"),
    "column_default": Own(made=_DOUBLED),
}


def definition(columns: Sequence[str]) -> str:
    """Return CREATE TABLE with `{table}` for the name, with the key and these columns."""
    return f"CREATE TABLE {{table}} ({', '.join([f'{KEY} Int32', *columns])}) ENGINE = MergeTree ORDER BY {KEY}"


def make_types(client: Client) -> None:
    """Do nothing: an enum's labels are part of its column."""


def drop_types(client: Client) -> None:
    """Do nothing."""


def clear(client: Client, table: str) -> None:
    """Truncate the table."""
    client.command(f"TRUNCATE TABLE {namespace()}.{identifier(table)}")


def marks(client: Client) -> dict[str, str]:
    """Return the definition of each table."""
    select = (
        f"SELECT name, concat(toString(uuid), create_table_query) FROM system.tables WHERE database = '{namespace()}'"
    )
    found: Scalar = client.query(select).result_rows
    return dict(found)
