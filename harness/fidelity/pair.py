"""One pair of a transport and a kind of values: the wanted outcome, a worker's job, and the finding."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from harness.address import redact
from harness.check import equality
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind
from harness.fidelity import tables
from harness.fidelity.examination import Examination
from harness.fidelity.witness import Witness
from harness.model import OR, Fate, Finding, Operation, Status, Transport
from harness.run.execution import Worker
from harness.run.rigs.databases import addresses
from harness.worker.contracts.databases import DatabaseAnswer, DatabaseJob
from harness.worker.messages import Failed

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
