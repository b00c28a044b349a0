"""One pair of a transport and a kind of values: what is wanted of it, the job of a worker, and the finding."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from harness.address import redact
from harness.check import equality
from harness.datasets.hostile.kind import Kind
from harness.datasets.hostile.kinds import KINDS
from harness.embedded.service import Service
from harness.fidelity import tables
from harness.fidelity.examination import Examination
from harness.fidelity.witness import Witness
from harness.model import OR, Fate, Finding, Operation, Status, Transport
from harness.run.execution import Worker
from harness.run.rigs.databases import addresses
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseAnswer, DatabaseJob
from harness.worker.messages import Failed

DECLARED_LIMIT = 3.0  # seconds for a pair that is declared to hang
# A transport that does not support an ordinary row is unavailable here for its columns, whatever the values. In tables
# of other columns it is tried, and unavailable where it says the same.
CONTROL = KINDS["one_row"]
_LONGEST_DETAIL = 300  # characters
_FATES = {
    Status.OK: Fate.EXACT,
    Status.MISMATCH: Fate.CHANGED,
    Status.TIMEOUT: Fate.HANGS,
    Status.KILLED: Fate.CRASHES,
}  # every other status is a refusal


def wanted(entry: Transport, kind: Kind) -> str:
    """Return what a pair should come to, as it stands in its finding; nothing where all values should come through."""
    if declared := entry.lossy.get(kind.name):
        return declared
    of_system = tables.one(kind, entry.system)
    right = (Fate.REFUSED, Fate.EXACT, Fate.CONVERTED)
    return Fate.REFUSED if of_system.forbidden else OR.join(right) if of_system.own.may_refuse else ""


def finding(
    exam: Examination, entry: Transport, kind: Kind, of_system: Witness, worker: Worker, folder: Path
) -> Finding:
    """Try a pair, alone on a connection of its own, and return what came of it."""
    should = wanted(entry, kind)
    if not tables.one(kind, entry.system).forbidden and (reason := of_system.verdict(kind)):
        return Finding(entry, kind.name, Fate.UNVERIFIABLE, should, short(reason, exam))
    job = job_of(exam, entry, kind, of_system, folder / "result.arrow")
    answer = worker.ask(job, DECLARED_LIMIT if should == Fate.HANGS else exam.time_limit).answer
    return _judged(exam, entry, kind, of_system, job, answer)


def job_of(exam: Examination, entry: Transport, kind: Kind, of_system: Witness, result: Path) -> DatabaseJob:
    """Return the job of a pair, the table of a write made or emptied; a read leaves its frame at `result`."""
    writes = entry.operation is Operation.WRITE
    return DatabaseJob(
        transport=entry.id,
        module=entry.function.__module__,
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
        if _not_here(entry, answer.error) or (kind is CONTROL and answer.status == Status.UNSUPPORTED):
            fate = Fate.UNAVAILABLE
        return Finding(entry, kind.name, fate, should, short(answer.error, exam))
    try:
        found = came_through(entry, kind, of_system, job)
    except Exception as error:  # of any client: what stands in the table is not of this kind, or of no enum's labels
        return Finding(entry, kind.name, Fate.CHANGED, should, short(f"written: {error}", exam))
    about = tables.one(kind, entry.system).about
    fate, detail = judge(about, expected(kind, of_system, found), found, entry.frame, answer.converted or {})
    return Finding(entry, kind.name, fate, should, short(detail, exam))


def came_through(entry: Transport, kind: Kind, of_system: Witness, job: DatabaseJob) -> pl.DataFrame:
    """Return what a write left in its table, or a read at its place, as a canonical frame. Raises what clients do."""
    return of_system.fetch(kind, job.table) if entry.operation is Operation.WRITE else pl.read_ipc(job.result)


def expected(kind: Kind, of_system: Witness, found: pl.DataFrame) -> pl.DataFrame:
    """Return what should have come, without what SELECT * leaves out of a read."""
    # By name, for polars would take the name * for all columns.
    return pl.DataFrame([of_system.rows(kind)[name] for name in found.columns])


def _not_here(entry: Transport, error: str) -> bool:
    """Say whether it is the embedded service that cannot take this, where a server could."""
    service = SYSTEMS[entry.system].service
    return isinstance(service, Service) and bool(service.not_here) and service.not_here in error


def short(text: str, exam: Examination) -> str:
    """Return a text as the detail of a finding: one line without secrets."""
    return " ".join(redact(text, exam.secrets).split())[:_LONGEST_DETAIL]


def judge(
    about: set[str], expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[Fate, str]:
    """Say how the values of a kind fared: `exact`, `converted` or `changed`, and what is different. Pure.

    Of dtypes only those of the columns count that the kind is `about`; of all, where it is about none.
    """
    found, converted = with_nulls(expected, found, frame, converted)
    if wrong := equality.differences(expected, found, tables.ROW_KEY):
        return Fate.CHANGED, "; ".join(wrong)
    return as_it_came(about, converted)


def with_nulls(
    expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return what was found with nulls for those NaNs of pandas that stand for one, and these columns as `converted`.

    A float64 column of pandas has one mark for a null and for NaN: there a null that became a NaN is `converted`; a NaN
    that became a null is `changed` as everywhere.
    """
    if frame != "pandas" or expected.height != found.height:
        return found, converted
    nulls = equality.nulls_for_nans(expected, found, tables.ROW_KEY)
    marked = [name for name in found.columns if nulls[name].null_count() > found[name].null_count()]
    return nulls, {**converted, **dict.fromkeys(marked, "NaN for null")}


def as_it_came(about: set[str], converted: dict[str, str]) -> tuple[Fate, str]:
    """Say how values came that are all right: `exact`, or `converted` with the dtypes that count, see `judge`."""
    told = {name: dtype for name, dtype in converted.items() if not about or name in about}
    return (Fate.CONVERTED, equality.came_back(told).removeprefix("converted: ")) if told else (Fate.EXACT, "")
