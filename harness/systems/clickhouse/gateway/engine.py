"""The embedded engine, one per process and data path, and sessions in it: settings, statements, how to stop them."""

import contextlib
import fcntl
import json
import re
import threading
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import chdb

from .blocks import BlockColumn
from .errors import ClickHouseError, Code, from_engine, refusal
from .sql import Query

# A session in the engine: its settings, its statements, and how to stop them.

_SETTING_NAME = re.compile(r"\w+")
# SET refuses this setting with any value, and another server's remote() sends it with every query.
_NOTHING_TO_SET = frozenset({("run_query_in_background", "0")})
_NUMBER_TYPE = re.compile(r"Int|Bool|[Ss]econds|MaxThreads")
_EXTREMES = re.compile(r"\bextremes\s*=\s*'?(\w+)", re.IGNORECASE)
_ON = ("1", "true")


@dataclass(frozen=True, slots=True)
class Progress:
    """The rows and bytes that the engine has read and written for a query so far."""

    read_rows: int = 0
    read_bytes: int = 0
    total_rows_to_read: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    elapsed_ns: int = 0

    def since(self, earlier: "Progress") -> "Progress":
        """Return the increase since an earlier count."""
        return Progress(*(max(0, getattr(self, name) - getattr(earlier, name)) for name in Progress.__slots__))


def quote_text(text: str) -> str:
    """Quote a string as a ClickHouse string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_name(name: str) -> str:
    """Quote a name as a ClickHouse identifier."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def definitions(columns: Iterable[BlockColumn]) -> str:
    """Return columns as in CREATE TABLE."""
    return ", ".join(f"{quote_name(column.name)} {column.type}" for column in columns)


class Session:
    """One client's session in the engine; used by one thread at a time, except ``stop``."""

    def __init__(
        self,
        connection: Any,
        kill_queries: Callable[[str], bool],
        default_compression_method: str,
        describe_aside: Callable[[str, Mapping[str, str] | None], tuple[BlockColumn, ...]] | None = None,
    ) -> None:
        """Take over a connection of chdb; ``describe_aside`` describes a SELECT while this connection is busy."""
        self._connection = connection
        self._describe_aside = describe_aside
        self._counted: Mapping[str, int] = {}
        connection.set_progress_callback(self._count)
        self._kill_queries = kill_queries
        self._default_compression_method = default_compression_method
        self._stop_lock = threading.Lock()
        self._running_thread: int | None = None  # the system's id of the thread that works for the session
        self._stream_marker: str | None = None  # last part of the streamed query's text
        self.stopped = False  # the current request was stopped
        self._has_own_settings = False  # the client ran SET in this session
        self._has_own_names = False  # names may have other meanings than in a new session
        self._ran_statement = False  # one without a result, which may have changed the session
        self.extremes = self._own_extremes = False  # results have extremes: for this query, and without its settings

    def close(self) -> None:
        """End the session; its temporary tables go with it."""
        self._connection.close()

    def stop(self) -> bool:
        """Stop the running query: it ends with code 394. May be called from any thread, and repeatedly.

        Returns whether the engine knew a query; it registers one shortly after its thread starts.
        """
        with self._stop_lock:
            self.stopped = True
            if self._stream_marker is not None:
                return self._kill_queries(_with_marker(self._stream_marker))
            return self._running_thread is not None and self._kill_queries(f"has(thread_ids, {self._running_thread})")

    def _count(self, counted: Mapping[str, int]) -> None:
        self._counted = counted

    @property
    def progress(self) -> Progress:
        """The engine's counts for the latest statement."""
        counted = self._counted
        return Progress(*(counted.get(name, 0) for name in Progress.__slots__))

    def begin(self) -> None:
        """Forget an earlier request's stop and counts; call this before the work for a new one."""
        self.stopped = False
        self._counted = {}

    def use(self, database: str) -> None:
        """Make a database the current one. Raises ClickHouseError with code 81 if there is none of that name."""
        if database and database != "default":
            self.execute(f"USE {quote_name(database)}")

    @property
    def is_unchanged(self) -> bool:
        """Whether the session has only run queries and INSERTs with data, to their ends."""
        return not (self.stopped or self._has_own_names or self._ran_statement)

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        """Record the thread that works for the session, and turn the engine's errors into ClickHouseError."""
        if self.stopped:
            raise refusal(Code.QUERY_WAS_CANCELLED, "Query was cancelled")
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
        self._counted = {}
        with self._running():
            result = self._connection.query(_bytes(text), format, params=params)
        at_end = {  # _count is not called for a short INSERT
            "read_rows": result.storage_rows_read(),
            "read_bytes": result.storage_bytes_read(),
            "written_rows": result.rows_written(),
            "written_bytes": result.bytes_written(),
            "elapsed_ns": int(result.elapsed() * 1e9),
        }
        counted = self._counted
        self._counted = {**counted, **{name: max(value, counted.get(name, 0)) for name, value in at_end.items()}}
        return result

    def run(self, query: Query, params: Mapping[str, str] | None = None) -> None:
        """Run a statement that has no result."""
        self._ran_statement = True
        if query.changes_settings:
            self._has_own_settings = True
            if found := _EXTREMES.search(query.text):
                self.extremes = self._own_extremes = found[1] in _ON
        self._has_own_names |= query.changes_names
        self.execute(query.text, params=params)

    def set(self, settings: Mapping[str, str]) -> None:
        """Change settings of the session. Raises ClickHouseError with code 115 for an unknown name."""
        if not settings:
            return
        for name in settings:
            if not _SETTING_NAME.fullmatch(name):
                raise refusal(Code.UNKNOWN_SETTING, f"Unknown setting {name!r}")
        if "extremes" in settings:
            self.extremes = settings["extremes"] in _ON
        self.execute("SET " + ", ".join(f"{name} = {quote_text(value)}" for name, value in settings.items()))

    def set_for_query(self, settings: Mapping[str, str], important: frozenset[str]) -> str:
        """Change settings for one query; return the statement that ``restore`` takes to reset them.

        Like a server, ignore an unknown name unless the client marked it as important. chdb cannot reset ``readonly``.
        With it, all of these settings stay until the session ends.
        """
        settings = {name: value for name, value in settings.items() if (name, value) not in _NOTHING_TO_SET}
        if not settings:
            return ""
        before = self._changed_values(settings) if self._has_own_settings else {}
        try:
            self.set(settings)
            known = list(settings)
        except ClickHouseError as error:
            if error.code != Code.UNKNOWN_SETTING:
                raise
            known = [name for name in settings if self._set_if_known(name, settings[name], name in important)]
        if "readonly" in known:
            return ""
        return ", ".join(f"{name} = {quote_text(before[name]) if name in before else 'DEFAULT'}" for name in known)

    def is_number(self, setting: str) -> bool:
        """Return whether a setting is a number or a flag, which old clients send as a number."""
        select = f"SELECT type FROM system.settings WHERE name = {quote_text(setting)}"
        type_name = self.execute(select, "TabSeparatedRaw").bytes().decode()
        return bool(_NUMBER_TYPE.search(type_name))

    def restore(self, assignments: str) -> None:
        """Reset settings that were changed for one query."""
        self.extremes = self._own_extremes
        if assignments:
            self._connection.query(f"SET {assignments}", "Null")

    def _set_if_known(self, name: str, value: str, important: bool) -> bool:
        try:
            self.set({name: value})
        except ClickHouseError as error:
            if important or error.code != Code.UNKNOWN_SETTING:
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
            self._has_own_names = True
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

    def describe(self, select: str, params: Mapping[str, str] | None = None) -> tuple[BlockColumn, ...]:
        """Return the columns of a SELECT without running it."""
        lines = self.execute(f"DESCRIBE ({select}\n)", "JSONCompactEachRow", params).bytes().splitlines()
        return tuple(BlockColumn(*json.loads(line)[:2]) for line in lines)

    def describe_running(self, select: str, params: Mapping[str, str] | None) -> tuple[BlockColumn, ...]:
        """Return the columns of the SELECT whose result is being read; none if only this session knows its names."""
        if self._describe_aside is None or self._has_own_settings or self._has_own_names:
            return ()
        with contextlib.suppress(ClickHouseError):
            return self._describe_aside(select, params)
        return ()

    def create_temporary(self, name: str, structure: str) -> None:
        """Create a temporary table with columns as in CREATE TABLE."""
        self._has_own_names = True
        self.execute(f"CREATE TEMPORARY TABLE {quote_name(name)} ({structure}) ENGINE = Memory")

    def drop_temporary(self, name: str) -> None:
        """Drop a temporary table, even if the query was stopped."""
        self._connection.query(f"DROP TEMPORARY TABLE {quote_name(name)}", "Null")

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
        self._counted = {}
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
