"""A database's description, and the modules of its package that the lab uses."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar, cast, runtime_checkable
from urllib.parse import urlsplit

from harness.address import Address
from harness.model import Connection, LabError, Server, SharedFolder, Value

if TYPE_CHECKING:
    import pyarrow as pa

    from harness.check.sums import Sums
    from harness.datasets.hostile.kind import Own
    from harness.datasets.specification import Specification
    from harness.embedded.service import Files, Service
    from harness.machine.marked import Connection as Opened


_Members = TypeVar("_Members")
# Optional modules of a database package -> the features that the lab lacks without them.
OPTIONAL = {
    "script": "without it no winner of a race is written as a program",
    "sums": "without it the suite cluster cannot sum its tables",
    "settings": "without it no setting of the server is a parameter, and what a write leaves is not recorded",
    "concurrent_changes": "without it no worker is killed and no table changed while a transport is at work",
    "installed": "without it the embedded lab starts its own server alone",
}


class _Module(Generic[_Members]):
    """A module of a database's package, imported on first use."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, system: System, owner: type) -> _Members:
        return cast(_Members, system._module(self._name))


@dataclass(frozen=True)
class Place:
    """The setting with which a user names their own installed server, and its meaning."""

    setting: str
    meaning: str

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"LAB_{self.setting.upper()}"


@dataclass(frozen=True)
class System:
    """A database: its name (of its package and its transports), title, position in reports, and addresses.

    `source_profile` is the table profile that the server reads fastest. `fixes` tell the user of each lab what to do if
    the server lacks a feature that some transports need. `shares_folder`: the server can read and write files in a
    folder that it shares with this machine. `variables` are prefixes of environment variables that its clients read.
    `no_space` are words with which it reports a full disk. `plain` are patterns of its errors that cannot contain a
    value of a row. `interrupted` are words with which it reports that a session was ended or restarted. `killed` is a
    regular expression for a log line after one of its processes was killed. `embedded` is a sentence about figures of
    the embedded server. `installed_at` names the user's installed server, which the embedded lab can start instead.
    `keys_in_environment`: it reads the keys of an S3 server from its process environment, not from a query.
    Its modules are imported on first use, so code that needs only the description loads no client. Those of OPTIONAL
    raise LabError if the package has no such module.
    """

    name: str
    title: str
    place: int
    addresses: tuple[Address, ...]
    source_profile: str
    fixes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shares_folder: bool = False
    variables: tuple[str, ...] = ()
    no_space: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    killed: str = ""
    embedded: str = ""
    installed_at: Place | None = None
    keys_in_environment: bool = False

    client: ClassVar[_Module[Client]] = _Module()  # the reference client
    session: ClassVar[_Module[QuerySession]] = _Module()  # a user's own session, for their query
    folder: ClassVar[_Module[Folder]] = _Module()  # the check of a shared folder, for a system that `shares_folder`
    tables: ClassVar[_Module[TableDefinitions]] = _Module()  # the SQL types and tables of datasets
    hostile: ClassVar[_Module[Hostile]] = _Module()  # the hostile values that it stores differently or not at all
    script: ClassVar[_Module[Script]] = _Module()  # parts of a program for one table, next to its transport
    sums: ClassVar[_Module[SumsOfTables]] = _Module()  # sums of a table that the server computes
    settings: ClassVar[_Module[SettingsOfServer]] = _Module()  # server settings that are parameters of cases
    concurrent_changes: ClassVar[_Module[ConcurrentChanges]] = _Module()  # changes while a transport works
    installed: ClassVar[_Module[Installed]] = _Module()  # servers that the user has installed

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Names of the addresses; a lab has this database if it has all of them."""
        return tuple(address.name for address in self.addresses)

    def ports(self, endpoints: Mapping[str, str]) -> set[int]:
        """Return the server's ports at these addresses, by name."""
        return {urlsplit(endpoints[address.name]).port or address.port for address in self.addresses}

    @property
    def sql(self) -> Sql:
        """How to quote names and strings in its SQL, as its transports do."""
        return cast(Sql, importlib.import_module(f"harness.transports.{self.name}.sql"))

    @property
    def service(self) -> Service | Files:
        """The server that the embedded lab starts, or the files it keeps if the database has no server."""
        return cast("Service | Files", self._module("service").SERVICE)

    def without_values(self, error: str) -> str:
        """Return the part of a server error that `plain` matches, which has no value of a row; empty without one."""
        return next((found[0] for words in self.plain if (found := re.search(words, error))), "")

    def lacks(self, name: str) -> str:
        """Describe the features that the lab lacks without this module of OPTIONAL; empty if the package has it."""
        if importlib.util.find_spec(f"harness.systems.{self.name}.{name}"):
            return ""
        return f"harness/systems/{self.name}/{name}.py is missing: {OPTIONAL[name]}"

    def _module(self, name: str) -> ModuleType:
        if name in OPTIONAL and (reason := self.lacks(name)):
            raise LabError(reason)
        return importlib.import_module(f"harness.systems.{self.name}.{name}")


class Installed(Protocol):
    """Servers that the user has installed, which the embedded lab can start instead: the module `installed`.

    The system's `installed_at` names the setting, whose value is the `place`.
    """

    def service(self, place: Path, environment: Mapping[str, str]) -> Service:
        """Return the service that runs the server there, with extra environment variables. Raises ServiceError."""

    def build(self, place: Path) -> str:
        """Return the version string of the server there; empty if it has none. Raises ServiceError."""

    def found(self) -> list[Path]:
        """Return where such servers are on this machine, the newest first."""


class Client(Protocol):
    """The one fixed client that is the witness of every verification: the module `client` of a system's package.

    A connection is the result of `open_connection`. Tables are named without the namespace, which is the lab's own.
    """

    def transport_uri(self, endpoint: str, uri: str) -> str:
        """Return the URI for transports, with the lab's namespace as default. Raises LabError."""

    def open_connection(self, endpoints: dict[str, str]) -> Connection:
        """Open the connection. Raises LabError: unreachable server, wrong user or password."""

    def check(self, endpoints: dict[str, str]) -> Server:
        """Return the server's description. Raises LabError if it cannot be used."""

    def said(self, error: Exception) -> str:
        """Return the server's message in one line, without the client's additions."""

    def offers(self, server: Server, endpoints: dict[str, str]) -> str:
        """List the features of this server, apart from its version, for `lab doctor`."""

    def hold(self, connection: Connection, run_id: str) -> str:
        """Keep other runs off the server until the connection closes; return the id of the run that holds it, if any.

        A database without locks returns an empty string.
        """

    def ensure_namespace(self, connection: Connection) -> None:
        """Create the lab's namespace, or accept one that the lab made. Raises LabError: not ours, not allowed."""

    def create(self, connection: Connection, table: str, definition: str) -> None:
        """Create an empty table, replacing the lab's earlier one. Raises LabError if the lab did not make that."""

    def drop(self, connection: Connection, table: str) -> None:
        """Drop a table of the lab if it exists. Raises LabError if the lab did not make the table of this name."""

    def discard(self, connection: Connection, table: str) -> None:
        """Drop a table, if it exists, that a transport made next to one of the lab's, in the lab's namespace."""

    def load(
        self,
        connection: Connection,
        table: str,
        parquet: str | Path,
        logical_types: dict[str, str],
        order: Sequence[str] = (),
    ) -> None:
        """Fill a table from a Parquet file, in `order` if the table has none, and leave it ready for fast reads."""

    def require_held(self, connection: Connection, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
        """Raise LabError, with column and row, for a value of a Parquet file that this database cannot hold."""

    def fill(self, connection: Connection, table: str, insertion: str) -> None:
        """Fill a table with one INSERT (`{table}` for its name)."""

    def fetch(self, connection: Connection, table: str, selection: str = "*") -> pa.Table:
        """Return the whole table as Arrow."""

    def end_sessions(self, connection: Connection) -> None:
        """End queries and sessions that dead workers left running."""

    def say(self, connection: Connection, statement: str) -> None:
        """Have the server execute a statement."""

    def empty(self, connection: Connection, table: str) -> None:
        """Delete all rows of a table that sessions have open, and bring the server to rest."""

    def settle(self, connection: Connection) -> None:
        """Bring the server to rest between runs."""


class QuerySession(Protocol):
    """A user's own session, as they get it at their address: the module `session` of a database package."""

    def answer(self, endpoints: dict[str, str], query: str) -> tuple[pa.Table, str]:
        """Return the rows of a user's query as Arrow, and the rewritten query.

        The session is read-only. Raises LabError with the server's message.
        """


class Folder(Protocol):
    """The module `folder` of a database package."""

    def check(self, endpoints: dict[str, str], io: SharedFolder) -> None:
        """Let each side write a file that the other reads. Raises LabError with the failure."""


class TableDefinitions(Protocol):
    """How a database stores a dataset: the module `tables` of its package.

    `STORED` maps logical types that it lacks to the types that its tables use instead.
    """

    STORED: Mapping[str, str]

    def definition(self, spec: Specification, profile: str) -> str | None:
        """Return CREATE TABLE with `{table}` for the name; None if it has no profile of this name."""


class SumsOfTables(Protocol):
    """How the server sums a table of any size: the module `sums` of a database package."""

    def sums(self, connection: Connection, table: str, logical_types: Mapping[str, str]) -> Sums:
        """Return the sums of a table of the lab; see `harness.check.sums`. Raises LabError for a type without any."""


class Hostile(Protocol):
    """How a database stores hostile values: the module `hostile` of its package.

    `TYPES` are the SQL types of columns, by the logical type of their values (nullable if possible) and by the types of
    `OF_TABLES`. The database lacks kinds of values whose columns it has no type for. `OWN` has the database's
    particulars of a kind, by its name.
    """

    TYPES: Mapping[str, str]
    OWN: Mapping[str, Own]

    def definition(self, columns: Sequence[str]) -> str:
        """Return CREATE TABLE with `{table}` for the name, of the key and these columns."""

    def make_types(self, connection: Connection) -> None:
        """Create the named types that these tables need, once, before any table."""

    def drop_types(self, connection: Connection) -> None:
        """Drop these types again; all tables are gone."""

    def clear(self, connection: Connection, table: str) -> None:
        """Delete a table's few rows, faster than recreating it; wait for other connections that still write to it."""

    def marks(self, connection: Connection) -> dict[str, str]:
        """Return for every table of the lab a string that changes whenever more than its rows changes."""


class Script(Protocol):
    """How a separate program creates its table and runs a query: the module `script` of a database package.

    `CREATE` is Python source that runs the statement CREATE_TABLE at the address in the variable `VARIABLE`, with `os`
    imported. It needs `PACKAGES`, and `CREATE_TABLE`: the source of a function, or nothing. `CREATE_BY_ARROW_WIRE` runs
    the statement over a connection of arrow-wire; `BY_ARROW_WIRE` is then installed instead of a package. `SELECT` is
    the source that makes `table` of the rows of QUERY, like the reference client. It needs `SELECT_PACKAGES`.
    """

    CREATE: str
    CREATE_TABLE: str
    CREATE_BY_ARROW_WIRE: str
    BY_ARROW_WIRE: Mapping[str, str]
    VARIABLE: str
    PACKAGES: Sequence[str]
    SELECT: str
    SELECT_PACKAGES: Sequence[str]


class Sql(Protocol):
    """How to quote names and strings in a database's SQL: the module `sql` next to its transports."""

    def identifier(self, name: str) -> str:
        """Return the name of a table or column as SQL."""

    def identifiers(self, names: Iterable[str]) -> str:
        """Return several names as comma-separated SQL."""

    def literal(self, text: str) -> str:
        """Return a string as SQL."""


# Changes to a table while a transport works on it, and detection of writers; each database implements them.


class Watch(Protocol):
    """Detects writers in the lab's namespace, as far as the server reports them."""

    def look(self, opened: Sequence[Opened]) -> tuple[list[int], list[int]]:
        """Return the processes that have written and not committed, and those that have just committed.

        `opened` are the server connections of the processes to watch.
        """


class ConcurrentChanges(Protocol):
    """Changes to a table while a transport works on it: a database package's module `concurrent_changes`.

    `PROFILE` is the profile of a table that accepts repeated rows.
    """

    PROFILE: str

    def watch(self, connection: Connection) -> Watch:
        """Start to watch writers and commits."""

    def change(self, connection: Connection, table: str, warmup: str, month: str, step: int) -> None:
        """Add all rows of one month of the small table `warmup` in one step: the first (`step` is even) or the last.

        `month` is the date column. A consistent read sees the whole change or none of it.
        """


# The interface of the module `settings` of a database's package.


class SettingsOfServer(Protocol):
    """Settings that are parameters of a case, never set by default: the module `settings` of a database package.

    `NAMES` are these parameters. `OF_WHOLE_SERVER` are those that affect every connection; the lab sets them only on
    its own servers.
    """

    NAMES: frozenset[str]
    OF_WHOLE_SERVER: frozenset[str]

    def configure(self, connection: Connection, parameters: Mapping[str, Value]) -> bool:
        """Set the whole server as these parameters require, and reset the rest of OF_WHOLE_SERVER.

        Returns whether the server must restart for that. Raises LabError for an invalid value.
        """

    def address(self, uri: str, parameters: Mapping[str, Value]) -> str:
        """Return the address of sessions with these settings. Raises LabError for an invalid value."""

    def statements(self, spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
        """Return the statements to run after an empty table is created."""

    def left(self, connection: Connection, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return facts about a table after a write, with units in their names."""


@runtime_checkable
class FilledTables(Protocol):
    """Further members of a database's module `settings`, if its tables can have rows before a write."""

    def filled(self, spec: Specification, table: str, source: str, rows: int) -> list[str]:
        """Return the statements that put this many rows of another table into an empty one, with other keys."""

    def remove_rows_before(self, connection: Connection, table: str) -> int:
        """Remove the rows that `filled` put into a table; return how many were still there."""
