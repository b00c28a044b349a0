"""The embedded engine: one per process and data path."""

import contextlib
import fcntl
import json
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import chdb

from .blocks import BlockColumn
from .errors import ClickHouseError, Code, from_engine, refusal
from .session import Session

# With these, the engine lets its user see users, roles and policies.
_USERS = """<clickhouse><profiles><default/></profiles><quotas><default/></quotas>
<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
<access_management>1</access_management></default></users></clickhouse>
"""


class Engine:
    """The engine on one data path, for this process alone.

    Raises ClickHouseError if the path cannot be used, for instance because another process uses it.
    """

    def __init__(self, folder: Path) -> None:
        """Start the engine; create the folder if it is missing."""
        folder.mkdir(parents=True, exist_ok=True)
        _check_unused(folder)
        path = str(folder.resolve())
        if "?" in path or "&" in path:
            raise refusal(
                Code.BAD_ARGUMENTS, f"data path {path!r}: chdb reads '?' and '&' as options; choose a path without them"
            )
        users = folder.resolve() / "users.xml"
        users.write_text(_USERS, encoding="utf-8")
        # The engine reads the users only if a configuration is named. A missing one keeps it from the config.xml of the
        # current folder. One that exists would make every session begin in 0.19 ms of CPU, not 0.11.
        configuration = f"config-file={users}.none&users_config={users}"
        # chdb turns implicit_select on ("1 + 1" is a query); on a server it is off, and this is a syntax error.
        self._connection_string = f"{path}?implicit_select=0&{configuration}"
        self._control_lock = threading.Lock()
        try:
            self._control = chdb.connect(self._connection_string)  # stays open to keep the engine alive
        except RuntimeError as error:
            raise from_engine(error) from error
        self.version: str
        self.timezone: str
        select = "SELECT version(), timezone(), toString(getSetting('network_compression_method'))"
        facts = self._control.query(select, "JSONCompactEachRow").bytes()
        self.version, self.timezone, self._compression_method = json.loads(facts)

    def session(self, database: str = "") -> Session:
        """Open a session with its own settings, temporary tables and current database."""
        connection = chdb.connect(self._connection_string)
        session = Session(connection, self.kill_queries, self._compression_method, partial(self._describe, database))
        try:
            session.use(database)
        except ClickHouseError:
            session.close()
            raise
        return session

    def _describe(self, database: str, select: str, params: Mapping[str, str] | None) -> tuple[BlockColumn, ...]:
        """Describe a SELECT as a new session sees it."""
        with contextlib.closing(self.session(database)) as session:
            return session.describe(select, params)

    def kill_queries(self, condition: str) -> bool:
        """Stop the queries that match a condition on system.processes, because chdb offers no query ids.

        Returns whether it stopped any.
        """
        with self._control_lock:
            killed = self._control.query(f"KILL QUERY WHERE {condition} ASYNC", "TabSeparated")
        return bool(killed.bytes())


def _check_unused(folder: Path) -> None:
    """Raise ClickHouseError if another process uses the folder; the engine's own message has several lines."""
    status = folder / "status"
    if not status.exists():
        return
    with status.open("r+b") as file:  # for writing: NFS locks no other files
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the lock that ClickHouse's StatusFile.cpp takes
        except BlockingIOError:
            text = f"data path {folder} is in use by another process: stop it, or choose another path"
            raise refusal(Code.CANNOT_OPEN_FILE, text) from None
