"""Changes to a Postgres table while a transport works on it, and detection of writers."""

from __future__ import annotations

from collections.abc import Sequence

from adbc_driver_manager.dbapi import Connection

from harness.machine.marked import Connection as Opened
from harness.systems.postgres.client import query
from harness.transports.postgres.sql import identifier

PROFILE = "heap"  # a key would refuse repeated rows
_PAGES = 5  # pages whose rows one change moves


class Transactions:
    """Transactions of other connections; see `harness.systems.system.Watch`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._open: dict[str, int] = {}  # transaction id -> process, for each transaction that has written

    def look(self, opened: Sequence[Opened]) -> tuple[list[int], list[int]]:
        """See `harness.systems.system.Watch`."""
        owners = {one.port: one.pid for one in opened}
        statement = (
            "SELECT backend_xid::text, client_port FROM pg_stat_activity WHERE backend_xid IS NOT NULL "
            "AND datname = current_database() AND pid <> pg_backend_pid() AND client_port > 0"
        )
        found = query(self._connection, statement)
        open_ = {transaction: owners[port] for transaction, port in found if port in owners}
        ended = {transaction: pid for transaction, pid in self._open.items() if transaction not in open_}
        self._open = open_
        return list(open_.values()), [pid for transaction, pid in ended.items() if self._committed(transaction)]

    def _committed(self, transaction: str) -> bool:
        # pg_xact_status takes 64 bits, but pg_stat_activity shows only the lower half.
        newest = "pg_snapshot_xmax(pg_current_snapshot())::text::numeric"
        whole = f"({newest} - mod({newest}, 4294967296) + {int(transaction)})::text::xid8"
        return bool(query(self._connection, f"SELECT pg_xact_status({whole}) = 'committed'")[0][0])


def watch(connection: Connection) -> Transactions:
    """Start to watch."""
    return Transactions(connection)


def change(connection: Connection, table: str, warmup: str, month: str, step: int) -> None:
    """Insert all rows of one month of the small table and rewrite the rows of some pages, in one transaction.

    A rewritten row keeps its values and moves to another page, so a read of pages at different times sees it twice.
    """
    pages = f"pg_relation_size('{identifier(table)}'::regclass) / current_setting('block_size')::int"
    asked = f"SELECT {step * _PAGES} % greatest({pages}, 1), (SELECT quote_ident(attname) FROM pg_attribute "
    asked += f"WHERE attnum = 1 AND attrelid = '{identifier(table)}'::regclass)"
    [(first, column)] = query(connection, asked)
    of_row, end = f"date_trunc('month', {identifier(month)})", "max" if step % 2 else "min"
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH moved AS (UPDATE {identifier(table)} SET {column} = {column} "
            f"WHERE ctid >= '({first},0)' AND ctid < '({first + _PAGES},0)') "
            f"INSERT INTO {identifier(table)} SELECT * FROM {identifier(warmup)} "
            f"WHERE {of_row} = (SELECT {end}({of_row}) FROM {identifier(warmup)})"
        )
