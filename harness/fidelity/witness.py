"""The tables of hostile kinds of values in one database, created, loaded and fetched by its reference client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from harness.address import redact
from harness.check import equality
from harness.check.canonical import canonicalise
from harness.check.equality import differences
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind
from harness.datasets.hostile.names import VICTIM
from harness.fidelity import tables
from harness.fidelity.examination import Examination
from harness.fidelity.tables import Held
from harness.lab.reference import PATIENCE_SECONDS, NoAnswer, Reference
from harness.machine import scratch
from harness.model import OR, Fate, Finding, Operation, Status, Transport
from harness.run.execution import Worker
from harness.run.rigs.databases import addresses
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseAnswer, DatabaseJob
from harness.worker.messages import Failed

_WRITTEN = "hostile_written"
_VICTIM = Kind("victim", "", [], {})  # only the key, so that SELECT 1 matches it


class Witness:
    """Verifies the values of one database through `reference`; `folder` gets files for transports."""

    def __init__(self, system: str, endpoints: dict[str, str], folder: Path) -> None:
        self._system, self._folder = system, folder
        self._client, self._hostile = SYSTEMS[system].client, SYSTEMS[system].hostile
        self.reference = Reference(SYSTEMS[system], endpoints, PATIENCE_SECONDS)
        self.reference.greet()
        self._verdicts: dict[str, str] = {}
        self._made: set[str] = set()
        self._kept: dict[str, tuple[str, str]] = {}  # tables of writes: their definitions, and the server's marks
        self._writer = ""
        self._types = False  # whether the types that tables need exist

    def rows(self, kind: Kind) -> pl.DataFrame:
        """Return the rows of a kind as expected in its table."""
        return self._held(kind).stored

    def file(self, kind: Kind) -> Path:
        """Return the Parquet file with a kind's rows as in a frame."""
        path = self._folder / f"{self._system}-{kind.name}.parquet"
        if not path.exists():
            self._held(kind).rows.write_parquet(path)
        return path

    def loaded(self, kind: Kind) -> str:
        """Return the name of the table with a kind's rows; it exists after `verdict`."""
        return kind.tables[0] if kind.tables else f"hostile_{kind.name}"

    def verdict(self, kind: Kind) -> str:
        """Load the rows of a kind, once, and return why the reference client cannot verify them, or an empty string."""
        if kind.name not in self._verdicts:
            self._verdicts[kind.name] = self._verdict(kind)
        return self._verdicts[kind.name]

    def _verdict(self, kind: Kind) -> str:
        try:
            if kind.tables and VICTIM not in self._made:
                self._make_victim()
            self._make(kind, self.loaded(kind))
            self._load(kind, self.loaded(kind))
            wrong = differences(self.rows(kind), self.fetch(kind, self.loaded(kind)), tables.ROW_KEY)
        except NoAnswer:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return wrong[0] if wrong else ""

    def executed(self) -> str:
        """Return the damage that SQL in a name has done to its target table, and recreate that; empty without any."""
        try:
            rows = self.reference.ask(self._client.fetch, VICTIM).num_rows
        except NoAnswer:
            raise
        except Exception as error:
            done = f"{type(error).__name__}: {error}"
        else:
            if not rows:
                return ""
            done = f"{VICTIM} has {rows} rows"
        self._make_victim()
        return f"SQL in a name was executed: {done}"

    def _make_victim(self) -> None:
        self._make(_VICTIM, VICTIM)

    def _load(self, kind: Kind, table: str) -> None:
        if insertion := self._held(kind).insertion:
            self.reference.ask(self._client.fill, table, insertion, once=True)
        else:
            self.reference.ask(
                self._client.load, table, self.file(kind), tables.logical_types_of(kind.columns), once=True
            )

    def empty(self, kind: Kind) -> str:
        """Create an empty table for a write and return its name."""
        table = kind.tables[1] if kind.tables else _WRITTEN
        self._make(kind, table)
        return table

    def emptied(self, kind: Kind, writer: str) -> str:
        """Return the name of the kind's own table, empty for a write by this transport.

        It is created once and then emptied, which takes a server a tenth of the time. It is recreated if an earlier
        writer changed more than its rows, or if a killed process may still write to it.
        """
        if writer != self._writer:
            marks = self.reference.ask(self._hostile.marks) if self._kept else {}
            self._kept = {table: kept for table, kept in self._kept.items() if marks.get(table) == kept[1]}
            self._writer = writer
        table = kind.tables[1] if kind.tables else f"{_WRITTEN}_{kind.name}"
        definition = self._held(kind).definition
        if table in self._kept and self._kept[table][0] == definition:
            self.reference.ask(self._hostile.clear, table)
        else:
            self._make(kind, table)
            self._kept[table] = definition, self.reference.ask(self._hostile.marks)[table]
        return table

    def fetch(self, kind: Kind, table: str) -> pl.DataFrame:
        """Return a whole table, including the columns that SELECT * omits, as a canonical frame."""
        of = self._held(kind)
        fetched = self.reference.ask(self._client.fetch, table, of.selection)
        return canonicalise(fetched, of.stored_logical_types)[0]

    def settle(self) -> None:
        """End a killed process's remaining work on the server."""
        self._kept.clear()
        self.reference.ask(self._client.settle)

    def forget(self) -> None:
        """Recreate everything after a server restart: tables in memory are then empty."""
        self.reference.close()
        self._verdicts.clear()
        self._kept.clear()

    def close(self) -> None:
        """Drop all tables, then their types."""
        for table in self._made:
            self.reference.ask(self._client.drop, table)
        if self._types:
            self.reference.ask(self._hostile.drop_types)
        self.reference.close()

    def _make(self, kind: Kind, table: str) -> None:
        if not self._types:
            self.reference.ask(self._hostile.make_types)
            self._types = True
        self._kept.pop(table, None)
        self._made.add(table)  # creation may fail, but drop it in any case
        self.reference.ask(self._client.create, table, self._held(kind).definition)

    def _held(self, kind: Kind) -> Held:
        return tables.one(kind, self._system)


@contextmanager
def opened(system: str, endpoints: dict[str, str]) -> Iterator[Witness]:
    """Yield the witness of a database, and leave nothing in it. Raises LabError if it is not reachable."""
    with scratch.folder("hostile") as folder:
        witness = Witness(system, endpoints, Path(folder))
        try:
            yield witness
        except BaseException:
            with suppress(Exception):  # the server may be gone: only the original error matters
                witness.close()
            raise
        witness.close()


# One pair of a transport and a kind of values: the wanted outcome, a worker's job, and the finding.

DECLARED_LIMIT = 3.0  # seconds for a pair that is declared to hang
# A transport that does not support an ordinary row is unavailable here for its columns, whatever the values. In tables
# of other columns it is tried, and unavailable if it fails with the same message.
CONTROL = KINDS["one_row"]
_LONGEST_DETAIL = 300  # maximum characters
_FATES = {
    Status.OK: Fate.EXACT,
    Status.MISMATCH: Fate.CHANGED,
    Status.TIMEOUT: Fate.HANGS,
    Status.KILLED: Fate.CRASHES,
}  # every other status is a refusal


def wanted(entry: Transport, kind: Kind) -> str:
    """Return a pair's wanted outcome, as in its finding; empty if all values should arrive unchanged."""
    if declared := entry.lossy.get(kind.name):
        return declared
    of_system = tables.one(kind, entry.system)
    right = (Fate.REFUSED, Fate.EXACT, Fate.CONVERTED)
    return Fate.REFUSED if of_system.forbidden else OR.join(right) if of_system.own.may_refuse else ""


def finding(
    exam: Examination, entry: Transport, kind: Kind, of_system: Witness, worker: Worker, folder: Path
) -> Finding:
    """Try a pair, alone on a separate connection, and return the result."""
    should = wanted(entry, kind)
    if not tables.one(kind, entry.system).forbidden and (reason := of_system.verdict(kind)):
        return Finding(entry, kind.name, Fate.UNVERIFIABLE, should, short(reason, exam))
    job = job_of(exam, entry, kind, of_system, folder / "result.arrow")
    answer = worker.ask(job, DECLARED_LIMIT if should == Fate.HANGS else exam.time_limit).answer
    return _judged(exam, entry, kind, of_system, job, answer)


def job_of(exam: Examination, entry: Transport, kind: Kind, of_system: Witness, result: Path) -> DatabaseJob:
    """Return the job of a pair, with a write's table created or emptied; a read stores its frame at `result`."""
    writes = entry.operation is Operation.WRITE
    return DatabaseJob(
        transport=entry.id,
        module=entry.module,
        result=str(result),
        stays=True,
        table=of_system.emptied(kind, entry.id) if writes else of_system.loaded(kind),
        dataset=str(of_system.file(kind)),
        logical_types=tables.logical_types_of(kind.columns)
        if writes
        else tables.one(kind, entry.system).read_logical_types,
        addresses=addresses(entry, exam.lab, exam.objects, exam.bucket),
    )


def _judged(
    exam: Examination,
    entry: Transport,
    kind: Kind,
    of_system: Witness,
    job: DatabaseJob,
    answer: DatabaseAnswer | Failed,
) -> Finding:
    should = wanted(entry, kind)
    if kind.tables and (done := of_system.executed()):
        return Finding(entry, kind.name, Fate.CHANGED, should, short(done, exam))
    if isinstance(answer, Failed):
        fate = _FATES.get(answer.status, Fate.REFUSED)
        if kind is CONTROL and answer.status == Status.UNSUPPORTED:
            fate = Fate.UNAVAILABLE
        return Finding(entry, kind.name, fate, should, short(answer.error, exam))
    try:
        found = came_through(entry, kind, of_system, job)
    except Exception as error:  # of any client: the table's content is not of this kind, or not among an enum's labels
        return Finding(entry, kind.name, Fate.CHANGED, should, short(f"written: {error}", exam))
    about = tables.one(kind, entry.system).about
    fate, detail = judge(about, expected(kind, of_system, found), found, entry.frame, answer.converted or {})
    return Finding(entry, kind.name, fate, should, short(detail, exam))


def came_through(entry: Transport, kind: Kind, of_system: Witness, job: DatabaseJob) -> pl.DataFrame:
    """Return a write's table, or a read's result, as a canonical frame. Raises the clients' exceptions."""
    return of_system.fetch(kind, job.table) if entry.operation is Operation.WRITE else pl.read_ipc(job.result)


def expected(kind: Kind, of_system: Witness, found: pl.DataFrame) -> pl.DataFrame:
    """Return the expected frame, for a read without the columns that SELECT * omits."""
    # By name, because polars would read the name * as all columns.
    return pl.DataFrame([of_system.rows(kind)[name] for name in found.columns])


def short(text: str, exam: Examination) -> str:
    """Return a string as the detail of a finding: one line without secrets."""
    return " ".join(redact(text, exam.secrets).split())[:_LONGEST_DETAIL]


def judge(
    about: set[str], expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[Fate, str]:
    """Return the fate of a kind's values: `exact`, `converted` or `changed`, and the differences. Pure.

    Only the dtypes of the columns that the kind is `about` count; all of them if it is about none.
    """
    found, converted = with_nulls(expected, found, frame, converted)
    if wrong := equality.differences(expected, found, tables.ROW_KEY):
        return Fate.CHANGED, "; ".join(wrong)
    return as_it_came(about, converted)


def with_nulls(
    expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return the found frame with nulls for the pandas NaNs that mean null, and these columns as `converted`.

    A float64 column of pandas has one marker for null and NaN. A null that became NaN there is `converted`; a NaN that
    became null is `changed`, as in every library.
    """
    if frame != "pandas" or expected.height != found.height:
        return found, converted
    nulls = equality.nulls_for_nans(expected, found, tables.ROW_KEY)
    marked = [name for name in found.columns if nulls[name].null_count() > found[name].null_count()]
    return nulls, {**converted, **dict.fromkeys(marked, "NaN for null")}


def as_it_came(about: set[str], converted: dict[str, str]) -> tuple[Fate, str]:
    """Describe how correct values arrived: `exact`, or `converted` with the dtypes that count, see `judge`."""
    told = {name: dtype for name, dtype in converted.items() if not about or name in about}
    return (Fate.CONVERTED, equality.came_back(told).removeprefix("converted: ")) if told else (Fate.EXACT, "")
