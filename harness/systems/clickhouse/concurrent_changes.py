"""Changes to a ClickHouse table while a transport works on it, and detection of writers."""

from __future__ import annotations

from collections.abc import Sequence

from clickhouse_connect.driver.client import Client

from harness.machine.marked import Connection
from harness.machine.variables import namespace
from harness.transports.clickhouse.sql import identifier, literal

_PATIENT_LOOKS = 20
PROFILE = "keyed"  # no ClickHouse key refuses a row


class Rows:
    """The visible rows, and the connections that were open when there were fewer.

    ClickHouse does not report transactions. New rows belong to connections that the server has answered since, or that
    have closed since. If no such connection exists, every connection at that time may have written them.
    """

    def __init__(self, client: Client) -> None:
        self._client, self._rows, self._owners = client, self._count(client), dict[int, int]()
        self._looks = 0  # looks since rows appeared

    @staticmethod
    def _count(client: Client) -> int:
        asked = f"SELECT sum(rows) FROM system.parts WHERE active AND database = '{namespace()}'"
        return int(client.query(asked).result_rows[0][0])

    def look(self, opened: Sequence[Connection]) -> tuple[list[int], list[int]]:
        """See `harness.systems.system.Watch`; every connected process counts as writing."""
        owners = {one.port: one.pid for one in opened}
        if not self._looks and self._count(self._client) <= self._rows:
            self._owners = owners
            return list(owners.values()), []
        self._looks += 1
        answered = [one.pid for one in opened if one.unread and one.port in self._owners]
        closed = [pid for port, pid in self._owners.items() if port not in owners]
        return [], answered or closed or (list(self._owners.values()) if self._looks > _PATIENT_LOOKS else [])


def watch(client: Client) -> Rows:
    """Start to watch."""
    return Rows(client)


def change(client: Client, table: str, warmup: str, month: str, step: int) -> None:
    """Insert all rows of one month, which is one partition, of the small table.

    Other connections see such an INSERT whole or not at all. An INSERT into several partitions would appear partition
    by partition.
    """
    first_or_last = "max" if step % 2 else "min"
    ours, small = f"{namespace()}.{identifier(table)}", f"{namespace()}.{identifier(warmup)}"
    parts = f"SELECT {first_or_last}(partition_id) FROM system.parts WHERE active AND database = '{namespace()}'"
    client.command(
        f"INSERT INTO {ours} SELECT * FROM {small} WHERE _partition_id = ({parts} AND table = {literal(warmup)})"
    )
