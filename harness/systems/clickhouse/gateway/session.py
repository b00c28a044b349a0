"""A session in the engine: its settings, its statements, and how to stop them."""

import contextlib
import json
import re
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .blocks import BlockColumn
from .errors import QUERY_WAS_CANCELLED, UNKNOWN_SETTING, ClickHouseError, from_engine, refusal
from .sql import Query

_SETTING_NAME = re.compile(r"\w+")
# SET refuses this setting with any value, and another server's remote() sends it with every query.
_NOTHING_TO_SET = frozenset({("run_query_in_background", "0")})
_PLAIN_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Written:
    """The rows and bytes that an INSERT wrote."""

    rows: int
    bytes: int
    seconds: float


def quote_text(text: str) -> str:
    """Quote a string as a ClickHouse string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_name(name: str) -> str:
    """Quote a name as a ClickHouse identifier."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


class Session:
    """One client's session in the engine; used by one thread at a time, except ``stop``."""

    def __init__(self, connection: Any, kill_queries: Callable[[str], bool], default_compression_method: str) -> None:
        """Take over a connection of chdb."""
        self._connection = connection
        self._kill_queries = kill_queries
        self._default_compression_method = default_compression_method
        self._stop_lock = threading.Lock()
        self._running_thread: int | None = None  # the system's id of the thread that works for the session
        self._stream_marker: str | None = None  # last part of the streamed query's text
        self._stopped = False
        self._has_own_settings = False  # the client ran SET in this session

    def close(self) -> None:
        """End the session; its temporary tables go with it."""
        self._connection.close()

    def stop(self) -> bool:
        """Stop the running query: it ends with code 394. May be called from any thread, and repeatedly.

        Returns whether the engine knew a query; it registers one shortly after its thread starts.
        """
        with self._stop_lock:
            self._stopped = True
            if self._stream_marker is not None:
                return self._kill_queries(_with_marker(self._stream_marker))
            return self._running_thread is not None and self._kill_queries(f"has(thread_ids, {self._running_thread})")

    def begin(self) -> None:
        """Reset an earlier stop; call this before the work for a new request."""
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether the current request was stopped."""
        return self._stopped

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Record the thread that works for the session, and turn the engine's errors into ClickHouseError."""
        if self._stopped:
            raise refusal(QUERY_WAS_CANCELLED, "Query was cancelled")
        self._running_thread = threading.get_native_id()
        try:
            yield
        except (RuntimeError, UnicodeDecodeError) as error:
            raise from_engine(error) from error
        finally:
            with self._stop_lock:
                self._running_thread = None

    def execute(self, text: str, format: str = "Null", params: Mapping[str, str] | None = None) -> Any:
        """Run one statement to its end and return chdb's result, which has ``bytes()`` and ``rows_read()``."""
        with self._running():
            return self._connection.query(_bytes(text), format, params=params)

    def run(self, query: Query, params: Mapping[str, str] | None = None) -> Written:
        """Run a statement that has no result."""
        self._has_own_settings |= query.changes_settings
        result = self.execute(query.text, params=params)
        return Written(result.rows_written(), result.bytes_written(), result.elapsed())

    def read(self, query: Query, params: Mapping[str, str] | None = None) -> dict[str, str]:
        """Run a query and discard its rows; return the read counts as in a server's summary."""
        result = self.execute(query.text, "Null", params)
        figures = {"read_rows": result.storage_rows_read(), "read_bytes": result.storage_bytes_read()}
        return {name: str(value) for name, value in figures.items()} | {"elapsed_ns": str(int(result.elapsed() * 1e9))}

    def set(self, settings: Mapping[str, str]) -> None:
        """Change settings of the session. Raises ClickHouseError with code 115 for an unknown name."""
        if not settings:
            return
        for name in settings:
            if not _SETTING_NAME.fullmatch(name):
                raise refusal(UNKNOWN_SETTING, f"Unknown setting {name!r}")
        self.execute("SET " + ", ".join(f"{name} = {_literal(value)}" for name, value in settings.items()))

    def set_for_query(self, settings: Mapping[str, str], important: frozenset[str]) -> str:
        """Change settings for one query; return the statement that ``restore`` takes to reset them.

        As on a server, an unknown name is ignored unless the client marked it as important. chdb cannot reset
        ``readonly``: with it, all of these settings stay until the session ends.
        """
        settings = {name: value for name, value in settings.items() if (name, value) not in _NOTHING_TO_SET}
        if not settings:
            return ""
        before = self._changed_values(settings) if self._has_own_settings else {}
        try:
            self.set(settings)
            known = list(settings)
        except ClickHouseError as error:
            if error.code != UNKNOWN_SETTING:
                raise
            known = [name for name in settings if self._set_if_known(name, settings[name], name in important)]
        if "readonly" in known:
            return ""
        return ", ".join(f"{name} = {quote_text(before[name]) if name in before else 'DEFAULT'}" for name in known)

    def restore(self, assignments: str) -> None:
        """Reset settings that were changed for one query."""
        if assignments:
            self._connection.query(f"SET {assignments}", "Null")

    def _set_if_known(self, name: str, value: str, important: bool) -> bool:
        try:
            self.set({name: value})
        except ClickHouseError as error:
            if important or error.code != UNKNOWN_SETTING:
                raise
            return False
        return True

    def _changed_values(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values that the client gave these settings with SET earlier in the session."""
        wanted = ", ".join(quote_text(name) for name in names)
        select = f"SELECT name, value FROM system.settings WHERE changed AND name IN ({wanted})"
        lines = self.execute(select, "JSONCompactEachRow").bytes().splitlines()
        return dict(json.loads(line) for line in lines)

    def compression_method(self, settings: Mapping[str, str]) -> str:
        """Return network_compression_method, such as LZ4, under a query's settings; ask the engine only if needed."""
        if "network_compression_method" not in settings and not self._has_own_settings:
            return self._default_compression_method
        return self._value("SELECT toString(getSetting('network_compression_method'))").upper()

    def _value(self, select: str) -> str:
        value: str = json.loads(self.execute(select, "JSONCompactEachRow").bytes())[0]
        return value

    @contextlib.contextmanager
    def changed_for_request(self, settings: Mapping[str, str], database: str) -> Iterator[None]:
        """Change settings and the current database for one request of a session with an id."""
        current = self._value("SELECT currentDatabase()") if database else ""
        if database:
            self.execute(f"USE {quote_name(database)}")
        try:
            applied = self.set_for_query(settings, frozenset(settings))
            try:
                yield
            finally:
                self.restore(applied)
        finally:
            if database:
                self._connection.query(f"USE {quote_name(current)}", "Null")

    def describe(self, select: str) -> tuple[BlockColumn, ...]:
        """Return the columns of a SELECT without running it."""
        lines = self.execute(f"DESCRIBE ({select}\n)", "JSONCompactEachRow").bytes().splitlines()
        return tuple(BlockColumn(*json.loads(line)[:2]) for line in lines)

    def has_temporary(self, table: str) -> bool:
        """Return whether the session has a temporary table, named as in a statement, without a database."""
        return "." not in table and self.execute(f"EXISTS TEMPORARY TABLE {table}", "TSV").bytes() == b"1\n"

    def has_table(self, database: str, table: str) -> bool:
        """Return whether a table exists; an empty database is the current one."""
        name = quote_name(table) if not database else f"{quote_name(database)}.{quote_name(table)}"
        return self.execute(f"EXISTS TABLE {name}", "TabSeparated").bytes() == b"1\n"

    def blocks(
        self, query: Query, format: str, params: Mapping[str, str] | None = None
    ) -> Generator[tuple[int, memoryview], None, None]:
        """Yield the number of rows and the bytes of each block of a SELECT while the engine produces them.

        The bytes belong to the engine and are invalid once the next block is requested: using them then raises
        ValueError.
        """
        # A stream also works in the engine's own threads, so its thread does not always identify it.
        marker = f"-- stream {uuid.uuid4().hex}"
        with self._running():
            stream = self._connection.send_query(_bytes(f"{query.body}\n{marker}"), format, params=params)
        self._stream_marker = marker
        at_end = False
        try:
            while True:
                with self._running():
                    block = stream.fetch()
                if block is None:
                    at_end = True
                    return
                with block.get_memview().view() as data:
                    yield block.rows_read(), data
        finally:
            if not at_end:
                # chdb 4.4.0: close() alone sometimes runs the query to its end instead of canceling it.
                self._kill_queries(_with_marker(marker))
            with self._stop_lock:
                self._stream_marker = None
            stream.close()


def _bytes(text: str) -> bytes:
    """Return a statement's original bytes, which may not be UTF-8; chdb takes bytes as well as str."""
    return text.encode("utf-8", "surrogateescape")


def _with_marker(marker: str) -> str:
    return f"endsWith(query, {quote_text(marker)})"


def _literal(value: str) -> str:
    return value if _PLAIN_NUMBER.fullmatch(value) else quote_text(value)
