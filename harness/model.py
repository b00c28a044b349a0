"""The words of the lab as types: transport, case, run and their outcomes. Standard library only, no I/O."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from unicodedata import category

CONTROL = "_control"  # suffix of an A/A control's id; the id of the repeated transport precedes it
MARK = "made by dataframe-io-lab; safe to drop"  # the comment on everything that the lab creates in a database
BETWEEN = "; "  # separates the parts of a mapping as text: name=value; name=value
OR = " or "  # separates several outcomes that are all right


class Operation(StrEnum):
    """The operation of a transport on the data."""

    WRITE = "write"  # a frame in memory becomes rows that another connection sees
    READ = "read"  # a table or store becomes a whole frame in memory
    SCAN = "scan"  # Parquet files become the number of their rows that match a filter
    CREATE = "create"  # data in memory become a new store on disk
    QUERY = "query"  # a store becomes a frame of its rows that match a filter
    LOAD = "load"  # a Parquet file becomes rows that another connection sees, in pieces
    UNLOAD = "unload"  # a table becomes Parquet files, in pieces
    TRANSFORM = "transform"  # a tree of files becomes one file of another format
    JOB = "job"  # a query, a write or a transfer whose settings are the question; returns its answer
    CALL = "call"  # an empty call: only a client's round trip
    COPY = "copy"  # a frame's bytes copied to another place: the machine's lower bound


class Origin(StrEnum):
    """Where a transport comes from."""

    PUBLISHED = "published"  # a row of a published benchmark
    BEYOND = "beyond"  # a transport that the published benchmark does not have
    LIMIT = "limit"  # the server alone: a lower bound, not a transport
    CONTROL = "control"  # a transport under a second id: the two must tie


class Status(StrEnum):
    """How a run ended. Only OK has numbers."""

    OK = "ok"
    MISMATCH = "mismatch"  # it ran, and at least one value is wrong
    ERROR = "error"  # the transport or its server raised
    TIMEOUT = "timeout"  # ended by the harness after the time limit
    KILLED = "killed"  # the worker process died by a signal
    UNAVAILABLE = "unavailable"  # this lab lacks something the transport needs
    UNSUPPORTED = "unsupported"  # the transport itself cannot do this case
    AGAIN = "again"  # the machine or a person ended it, not the transport: it does not count, and resume runs it again


NOT_HERE = (Status.UNAVAILABLE, Status.UNSUPPORTED)  # nothing was run
FINE = (Status.OK, *NOT_HERE)  # nothing went wrong


class Fate(StrEnum):
    """The fate of a hostile kind's values with a transport."""

    EXACT = "exact"  # every value arrived, in the canonical dtype
    CONVERTED = "converted"  # every value arrived, in another dtype
    CHANGED = "changed"  # at least one value changed silently
    REFUSED = "refused"  # the client or the server raised
    HANGS = "hangs"  # no end within the time limit
    CRASHES = "crashes"  # a signal ended the process
    UNAVAILABLE = "unavailable"  # this lab lacks something the transport needs
    UNVERIFIABLE = "unverifiable"  # the reference client does not preserve these values


# The rows that a broken-off write leaves: none; those sent so far; those of the connections that did not break.
ATOMIC = ("yes", "no", "per connection")


@dataclass(frozen=True)
class Transport:
    """A function that moves a dataframe, and its declarations.

    `id` is `<system>.<client>.<function>`: the system's folder, the client's module or folder in it, and the function.
    `endpoint` names the address for `connect` if that is a database's (see `harness.address.Address`). Transports of
    files and stores get a folder instead. `frame` is the data's form in memory: `polars`, `pandas`, `pyarrow`, `dicts`,
    `tuples`, `bytes`. It is `table` or `sorted table` if they are already on the server, and empty if there are none.
    `requires` are the Python modules that the worker imports before the timing. `needs` are the lab's features beyond
    the endpoint: `shared_io`, `s3`, workers of an engine (see ENGINES), or features of a server. `published` is the
    exact description of the row it reproduces; None without one. `lossy` are the kinds of values (see
    `harness.datasets.hostile`) that it is known not to preserve, and their fate: `changed`, `refused`, `hangs` or
    `crashes`. `atomic` names the rows that a write of a frame leaves if a connection breaks (see ATOMIC); else empty.
    """

    id: str
    system: str
    client: str
    operation: Operation
    frame: str
    path: str
    payload: str
    style: str
    origin: Origin
    published: str | None
    endpoint: str
    requires: tuple[str, ...]
    needs: tuple[str, ...]
    settings: dict[str, str]
    lossy: dict[str, str]
    atomic: str
    summary: str
    function: Callable[..., Any] = field(compare=False, repr=False)

    @property
    def moves_a_frame(self) -> bool:
        """Whether it moves a whole frame into or out of a database, and is neither a bound nor a control."""
        moves = self.operation in (Operation.WRITE, Operation.READ) and self.frame in ("pandas", "polars")
        return moves and self.origin not in (Origin.LIMIT, Origin.CONTROL)

    @property
    def engine(self) -> str:
        """The engine whose workers do the work; empty if this process does it alone."""
        return next((need for need in self.needs if need in ENGINES), "")

    @property
    def module(self) -> str:
        """The name of the module that defines it."""
        return self.function.__module__

    @property
    def modules(self) -> set[str]:
        """The top-level modules of its requirements."""
        return {module.partition(".")[0] for module in self.requires}


@dataclass(frozen=True)
class SharedFolder:
    """A folder that the harness and a database server both see: `here` for this process, `there` for the server."""

    here: str
    there: str


@dataclass(frozen=True)
class Workers:
    """The workers of an engine: their number, and where its scheduler is.

    `address` is empty if the engine starts local workers on this machine. `uri` is the database's address as they see
    it. `folder` is for the engine's own files, and is removed after the run.
    """

    number: int
    uri: str = field(repr=False)
    address: str = ""
    folder: str = ""


_UNGUESSABLE = 16  # characters of an access key; a shorter one may be a word in any message


@dataclass(frozen=True)
class ObjectStore:
    """An S3 server and its keys: `endpoint` is http(s)://host:port; the keys do not appear in its string forms."""

    endpoint: str
    region: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that no output may show: the secret one, and an access key that is not guessable."""
        return (self.secret_key, *([self.access_key] if len(self.access_key) >= _UNGUESSABLE else []))


@dataclass(frozen=True)
class Bucket(ObjectStore):
    """A bucket on an S3 server."""

    bucket: str


@dataclass(frozen=True)
class Dataset:
    """A built dataset on disk: its name, size, seed, the Parquet file and the hash of its content."""

    name: str
    rows: int
    seed: int
    path: str
    content_hash: str


HERE = "lab"  # the parameter `environment` of a case in the lab's own Python environment
ENGINES = ("dask", "ray", "spark")  # the `needs` of transports that use an engine's workers
Value = str | int | float
# Types that only a client, a library or a file knows.
Connection = Any  # to a server
Frame = Any  # a DataFrame of pandas or polars, or another form of data that a transport moves
Scalar = Any  # a value of a column, of any type of Python
Facts = dict[str, Any]  # an object of JSON


@dataclass(frozen=True)
class Experiment:
    """A part of a suite: which transports (globs over ids) on which dataset, under every combination of parameters.

    `origins` keeps only transports of these origins; empty means all. `left_out` are the ids of transports not to run.
    """

    name: str
    select: str
    dataset: str
    parameters: dict[str, list[Value]]
    origins: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def label(mapping: Mapping[str, object]) -> str:
    """Return a mapping as files store it and as people name a point: `files=8; page_cache=warm`."""
    return BETWEEN.join(f"{name}={value}" for name, value in mapping.items())


def strings(label: str) -> dict[str, str]:
    """Return the mapping of a label in a file, its values as strings. Raises ValueError for other strings."""
    return dict(part.split("=", 1) for part in label.split(BETWEEN) if part)


def require_utf_8(path: Path, what: str) -> None:
    """Raise ValueError, which names the part to rename, for a path that is not UTF-8: not every library opens it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"the path {printable(str(path))} is not UTF-8; rename the {what}") from None


def printable(text: str, keep: str = "") -> str:
    """Return other people's text ready to show: characters that a terminal obeys or cannot show become their number.

    Spaces of any width stay, and the characters of `keep`.
    """
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in keep or category(one) == "Zs" else ascii(one)[1:-1] for one in text
    )


def first_line(said: object) -> str:
    """Return the first line of an error, or of other people's words, without spaces around it."""
    return str(said).strip().partition("\n")[0]


@dataclass(frozen=True)
class Case:
    """One transport in one experiment under one combination of its parameters."""

    transport: Transport
    experiment: str
    dataset: str
    parameters: dict[str, Value] = field(hash=False)

    @property
    def label(self) -> str:
        """The parameters as one string, as in the results: `files=8; page_cache=warm`."""
        return label(self.parameters)

    @property
    def environment(self) -> str:
        """The name of the Python environment of its worker."""
        return str(self.parameters.get("environment", HERE))


@dataclass(frozen=True)
class Run:
    """One execution of a case: pass number (from 1) and its position in the whole shuffled order (from 1)."""

    case: Case
    pass_number: int
    order: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Identifies a run within its suite run: transport, experiment, parameters and pass of its row."""
        return self.case.transport.id, self.case.experiment, self.case.label, self.pass_number


@dataclass(frozen=True)
class Measurement:
    """The measured cost of one call. Seconds are monotonic wall time; bytes are peaks above the call's start.

    Steal is the time that the host gave to other machines while this one had work, over all its cores. Throttled is the
    time that a CPU limit held back. A value that the operating system does not report is None (outside Linux: both, and
    the split of memory).
    """

    seconds: float
    cpu_user_seconds: float
    cpu_system_seconds: float
    connect_seconds: float
    steal_seconds: float | None
    throttled_seconds: float | None
    peak_rss_bytes: int | None
    peak_anon_bytes: int | None
    peak_file_bytes: int | None


@dataclass(frozen=True)
class Outcome:
    """How a run ended: status, one line of explanation, how the values arrived, and the numbers of an ok run.

    `details` are further facts that its suite records: names and numbers, with units in the names.
    """

    status: Status
    error: str = ""
    fidelity: str = ""
    measurement: Measurement | None = None
    details: dict[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """The fate of one kind of values with one transport; `wanted` is the right fate, "" if the values should arrive.

    `wanted` is the transport's declaration in `lossy`, or `refused` if the server can hold no such value. Several right
    outcomes are joined: `refused or exact or converted`.
    """

    transport: Transport
    kind: str
    fate: Fate
    wanted: str
    detail: str = ""

    @property
    def as_wanted(self) -> bool:
        """Return whether the fate was right; a pair that could not be tried counts as neither right nor wrong."""
        if self.fate is Fate.UNAVAILABLE:
            return True
        return self.fate in (self.wanted.split(OR) if self.wanted else (Fate.EXACT, Fate.CONVERTED))


@dataclass(frozen=True)
class Server:
    """A database server that answered: its description, its features, and settings that differ from its defaults.

    `program` names the user's installed program, if the embedded lab was configured to start it.
    """

    version: str
    offers: frozenset[str]
    settings: dict[str, str]
    program: str = ""

    @property
    def facts(self) -> dict[str, object]:
        """The form in which results record it: without its features, and with `program` only if there is one."""
        more = {"program": self.program} if self.program else {}
        return {"version": self.version, "settings": self.settings, **more}


class LabError(Exception):
    """An error that the user can act on: the problem, the likely fix, the choices."""


def unknown(what: str, name: str, known: Iterable[str]) -> LabError:
    """Describe an unknown name: the name that was probably meant, and all known ones."""
    names = list(known)
    return LabError(f'no {what} "{name}".{did_you_mean(name, names)} Choose from: {", ".join(names)}')


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the known name that the user probably meant; empty if none is close enough."""
    by_letters = {re.sub(r"[\W_]", "", one).casefold(): one for one in known}
    near = difflib.get_close_matches(re.sub(r"[\W_]", "", name).casefold(), by_letters, n=1, cutoff=0.7)
    return f' Did you mean "{by_letters[near[0]]}"?' if near else ""
