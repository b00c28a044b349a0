"""Sums of a Postgres table, computed by the server; see `harness.check.sums`."""

from __future__ import annotations

from collections.abc import Mapping

from adbc_driver_manager.dbapi import Connection

from harness.check.sums import Sums, require
from harness.systems.postgres.client import query
from harness.transports.postgres.sql import identifier

_BYTES = {
    "boolean": "boolsend({0})",
    "int16": "int2send({0})",
    "int32": "int4send({0})",
    "int64": "int8send({0})",
    "float64": r"CASE WHEN {0} = 'NaN' THEN '\x7ff8000000000000'::bytea ELSE float8send({0}) END",
    "date": "int4send({0} - DATE '1970-01-01')",
    "timestamp": "int8send((extract(epoch FROM {0}) * 1000000)::bigint)",
    "timestamp_tz": "int8send((extract(epoch FROM {0}) * 1000000)::bigint)",
    "uuid": "uuid_send({0})",
    "text": "convert_to({0}, 'UTF8')",
}
_FIRST_WITH_CRC32 = 180000  # https://www.postgresql.org/docs/18/functions-binarystring.html


def sums(connection: Connection, table: str, logical_types: Mapping[str, str]) -> Sums:
    """Have the server sum a table of the lab; without CRC32 (before version 18) only whole rows. Raises LabError."""
    require(logical_types)
    version = int(query(connection, "SELECT current_setting('server_version_num')")[0][0])
    with_columns = version >= _FIRST_WITH_CRC32
    names = {name: identifier(name) for name in logical_types}
    octets = {name: _BYTES[logical].format(names[name]) for name, logical in logical_types.items()}
    asked = ["count(*)", *(f"count(*) - count({name})" for name in names.values())]
    if with_columns:
        asked += [f"coalesce(sum(crc32({of})), 0)::text" for of in octets.values()]
    row = " || ".join(_in_row(names[name], octets[name], logical) for name, logical in logical_types.items())
    asked.append(f"coalesce(sum(('x' || left(md5({row}), 16))::bit(64)::bigint), 0)::text")
    rows, *counted, whole = query(connection, f"SELECT {', '.join(asked)} FROM {identifier(table)}")[0]
    nulls, columns = counted[: len(logical_types)], counted[len(logical_types) :]
    return Sums(
        rows,
        dict(zip(logical_types, nulls, strict=True)),
        dict(zip(logical_types, map(int, columns), strict=True)) if with_columns else {},
        int(whole) % 2**64,
    )


def _in_row(name: str, octets: str, logical: str) -> str:
    length = f" || int4send(octet_length({octets}))" if logical == "text" else ""
    return rf"CASE WHEN {name} IS NULL THEN '\x00'::bytea ELSE '\x01'::bytea{length} || {octets} END"
