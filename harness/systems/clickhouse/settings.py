"""ClickHouse settings that are parameters of a case, and the state that a write leaves.

`insert_block_rows`: the number of rows in a block, which the server writes as one part of each partition. It sets
max_insert_block_size and min_insert_block_size_rows, and min_insert_block_size_bytes = 0, because a byte limit would
end a block earlier (https://clickhouse.com/docs/reference/settings/session-settings/min-insert). The server combines
blocks that a client sends itself, as in Native, but does not split them.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from clickhouse_connect.driver.client import Client

from harness.datasets.specification import Specification
from harness.machine.variables import namespace
from harness.model import Value
from harness.transports.clickhouse.sql import literal

NAMES = frozenset({"insert_block_rows"})
OF_WHOLE_SERVER: frozenset[str] = frozenset()


def configure(client: Client, parameters: Mapping[str, Value]) -> bool:
    """Do nothing: no parameter applies to the whole server."""
    return False


def address(uri: str, parameters: Mapping[str, Value]) -> str:
    """Return the address of sessions with these settings."""
    if "insert_block_rows" not in parameters:
        return uri
    rows = int(parameters["insert_block_rows"])
    settings = {"max_insert_block_size": rows, "min_insert_block_size_rows": rows, "min_insert_block_size_bytes": 0}
    settings["max_block_size"] = rows  # the embedded engine reads arriving data as a table, in blocks of this size
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(query=urlencode(dict(parse_qsl(parts.query)) | settings)))


def statements(spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
    """Return the statements to run after an empty table is created: none."""
    return []


def left(client: Client, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
    """Return `parts`, the table's active parts still to be merged, and `table_bytes`, its size on disk.

    An engine without parts has no `parts`. `table_bytes` is the server's figure, 0 if it has none.
    """
    where = f"database = '{namespace()}' AND table = {literal(table)} AND active"
    ((parts, size),) = client.query(f"SELECT count(), sum(bytes_on_disk) FROM system.parts WHERE {where}").result_rows
    if not parts:
        whole = f"SELECT total_bytes FROM system.tables WHERE database = '{namespace()}' AND name = {literal(table)}"
        size = client.query(whole).result_rows[0][0] or 0
    return {"parts": int(parts), "table_bytes": int(size)}
