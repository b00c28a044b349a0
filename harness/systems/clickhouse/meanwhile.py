"""What others do to a table of ClickHouse while a transport is at it, and what the server tells of who writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.model import NAMESPACE
from harness.transports.clickhouse.sql import identifier, literal

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

PROFILE = "keyed"  # no key of ClickHouse refuses a row


class Rows:
    """The rows that others see, and the connections that were open when there were fewer.

    ClickHouse tells of no transactions. Who closes its connection when rows appear has most likely brought them.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._rows, self._owners = client, self._count(client), dict[int, int]()

    @staticmethod
    def _count(client: Client) -> int:
        asked = f"SELECT sum(rows) FROM system.parts WHERE active AND database = '{NAMESPACE}'"
        return int(client.query(asked).result_rows[0][0])

    def look(self, owners: Mapping[int, int]) -> tuple[list[int], list[int]]:
        """See `harness.systems.system.Watch`; whoever is connected is taken to write."""
        rows, before = self._count(self._client), self._owners
        more, self._rows, self._owners = rows > self._rows, rows, dict(owners)
        if not more:
            return list(owners.values()), []
        closed = [pid for port, pid in before.items() if port not in owners]
        return [], closed or list(before.values())


def watch(client: Client) -> Rows:
    """Begin to watch."""
    return Rows(client)


def change(client: Client, table: str, warmup: str, month: str, step: int) -> None:
    """Insert all rows of one month, which is one partition, of the small table.

    Such an INSERT is seen whole or not at all; one into several partitions would be seen partition by partition.
    """
    first_or_last = "max" if step % 2 else "min"
    ours, small = f"{NAMESPACE}.{identifier(table)}", f"{NAMESPACE}.{identifier(warmup)}"
    parts = f"SELECT {first_or_last}(partition_id) FROM system.parts WHERE active AND database = '{NAMESPACE}'"
    client.command(
        f"INSERT INTO {ours} SELECT * FROM {small} WHERE _partition_id = ({parts} AND table = {literal(warmup)})"
    )
