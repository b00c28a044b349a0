"""Sums of a ClickHouse table, computed by the server; see `harness.check.sums`."""

from __future__ import annotations

from collections.abc import Mapping

from clickhouse_connect.driver.client import Client

from harness.check.sums import Sums, require
from harness.machine.variables import namespace
from harness.transports.clickhouse.sql import identifier

_BYTES = {
    "boolean": "reinterpretAsFixedString(toUInt8({0}))",
    "int16": "reinterpretAsFixedString(byteSwap({0}))",
    "int32": "reinterpretAsFixedString(byteSwap({0}))",
    "int64": "reinterpretAsFixedString(byteSwap({0}))",
    "float64": "reinterpretAsFixedString(byteSwap(reinterpretAsUInt64(if(isNaN({0}), nan, {0}))))",
    "date": "reinterpretAsFixedString(byteSwap(toInt32({0})))",
    "timestamp": "reinterpretAsFixedString(byteSwap(toUnixTimestamp64Micro({0})))",
    "timestamp_tz": "reinterpretAsFixedString(byteSwap(toUnixTimestamp64Micro({0})))",
    "uuid": "UUIDStringToNum(toString({0}))",
    "text": "toString({0})",
}


def sums(client: Client, table: str, logical_types: Mapping[str, str]) -> Sums:
    """Have the server sum a table of the lab. Raises LabError for a logical type that it cannot sum."""
    require(logical_types)
    names = {name: identifier(name) for name in logical_types}
    octets = {name: _BYTES[logical].format(f"assumeNotNull({names[name]})") for name, logical in logical_types.items()}
    asked = ["count()", *(f"countIf(isNull({name}))" for name in names.values())]
    asked += [f"sumIf(toUInt64(CRC32({octets[name]})), isNotNull({names[name]}))" for name in logical_types]
    row = ", ".join(_in_row(names[name], octets[name], logical) for name, logical in logical_types.items())
    asked.append(f"sum(reinterpretAsUInt64(reverse(substring(MD5(concat({row}, '')), 1, 8))))")
    statement = f"SELECT {', '.join(asked)} FROM {namespace()}.{identifier(table)}"
    rows, *counted, whole = map(int, client.query(statement).result_rows[0])
    return Sums(
        rows,
        dict(zip(logical_types, counted[: len(logical_types)], strict=True)),
        dict(zip(logical_types, counted[len(logical_types) :], strict=True)),
        whole,
    )


def _in_row(name: str, octets: str, logical: str) -> str:
    length = f"reinterpretAsFixedString(byteSwap(toUInt32(length({octets})))), " if logical == "text" else ""
    return f"if(isNull({name}), '\\0', concat('\\x01', {length}{octets}))"
