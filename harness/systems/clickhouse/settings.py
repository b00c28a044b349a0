"""Settings of ClickHouse that are parameters of a case, and what a write has left.

`insert_block_rows`: how many rows the server puts into a block before it writes that as a part of each partition:
max_insert_block_size, min_insert_block_size_rows and, which would end a block before, min_insert_block_size_bytes = 0
(https://clickhouse.com/docs/reference/settings/session-settings/min-insert). What a client sends in blocks of its own,
as Native is, is put together and not taken apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from harness.datasets.specification import Specification
from harness.machine.variables import namespace
from harness.model import Value
from harness.transports.clickhouse.sql import literal

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

NAMES = frozenset({"insert_block_rows"})
OF_WHOLE_SERVER: frozenset[str] = frozenset()


def configure(client: Client, parameters: Mapping[str, Value]) -> bool:
    """Have nothing set: no parameter is of the whole server."""
    return False


def address(uri: str, parameters: Mapping[str, Value]) -> str:
    """Return the address of sessions with these settings."""
    if "insert_block_rows" not in parameters:
        return uri
    rows = int(parameters["insert_block_rows"])
    settings = {"max_insert_block_size": rows, "min_insert_block_size_rows": rows, "min_insert_block_size_bytes": 0}
    settings["max_block_size"] = rows  # the embedded engine reads what arrives as a table, in blocks of this size
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | settings)))


def statements(spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
    """Return what is said to the server once an empty table is made: nothing."""
    return []


def left(client: Client, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
    """Return `parts`: the active parts of a table, which are still to be merged; and `table_bytes`, what it takes.

    An engine without parts has none; what it takes is the server's own word, 0 where that has none.
    """
    where = f"database = '{namespace()}' AND table = {literal(table)} AND active"
    ((parts, size),) = client.query(f"SELECT count(), sum(bytes_on_disk) FROM system.parts WHERE {where}").result_rows
    if not parts:
        whole = f"SELECT total_bytes FROM system.tables WHERE database = '{namespace()}' AND name = {literal(table)}"
        size = client.query(whole).result_rows[0][0] or 0
    return {"parts": int(parts), "table_bytes": int(size)}
