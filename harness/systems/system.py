"""What a database says of itself in words, and the modules of its room that do what the lab needs of it."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from harness.address import Address
from harness.model import LabError, Server, SharedFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from harness.check.sums import Sums
    from harness.datasets.hostile.kind import Own
    from harness.datasets.specification import Specification
    from harness.embedded.service import Files, Service
    from harness.systems.changing import Meanwhile
    from harness.systems.settings_of_server import SettingsOfServer

# Modules that a room may be without, and what then cannot be done.
OPTIONAL = {
    "script": "without it no winner of a race is written as a program",
    "sums": "without it the suite cluster cannot sum its tables",
    "settings": "without it no setting of the server is a parameter, and what a write leaves is not told",
    "meanwhile": "without it no worker is killed and no table changed while a transport is at work",
    "installed": "without it the embedded lab starts its own server alone",
}


@dataclass(frozen=True)
class Place:
    """The setting by which a person names a server of their own that is installed here, and what it means."""

    setting: str
    meaning: str

    @property
    def variable(self) -> str:
        """The variable of the environment."""
        return f"LAB_{self.setting.upper()}"


@dataclass(frozen=True)
class System:
    """A database: its name (of its room and of the transports'), title, place in reports, and addresses.

    `source_profile` is the form of a table that costs the server least to read. `fixes` say what to do where the server
    does not offer what some transports need. `shares_folder`: it can read and write files of a folder that it shares
    with this machine. `variables` are beginnings of names in the environment that its clients read, `no_space` words
    with which it says that its disk is full, `plain` patterns of its errors that have no room for a value of a row,
    `interrupted` words with which it says that somebody ended a session or restarted it; `killed` is what a line of its
    log has (a regular expression) where somebody killed one of its processes. `embedded` says in a sentence what is to
    be known of figures of the embedded server; `installed_at` names the one that a person has installed, which the
    embedded lab can start instead; `keys_in_environment`: it takes the keys of an S3 server from the environment of its
    process, not from a query. The properties import the modules of its room when they are asked for: what only
    needs the words loads no client. Those of OPTIONAL raise LabError where the room has none.
    """

    name: str
    title: str
    place: int
    addresses: tuple[Address, ...]
    source_profile: str
    fixes: Mapping[str, str] = field(default_factory=dict)
    shares_folder: bool = False
    variables: tuple[str, ...] = ()
    no_space: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    interrupted: tuple[str, ...] = ()
    killed: str = ""
    embedded: str = ""
    installed_at: Place | None = None
    keys_in_environment: bool = False

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Names of the addresses; a lab has this database when it has all of them."""
        return tuple(address.name for address in self.addresses)

    def ports(self, endpoints: Mapping[str, str]) -> set[int]:
        """Return the ports of the server at these addresses, by their names."""
        return {urlsplit(endpoints[address.name]).port or address.port for address in self.addresses}

    @property
    def client(self) -> Client:
        """The reference client."""
        return cast(Client, self._module("client"))

    @property
    def session(self) -> QuerySession:
        """A person's own session, for a query of theirs."""
        return cast(QuerySession, self._module("session"))

    @property
    def folder(self) -> Folder:
        """The look at a shared folder, of a system that `shares_folder`."""
        return cast(Folder, self._module("folder"))

    @property
    def tables(self) -> TableDefinitions:
        """The SQL types and tables of datasets."""
        return cast(TableDefinitions, self._module("tables"))

    @property
    def hostile(self) -> Hostile:
        """The hostile values that it holds in a form of its own, or not at all."""
        return cast(Hostile, self._module("hostile"))

    @property
    def script(self) -> Script:
        """What a program for one table has beside its transport."""
        return cast(Script, self._module("script"))

    @property
    def sums(self) -> SumsOfTables:
        """Sums of a table that the server computes."""
        return cast(SumsOfTables, self._module("sums"))

    @property
    def settings(self) -> SettingsOfServer:
        """Settings of the server that are parameters of cases."""
        return cast("SettingsOfServer", self._module("settings"))

    @property
    def meanwhile(self) -> Meanwhile:
        """What others do to a table while a transport is at it."""
        return cast("Meanwhile", self._module("meanwhile"))

    @property
    def sql(self) -> Sql:
        """Names and texts in its SQL, as its transports write them."""
        return cast(Sql, importlib.import_module(f"harness.transports.{self.name}.sql"))

    @property
    def service(self) -> Service | Files:
        """The server that the embedded lab starts, or the files it keeps where the database has none."""
        return cast("Service | Files", self._module("service").SERVICE)

    @property
    def installed(self) -> Installed:
        """Servers that a person has installed."""
        return cast("Installed", self._module("installed"))

    def without_values(self, error: str) -> str:
        """Return the words of the server in an error in which no value of a row can be; empty where it has none."""
        return next((found[0] for words in self.plain if (found := re.search(words, error))), "")

    def lacks(self, name: str) -> str:
        """Say what cannot be done where the room has no module of this name, one of OPTIONAL; else nothing."""
        if importlib.util.find_spec(f"harness.systems.{self.name}.{name}"):
            return ""
        return f"expected harness/systems/{self.name}/{name}.py, found none: {OPTIONAL[name]}"

    def _module(self, name: str) -> Any:
        if name in OPTIONAL and (reason := self.lacks(name)):
            raise LabError(reason)
        return importlib.import_module(f"harness.systems.{self.name}.{name}")


class Installed(Protocol):
    """Servers that a person has installed, which the embedded lab starts instead of its own: the module `installed`.

    Its `installed_at` names the setting, whose value is the `place`.
    """

    def service(self, place: Path, environment: Mapping[str, str]) -> Service:
        """Return the service that a server there is, with more variables of its environment. Raises ServiceError."""

    def build(self, place: Path) -> str:
        """Return what a server there says of its version; empty where it says nothing. Raises ServiceError."""

    def found(self) -> list[Path]:
        """Return the places of this machine where such a server is, the newest first."""


class Client(Protocol):
    """The one fixed client that is the witness of every verification: the module `client` of a system's room.

    A connection is what `open_connection` returned; tables are named without the namespace, which is the lab's own.
    """

    def transport_uri(self, endpoint: str, uri: str) -> str:
        """Return the URI a transport connects with: the lab's namespace is the default one. Raises LabError."""

    def open_connection(self, endpoints: dict[str, str]) -> Any:
        """Open the connection. Raises LabError: unreachable server, wrong user or password."""

    def check(self, endpoints: dict[str, str]) -> Server:
        """Return what the server is. Raises LabError when it cannot be used."""

    def said(self, error: Exception) -> str:
        """Return what the server said, in one line, without the words of the client around it."""

    def offers(self, server: Server, endpoints: dict[str, str]) -> str:
        """Say in a few words what the server offers beyond its version; for `lab doctor`."""

    def hold(self, connection: Any, run_id: str) -> str:
        """Keep other runs off the server until the connection closes; return the run that has it, or nothing.

        Where a database has no locks it returns nothing: README says so.
        """

    def ensure_namespace(self, connection: Any) -> None:
        """Create the lab's namespace, or accept one that the lab made. Raises LabError: not ours, not allowed."""

    def greet(self, connection: Any) -> None:
        """Have the server answer something small."""

    def create(self, connection: Any, table: str, definition: str) -> None:
        """Create an empty table in place of the lab's own earlier one. Raises LabError when it is not the lab's."""

    def drop(self, connection: Any, table: str) -> None:
        """Drop a table of the lab if it exists. Raises LabError when one of this name is not the lab's."""

    def discard(self, connection: Any, table: str) -> None:
        """Drop a table, if it exists, that a transport made beside one of the lab's, in the lab's namespace."""

    def load(
        self, connection: Any, table: str, parquet: str | Path, logical_types: dict[str, str], order: Sequence[str] = ()
    ) -> None:
        """Fill a table from a Parquet file, in `order` where the table has none, and leave it as it is best read."""

    def require_held(self, connection: Any, parquet: str | Path, logical_types: Mapping[str, str]) -> None:
        """Raise LabError, with column and row, for a value of a Parquet file that this very database cannot hold."""

    def fill(self, connection: Any, table: str, insertion: str) -> None:
        """Fill a table with one INSERT (`{table}` for its name)."""

    def fetch(self, connection: Any, table: str, selection: str = "*") -> pa.Table:
        """Return the whole table as Arrow."""

    def end_sessions(self, connection: Any) -> None:
        """End what dead workers left running."""

    def say(self, connection: Any, statement: str) -> None:
        """Have the server execute a statement."""

    def empty(self, connection: Any, table: str) -> None:
        """Take all rows out of a table, which sessions have open, and bring the server to rest."""

    def settle(self, connection: Any) -> None:
        """Bring the server to rest between runs."""


class QuerySession(Protocol):
    """A session of a person's, as they have it at their address: the module `session` of a room."""

    def answer(self, endpoints: dict[str, str], query: str) -> tuple[pa.Table, str]:
        """Return the rows of a person's query as Arrow, and the query whose rows come as they are.

        Nothing can be written in that session. Raises LabError with what the server says.
        """


class Folder(Protocol):
    """The module `folder` of a room."""

    def check(self, endpoints: dict[str, str], io: SharedFolder) -> None:
        """Let each side write a file that the other reads. Raises LabError with what went wrong."""


class TableDefinitions(Protocol):
    """How a dataset stands in a database: the module `tables` of its room.

    `STORED` maps logical types that it has no type for to the ones that stand in its tables instead.
    """

    STORED: Mapping[str, str]

    def definition(self, spec: Specification, profile: str) -> str | None:
        """Return CREATE TABLE with `{table}` for the name; None where it has no profile of this name."""


class SumsOfTables(Protocol):
    """How the server sums a table of any size: the module `sums` of a room."""

    def sums(self, connection: Any, table: str, logical_types: Mapping[str, str]) -> Sums:
        """Return the sums of a table of the lab; see `harness.check.sums`. Raises LabError for a type without any."""


class Hostile(Protocol):
    """How hostile values stand in a database: the module `hostile` of its room.

    `TYPES` are the SQL types of columns, by the logical type of what stands in them (nullable where they can be) and by
    the types of `OF_TABLES`; the database is without kinds of values whose columns it has no type for. `OWN` is what it
    has of its own about a kind, by its name.
    """

    TYPES: Mapping[str, str]
    OWN: Mapping[str, Own]

    def definition(self, columns: Sequence[str]) -> str:
        """Return CREATE TABLE with `{table}` for the name, of the key and these columns."""

    def make_types(self, connection: Any) -> None:
        """Make what these tables need beside them: types that have names of their own. Done once, before a table."""

    def drop_types(self, connection: Any) -> None:
        """Drop it again; all tables are gone."""

    def clear(self, connection: Any, table: str) -> None:
        """Take the few rows out of a table, at less cost than making it anew; wait for whoever still writes to it."""

    def marks(self, connection: Any) -> dict[str, str]:
        """Return a text of every table of the lab that changes when more of it is changed than its rows."""


class Script(Protocol):
    """How a program that stands alone makes its table and asks a query: the module `script` of a room.

    `CREATE_TABLE` is Python source of a function `create_table` that runs the statement CREATE_TABLE at the address in
    the variable `VARIABLE`, with `os` imported; it needs `PACKAGES`. `CREATE_BY_ARROW_WIRE` runs it over a connection
    of arrow-wire, and `BY_ARROW_WIRE` is what is installed instead of a package then. `SELECT` is that of a function
    `select` that returns the rows of QUERY as an Arrow table, as the reference client does; it needs
    `SELECT_PACKAGES`.
    """

    CREATE_TABLE: str
    CREATE_BY_ARROW_WIRE: str
    BY_ARROW_WIRE: Mapping[str, str]
    VARIABLE: str
    PACKAGES: Sequence[str]
    SELECT: str
    SELECT_PACKAGES: Sequence[str]


class Sql(Protocol):
    """How names and texts stand in the SQL of a database: the module `sql` beside its transports."""

    def identifier(self, name: str) -> str:
        """Return the name of a table or column as SQL."""

    def identifiers(self, names: Iterable[str]) -> str:
        """Return several names as SQL, with commas between them."""

    def literal(self, text: str) -> str:
        """Return a text as SQL."""
