"""Detect a pooler in front of Postgres that gives each transaction another session, which loses the lab's settings.

https://www.pgbouncer.org/features.html
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.machine.variables import namespace
from harness.model import LabError, Scalar

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

FOUND = "a pooler in front of the server, such as PgBouncer in transaction mode, does not keep what a session sets"
INSTEAD = "give the address of the server itself"
_SETTING = "dataframe_io_lab.session"


def require_none(
    connect: Callable[[], Connection], query: Callable[[Connection, str], list[tuple[Scalar, ...]]]
) -> None:
    """Raise LabError if two connections share sessions, or one lacks the search path that it requested.

    `connect` opens a connection of the lab, `query` returns a statement's rows. A setting of the first connection must
    exist only there, even while the second one holds a session in a transaction.
    """
    with connect() as first, connect() as second:
        token = secrets.token_hex(8)
        query(first, f"SELECT set_config('{_SETTING}', '{token}', false)")
        second.adbc_connection.set_autocommit(False)
        asked = f"SELECT current_setting('{_SETTING}', true), current_setting('search_path')"
        of_second, path = query(second, asked)[0]
        of_first = query(first, asked)[0][0]
        second.rollback()
        query(first, f"SELECT set_config('{_SETTING}', '', false)")
    if of_second == token or of_first != token or path.strip('"') != namespace():
        raise LabError(f"postgres: {FOUND}; {INSTEAD}")
