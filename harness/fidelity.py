"""What `lab verify` does: every transport over every hostile kind of values, each pair judged on its own.

One worker process a transport module takes its pairs one after the other, on a connection of its own for each; after a
hang or a death the next pair gets a new process. Nothing here is measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue

import polars as pl

from harness import verify
from harness.availability import reason_unavailable
from harness.canonical import NotConvertible, canonicalise
from harness.datasets.hostile import tables
from harness.datasets.hostile.kinds import KINDS, Kind
from harness.execution import COMMAND, Worker
from harness.labs import Lab
from harness.model import Fate, Finding, Operation, Server, Status, Transport
from harness.systems.address import redact
from harness.systems.tables import SYSTEMS

TIME_LIMIT = 20.0  # seconds for one pair, importing the client included: all of them take well below one second
_LONGEST_DETAIL = 300
_FATES = {
    Status.OK: Fate.EXACT,
    Status.MISMATCH: Fate.CHANGED,
    Status.TIMEOUT: Fate.HANGS,
    Status.KILLED: Fate.CRASHES,
}  # every other status is a refusal


class Witness:
    """The tables of the kinds in one database, made, loaded and fetched through its reference client."""

    def __init__(self, system: str, endpoints: dict[str, str], folder: Path) -> None:
        self._system, self._folder, self._module = system, folder, SYSTEMS[system]
        self._connection = self._module.open_connection(endpoints)
        self._module.ensure_namespace(self._connection)
        self._verdicts: dict[str, str] = {}

    def rows(self, kind: Kind) -> pl.DataFrame:
        """Return the rows of a kind as they should be."""
        return tables.rows(kind, self._system)

    def file(self, kind: Kind) -> Path:
        """Return the Parquet file with the rows of a kind."""
        path = self._folder / f"{self._system}-{kind.name}.parquet"
        if not path.exists():
            self.rows(kind).write_parquet(path)
        return path

    def loaded(self, kind: Kind) -> str:
        """Return the name of the table with the rows of a kind, for reads; see `verdict`."""
        return f"hostile_{kind.name}"

    def verdict(self, kind: Kind) -> str:
        """Load the rows of a kind, once, and return why the reference client cannot vouch for them, or nothing."""
        if kind.name not in self._verdicts:
            try:
                self._make(kind, self.loaded(kind))
                path, kinds = self.file(kind), tables.kinds_of(kind.columns)
                self._module.load(self._connection, self.loaded(kind), path, kinds)
                wrong = verify.differences(self.rows(kind), self.fetch(kind, self.loaded(kind)), tables.ROW_KEY)
                self._verdicts[kind.name] = wrong[0] if wrong else ""
            except Exception as error:
                self._verdicts[kind.name] = f"{type(error).__name__}: {error}"
        return self._verdicts[kind.name]

    def empty(self, kind: Kind) -> str:
        """Make an empty table for a write and return its name."""
        self._make(kind, "hostile_written")
        return "hostile_written"

    def fetch(self, kind: Kind, table: str) -> pl.DataFrame:
        """Return a whole table as a canonical frame."""
        fetched = self._module.fetch(self._connection, table)
        return canonicalise(fetched, tables.kinds_of(kind.columns))[0]

    def settle(self) -> None:
        """End what a process that was killed has left on the server."""
        self._module.settle(self._connection)

    def close(self) -> None:
        """Drop all tables."""
        for table in (*map("hostile_{}".format, self._verdicts), "hostile_written"):
            self._module.drop(self._connection, table)
        self._connection.close()

    def _make(self, kind: Kind, table: str) -> None:
        self._module.create(self._connection, table, tables.definition(kind.columns, self._system))


@contextmanager
def _witness(system: str, lab: Lab) -> Iterator[Witness]:
    with tempfile.TemporaryDirectory(prefix="lab-hostile-") as folder:
        witness = Witness(system, lab.endpoints, Path(folder))
        try:
            yield witness
        finally:
            witness.close()


def examine(
    lab: Lab,
    servers: dict[str, Server],
    chosen: Sequence[Transport],
    on_finding: Callable[[Finding], None] = lambda finding: None,
    time_limit: float = TIME_LIMIT,
    command: tuple[str, ...] = COMMAND,
) -> list[Finding]:
    """Try every kind of values on every transport of a database; return the findings in the order of the ids.

    The databases are examined side by side; `on_finding` is told of each finding in this thread.
    """
    told: SimpleQueue[Finding | None] = SimpleQueue()
    found: list[Finding] = []

    def one_system(entries: list[Transport]) -> None:
        try:
            with _witness(entries[0].system, lab) as witness:
                for _, module in groupby(entries, key=lambda entry: entry.function.__module__):
                    for finding in _module(list(module), witness, lab, servers, time_limit, command):
                        told.put(finding)
        finally:
            told.put(None)

    systems = [list(group) for _, group in groupby(chosen, key=lambda entry: entry.system)]
    with ThreadPoolExecutor(len(systems) or 1) as pool:
        futures = [pool.submit(one_system, entries) for entries in systems]
        for _ in futures:
            while (finding := told.get()) is not None:
                found.append(finding)
                on_finding(finding)
        for future in futures:
            future.result()
    order = {entry.id: place for place, entry in enumerate(chosen)}
    return sorted(found, key=lambda finding: (order[finding.transport.id], list(KINDS).index(finding.kind)))


def pairs(entry: Transport) -> list[Kind]:
    """Return the kinds that a transport can be tried on: a read needs rows that are there, a write a frame of them."""
    if entry.operation is Operation.READ:
        return [kind for kind in KINDS.values() if entry.system in kind.rows and entry.system not in kind.forbidden]
    return [kind for kind in KINDS.values() if entry.system in kind.rows and entry.frame not in kind.no_frame]


def _module(
    entries: list[Transport],
    witness: Witness,
    lab: Lab,
    servers: dict[str, Server],
    time_limit: float,
    command: tuple[str, ...],
) -> Iterator[Finding]:
    """Yield the findings on the transports of one module, which share a process."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="lab-verify-") as folder:
        worker: Worker | None = None
        for entry in entries:
            reason = reason_unavailable(entry, lab, servers)
            for kind in pairs(entry):
                if reason:
                    yield Finding(entry, kind.name, Fate.UNAVAILABLE, _wanted(entry, kind), reason)
                    continue
                if worker is None or worker.ended:
                    worker = Worker(Path(folder) / "log", command)
                    stack.callback(worker.end)
                yield _finding(entry, kind, witness, lab, worker, time_limit, Path(folder))
                if worker.ended:
                    witness.settle()


def _wanted(entry: Transport, kind: Kind) -> str:
    return entry.lossy.get(kind.name) or ("refused" if entry.system in kind.forbidden else "")


def _finding(
    entry: Transport, kind: Kind, witness: Witness, lab: Lab, worker: Worker, time_limit: float, folder: Path
) -> Finding:
    wanted = _wanted(entry, kind)
    if entry.system not in kind.forbidden and (reason := witness.verdict(kind)):
        return Finding(entry, kind.name, Fate.UNVERIFIABLE, wanted, reason)
    writes = entry.operation is Operation.WRITE
    job = {
        "stays": True,
        "transport": entry.id,
        "contract": "databases",
        "uri": SYSTEMS[entry.system].transport_uri(entry.endpoint, lab.endpoints[entry.endpoint]),
        "io": {"here": lab.io.here, "there": lab.io.there} if lab.io else None,
        "table": witness.empty(kind) if writes else witness.loaded(kind),
        "warmup_table": None,
        "dataset": str(witness.file(kind)),
        "kinds": tables.kinds_of(kind.columns),
        "result": str(folder / "result.arrow"),
    }
    answer = worker.ask(job, time_limit).answer
    fate, detail = _FATES.get(answer["status"], Fate.REFUSED), answer.get("error", "")
    if answer["status"] == Status.OK:
        found = witness.fetch(kind, job["table"]) if writes else pl.read_ipc(job["result"])
        fate, detail = judge(kind, witness.rows(kind), found, entry.frame, answer["converted"])
    text = " ".join(redact(detail, lab.endpoints.values()).split())[:_LONGEST_DETAIL]
    return Finding(entry, kind.name, fate, wanted, text)


def judge(
    kind: Kind, expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[Fate, str]:
    """Say how the values of a kind fared: `exact`, `converted` or `changed`, and what is different. Pure.

    Only the dtypes of the columns that the kind is about count. A pandas float64 column has but one mark for a null and
    for NaN: there a null that became a NaN is `converted`, a NaN that became a null is `changed` as everywhere.
    """
    if frame == "pandas" and expected.height == found.height:
        with_nulls = verify.nulls_for_nans(expected, found, tables.ROW_KEY)
        marked = [name for name in found.columns if with_nulls[name].null_count() > found[name].null_count()]
        converted, found = {**converted, **dict.fromkeys(marked, "NaN for null")}, with_nulls
    if wrong := verify.differences(expected, found, tables.ROW_KEY):
        return Fate.CHANGED, "; ".join(wrong)
    about = {name for row in next(iter(kind.rows.values())) for name in row} or set(expected.columns)
    told = {name: dtype for name, dtype in converted.items() if name in about}
    return (Fate.CONVERTED, verify.fidelity(told).removeprefix("converted: ")) if told else (Fate.EXACT, "")


__all__ = ["TIME_LIMIT", "NotConvertible", "Witness", "examine", "judge", "pairs"]
