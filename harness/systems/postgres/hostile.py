"""Hostile values in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from adbc_driver_manager.dbapi import Connection

from harness.datasets.hostile.kind import KEY, LABELS, Own
from harness.machine.variables import namespace
from harness.systems.postgres import client
from harness.systems.postgres.tables import column_type
from harness.transports.postgres.sql import identifier

_ENUM = "hostile_labels"
# The usual logical types that Postgres has a type for; unsigned ones go into the next larger, see OWN.
_USUAL = ("text", "uuid", "date", "int32", "int64", "float32", "float64", "boolean", "timestamp", "timestamp_tz")
TYPES: dict[str, str] = {logical: str(column_type(logical)) for logical in (*_USUAL, "decimal", "array")} | {
    "padded_text": "char(4)",
    "short_text": "varchar(4)",
    "label": _ENUM,
    "json": "json",
    "jsonb": "jsonb",
    "computed": "integer GENERATED ALWAYS AS (int_value * 2) STORED",
    "defaulted": "integer DEFAULT 5",
}
# The next larger type holds these values, and reads of it are tested elsewhere.
_NOT_UNSIGNED = "no type of Postgres is unsigned: this is a table of an ordinary type"
_MADE = Own(remark="a type made for it")
OWN = {
    "nul_character": Own(forbidden="text of Postgres has no U+0000"),
    "far_dates": Own(
        rows=[{"date_value": -2_440_588}, {"date_value": 2_145_042_905}],  # days since 1970
        remark="4714-11-24 BC and 5874897-12-31",
    ),
    "uint32": Own(types={"uint32_value": "bigint"}, no_read=_NOT_UNSIGNED),
    "uint64": Own(types={"uint64_value": "numeric"}, no_read=_NOT_UNSIGNED),
    # The reference client does not support composite types, which would need a separate CREATE TYPE.
    "nested": Own(without="a composite type needs its own statement"),
    "negative_into_unsigned": Own(without="no type is unsigned"),
    "enum": _MADE,
    "unknown_label": _MADE,
    "padded_text": Own(made={"text_value": ["ab  ", "abcd"]}, remark="spaces"),
    "boolean_into_int32": Own(may_refuse="boolean does not become integer without a cast"),
    "int32_into_date": Own(may_refuse="integer does not become date"),
    "timestamp_into_int64": Own(may_refuse="timestamp does not become bigint"),
}


def definition(columns: Sequence[str]) -> str:
    """Return CREATE TABLE with `{table}` for the name, with the key and these columns."""
    return f"CREATE TABLE {{table}} ({', '.join([f'{KEY} integer PRIMARY KEY', *columns])})"


def make_types(connection: Connection) -> None:
    """Create the enum of the labels."""
    client.create_enum(connection, _ENUM, LABELS)


def drop_types(connection: Connection) -> None:
    """Drop it again; no table may use it any more."""
    client.drop_enum(connection, _ENUM)


def clear(connection: Connection, table: str) -> None:
    """Delete the rows; TRUNCATE creates new files, which takes as long as a new table."""
    full = identifier(table)
    client.say(connection, "SET lock_timeout = '10s'")
    client.say(connection, f"DO $do$ BEGIN LOCK TABLE {full} IN ACCESS EXCLUSIVE MODE; DELETE FROM {full}; END $do$")


def marks(connection: Connection) -> dict[str, str]:
    """Return each table's versions of the catalogue rows that describe it, its columns and its indexes."""
    of_columns = "(SELECT string_agg(a.xmin::text, ',' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid)"
    of_indexes = "(SELECT string_agg(i.xmin::text, ',' ORDER BY i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid)"
    found = client.query(
        connection,
        f"SELECT c.relname, concat_ws(';', c.oid, c.xmin, {of_columns}, {of_indexes}) FROM pg_class c "
        f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '{namespace()}' AND c.relkind = 'r'",
    )
    return dict(found)
