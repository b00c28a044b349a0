"""One row of runs.csv: a run of a case, its parameters and its outcome, with each column's unit and meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from harness.model import Status, label, strings


@dataclass(frozen=True)
class ResultColumn:
    """One column of runs.csv: its name, the field of `Row` that holds it, its conversion, unit and meaning."""

    name: str
    field: str
    parse: Callable[[str], Any]
    unit: str
    meaning: str

    @property
    def type(self) -> str:
        """The type of its values, for people."""
        return {"strings": "strings by name", "numbers": "numbers by name"}.get(
            self.parse.__name__, self.parse.__name__
        )


def numbers(label: str) -> dict[str, int | float]:
    """Return a label's mapping, with its values as numbers. Raises ValueError for other strings."""
    return {name: int(text) if text.lstrip("-").isdecimal() else float(text) for name, text in strings(label).items()}


_EMPTY: dict[Callable[[str], Any], dict[str, Any]] = {
    Status: {},  # every row has it
    str: {"default": ""},
    strings: {"default_factory": dict},
    numbers: {"default_factory": dict},
}


def _column(parse: Callable[[str], Any], meaning: str, unit: str = "", name: str = "") -> Any:
    return field(
        metadata={"parse": parse, "meaning": meaning, "unit": unit, "name": name},
        **_EMPTY.get(parse, {"default": None}),
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run. Only an ok run has figures; a missing figure is None, never 0."""

    run_id: str = _column(str, "name of the folder of this run of a suite")
    environment: str = _column(str, "fingerprint of the machine, versions, data and plan in environment.json")
    suite: str = _column(str, "suite the run belongs to")
    experiment: str = _column(str, "experiment of the suite")
    parameters: dict[str, str] = _column(strings, "parameters of the case: name=value; name=value")
    transport: str = _column(str, "id of the transport: system.client.function")
    system: str = _column(str, "database, format of files, or protocol of the stores")
    operation: str = _column(
        str,
        "write: frame in memory to rows visible to another connection; read: query to frame; scan: files to "
        "the number of rows that pass a filter; create: data in memory to a store on disk; query: store to "
        "the rows that pass; load: Parquet file to rows visible to another connection, a piece at a time; unload: "
        "table to Parquet files, a piece at a time; transform: a tree of files to one file of another format; "
        "job: a query, write or transfer whose settings are the question",
    )
    client: str = _column(str, "client library, engine or store")
    path: str = _column(str, "transport path: how the client talks to the server")
    payload: str = _column(str, "format of the data on the wire")
    frame: str = _column(str, "form of the data in memory: a dataframe library, dicts or tuples; may be empty")
    style: str = _column(str, "sync or async client")
    engine: str = _column(
        str,
        "engine whose workers do the work: dask, ray or spark; empty if one process does it alone",
    )
    origin: str = _column(
        str,
        "published: a row of a published benchmark; beyond: not in it; limit: a bound; control: another "
        "transport under a second id",
    )
    published_row: str = _column(str, "description of the published row; empty without one")
    pinned: str = _column(str, "settings that the transport sets explicitly, or that decide what its time includes")
    dataset: str = _column(str, "name of the dataset")
    rows: int | None = _column(int, "rows of the data in this case", "rows")
    bytes: int | None = _column(int, "bytes of the data on disk, empty where they are not in files of the lab", "B")
    pass_number: int = _column(int, "number of the full pass over the suite, from 1", name="pass")
    order: int = _column(int, "place in the shuffled order of all runs, from 1")
    status: Status = _column(
        Status,
        "ok, mismatch, error, timeout, killed, unavailable, unsupported or again; only ok has numbers; again, "
        "which counts nowhere, is what the machine or a person ended: resume runs it again",
    )
    error: str = _column(str, "the reason in one line if the status is not ok")
    fidelity: str = _column(str, "how values came back: exact, or converted with the columns and the dtypes they had")
    lossy: dict[str, str] = _column(
        strings,
        "kinds of values the transport is declared to lose: kind=fate; kind=fate",
    )
    atomic: str = _column(
        str,
        "whether a write of a frame leaves all rows or none when a connection breaks: yes; no: the rows sent by then "
        "stay; per connection: the rows of its other connections stay. By a test of 100,000 rows, but for transports "
        "through files or S3: where a database keeps rows by blocks (a million or so), those before stay, except of "
        "tuned writes. Empty for other operations",
    )
    seconds: float | None = _column(float, "wall time of the measured call", "s")
    connect_seconds: float | None = _column(float, "wall time of connecting, not part of seconds", "s")
    rows_per_s: float | None = _column(float, "rows / seconds", "rows/s")
    cpu_seconds: float | None = _column(float, "CPU time of the worker process during the call, user + system", "s")
    cpu_user_seconds: float | None = _column(float, "user part of cpu_seconds", "s")
    cpu_system_seconds: float | None = _column(float, "system part of cpu_seconds", "s")
    steal_seconds: float | None = _column(
        float,
        "time during the call that the host gave to other machines while cores of this one had work, over all "
        "cores, in steps of 0.01 s; Linux only",
        "s",
    )
    throttled_seconds: float | None = _column(
        float,
        "time during the call that a CPU limit kept the worker's control group from running; Linux only, "
        "empty where there is no such group",
        "s",
    )
    peak_rss_bytes: int | None = _column(int, "peak resident memory of the worker above the start of the call", "B")
    peak_anon_bytes: int | None = _column(
        int,
        "the same for anonymous and shared memory, from 50 ms samples; Linux only",
        "B",
    )
    peak_file_bytes: int | None = _column(int, "the same for file-backed memory, from 50 ms samples; Linux only", "B")
    details: dict[str, int | float] = _column(
        numbers,
        "further facts of a run of its suite: name=value; name=value, units in the names",
    )
    lab: str = _column(str, "embedded, compose or external servers; local: no server")
    started_at: str = _column(str, "when the run started, ISO 8601", "UTC")

    @cached_property
    def label(self) -> str:
        """The parameters as one string."""
        return label(self.parameters)

    @property
    def case(self) -> tuple[str, str, str]:
        """The key of its case in its run: experiment, transport and label."""
        return self.experiment, self.transport, self.label

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The value of `harness.model.Run.key` for this row's run."""
        return self.transport, self.experiment, self.label, self.pass_number

    @property
    def ok(self) -> bool:
        """Whether it has figures."""
        return self.status is Status.OK

    @property
    def took(self) -> float:
        """The seconds of an ok run."""
        assert self.seconds is not None
        return self.seconds

    def text(self, column: str) -> str:
        """Return a column's value as a string for people; an empty string without one."""
        value = getattr(self, _FIELDS[column])
        return "" if value is None else label(value) if isinstance(value, dict) else str(value)


COLUMNS = tuple(
    ResultColumn(
        one.metadata["name"] or one.name, one.name, *(one.metadata[part] for part in ("parse", "unit", "meaning"))
    )
    for one in fields(Row)
)
NAMES = tuple(column.name for column in COLUMNS)
_FIELDS = {column.name: column.field for column in COLUMNS}
OF_TRANSPORT = ("system", "operation", "client", "path", "payload", "frame", "style", "engine", "origin")
OF_MEASUREMENT = (
    "seconds",
    "connect_seconds",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "steal_seconds",
    "throttled_seconds",
    "peak_rss_bytes",
    "peak_anon_bytes",
    "peak_file_bytes",
)


_FROM_1 = ("pass", "order")  # all other numbers are 0 or more
_LARGEST = 2**63 - 1
_SHORTEST = 1e-9  # the unit of the clock


def impossible(row: Row) -> str:
    """Name the number of a row that no run can produce; empty if all are possible."""
    named = {column.name: getattr(row, column.field) for column in COLUMNS if column.parse in (int, float)}
    for name, value in {**named, **row.details}.items():
        if value is None:
            if row.ok and name in _FROM_1:
                return f"the status is ok and {name} is empty instead of a number from 1"
            continue
        if not (name in _FROM_1) <= value <= _LARGEST:  # NaN fails both comparisons
            return f"{name} is {value} instead of a number from {int(name in _FROM_1)}"
    if row.ok and (row.seconds or 0) < _SHORTEST:
        found = "empty" if row.seconds is None else f"{row.seconds:g}"
        return f"the status is ok and seconds is {found} instead of at least {_SHORTEST:g}"
    return ""


def ok_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that have figures."""
    return [row for row in rows if row.ok]


def by_case(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return the rows of each case, in their order."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault(row.case, []).append(row)
    return found
