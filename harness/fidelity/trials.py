"""What `lab verify` does: every transport over every hostile kind of values, each pair judged on its own.

One worker process a transport module takes its pairs one after the other, each on a connection of its own; after a hang
or a death the next pair gets a new process. Pairs that are declared to hang come last, beside one another: each takes a
process and its whole time limit. Nothing here is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue

import polars as pl

from harness.address import redact
from harness.check import equality
from harness.datasets.hostile.kind import Kind
from harness.datasets.hostile.kinds import KINDS
from harness.embedded.service import Service
from harness.fidelity import tables, witness
from harness.fidelity.examination import Examination, pairs
from harness.fidelity.witness import Witness
from harness.lab.availability import reason_unavailable
from harness.lab.reference import NoAnswer
from harness.machine import scratch
from harness.model import OR, Fate, Finding, LabError, Operation, Status, Transport
from harness.run.execution import Worker
from harness.run.rigs.databases import addresses
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseAnswer, DatabaseJob
from harness.worker.messages import Failed

DECLARED_LIMIT = 3.0  # for a pair that is declared to hang
# A transport that does not support an ordinary row is unavailable here for its columns, whatever the values. In tables
# of other columns it is tried, and unavailable where it says the same.
_CONTROL = KINDS["one_row"]
_LONGEST_DETAIL = 300  # characters
_AT_ONCE = 8  # pairs declared to hang: each has a process of its own
_FATES = {
    Status.OK: Fate.EXACT,
    Status.MISMATCH: Fate.CHANGED,
    Status.TIMEOUT: Fate.HANGS,
    Status.KILLED: Fate.CRASHES,
}  # every other status is a refusal


def examine(exam: Examination, on_finding: Callable[[Finding], None] = lambda finding: None) -> list[Finding]:
    """Try every pair and return the findings in the order of the transports and kinds.

    The databases are examined side by side; `on_finding` is told of each finding in the thread of the caller.
    """
    told: SimpleQueue[Finding | None] = SimpleQueue()
    stop = threading.Event()
    systems = [list(group) for _, group in groupby(exam.chosen, key=lambda entry: entry.system)]

    def of_one_system(entries: list[Transport]) -> None:
        try:
            for finding in _of_system(exam, entries):
                told.put(finding)
                if stop.is_set():
                    return
        finally:
            told.put(None)

    found = []
    with ThreadPoolExecutor(len(systems)) as pool:
        futures = [pool.submit(of_one_system, entries) for entries in systems]
        try:
            for _ in futures:
                while (finding := told.get()) is not None:
                    found.append(finding)
                    on_finding(finding)
        finally:
            stop.set()
        for future in futures:
            future.result()
    order = {entry.id: place for place, entry in enumerate(exam.chosen)}
    return sorted(found, key=lambda finding: (order[finding.transport.id], list(KINDS).index(finding.kind)))


def _of_system(exam: Examination, entries: list[Transport]) -> Iterator[Finding]:
    no_s3 = exam.objects if isinstance(exam.objects, str) else None
    reasons = {entry.id: reason_unavailable(entry, exam.lab, exam.servers, no_s3) for entry in entries}
    for entry in entries:
        if reason := reasons[entry.id]:
            for kind in pairs(entry, exam.kinds):
                yield Finding(entry, kind.name, Fate.UNAVAILABLE, _wanted(entry, kind), reason)
    ready = [entry for entry in entries if not reasons[entry.id]]
    if ready:
        hanging: dict[str, list[Transport]] = {}
        with witness.opened(entries[0].system, exam.lab.endpoints) as of_system:
            for _, module in groupby(sorted(ready, key=_module), key=_module):
                yield from _of_module(exam, list(module), of_system, hanging)
            for name, of_kind in hanging.items():
                for first in range(0, len(of_kind), _AT_ONCE):
                    yield from _declared_to_hang(exam, of_kind[first : first + _AT_ONCE], KINDS[name], of_system)


def _module(entry: Transport) -> str:
    return entry.function.__module__


def _of_module(
    exam: Examination, entries: list[Transport], of_system: Witness, hanging: dict[str, list[Transport]]
) -> Iterator[Finding]:
    """Yield the findings on the transports of one module, which share a process; set aside what is declared to hang."""
    with scratch.folder("verify") as folder, ExitStack() as stack:
        worker: Worker | None = None
        for entry in entries:
            unsupported = ""
            for kind in (_CONTROL, *(kind for kind in pairs(entry, exam.kinds) if kind is not _CONTROL)):
                if unsupported and kind.columns == _CONTROL.columns:
                    yield Finding(entry, kind.name, Fate.UNAVAILABLE, _wanted(entry, kind), unsupported)
                    continue
                if entry.lossy.get(kind.name) == Fate.HANGS:
                    hanging.setdefault(kind.name, []).append(entry)
                    continue
                if worker is None or worker.ended:
                    worker = Worker(Path(folder) / "log", exam.command)
                    stack.callback(worker.end)
                finding = _cared_for(exam, entry, kind, of_system, worker, Path(folder))
                if finding.fate is Fate.UNAVAILABLE and kind is _CONTROL:
                    unsupported = finding.detail
                elif unsupported and finding.detail == unsupported:
                    finding = replace(finding, fate=Fate.UNAVAILABLE)
                if kind in exam.kinds:
                    yield finding


def _declared_to_hang(
    exam: Examination, entries: Sequence[Transport], kind: Kind, of_system: Witness
) -> Iterator[Finding]:
    """Yield the findings on pairs that wait together for their time limit, in one table: what hangs writes nothing.

    What does not hang after all is tried again, alone.
    """
    with scratch.folder("verify") as folder, ExitStack() as stack:
        workers = [Worker(Path(folder) / f"log-{place}", exam.command) for place in range(len(entries))]
        for worker in workers:
            stack.callback(worker.end)

        def asked(kind: Kind, limit: float) -> list[Status]:
            jobs = [_job(exam, entry, kind, of_system, Path(folder)) for entry in entries]
            with ThreadPoolExecutor(len(entries)) as pool:
                return list(pool.map(lambda worker, job: _status(worker, job, limit), workers, jobs))

        of_system.verdict(kind)  # which fills the table of a read
        of_system.verdict(_CONTROL)
        asked(_CONTROL, exam.time_limit)  # so that no import counts as a hang
        statuses = asked(kind, DECLARED_LIMIT)
        of_system.settle()
        for entry, status in zip(entries, statuses, strict=True):
            if status == Status.TIMEOUT and not of_system.verdict(kind):
                detail = f"ended after the time limit of {DECLARED_LIMIT:g} s"
                yield Finding(entry, kind.name, Fate.HANGS, Fate.HANGS, detail)
            else:
                alone = Worker(Path(folder) / "log", exam.command)
                stack.callback(alone.end)
                _finding(exam, entry, _CONTROL, of_system, alone, Path(folder))
                yield _finding(exam, entry, kind, of_system, alone, Path(folder))


def _cared_for(
    exam: Examination, entry: Transport, kind: Kind, of_system: Witness, worker: Worker, folder: Path
) -> Finding:
    """Return the finding on a pair; a server that died or hangs is one, and is there again for the next pair."""
    fate = Fate.CRASHES
    try:
        finding = _finding(exam, entry, kind, of_system, worker, folder)
        if worker.ended:
            of_system.settle()
        elif not finding.as_wanted:  # it may be the server that is not as wanted
            of_system.reference.greet()
        return finding
    except NoAnswer:
        fate = Fate.HANGS
    except LabError:
        if not exam.died(entry.system):
            raise
    worker.end()
    detail = exam.mend(entry.system, hangs=fate is Fate.HANGS)
    of_system.forget()
    return Finding(entry, kind.name, fate, _wanted(entry, kind), detail)


def _status(worker: Worker, job: DatabaseJob, limit: float) -> Status:
    return Status.ERROR if worker.ended else worker.ask(job, limit).answer.status


def _wanted(entry: Transport, kind: Kind) -> str:
    if declared := entry.lossy.get(kind.name):
        return declared
    of_system = tables.one(kind, entry.system)
    right = (Fate.REFUSED, Fate.EXACT, Fate.CONVERTED)
    return Fate.REFUSED if of_system.forbidden else OR.join(right) if of_system.own.may_refuse else ""


def _finding(
    exam: Examination, entry: Transport, kind: Kind, of_system: Witness, worker: Worker, folder: Path
) -> Finding:
    wanted = _wanted(entry, kind)
    if not tables.one(kind, entry.system).forbidden and (reason := of_system.verdict(kind)):
        return Finding(entry, kind.name, Fate.UNVERIFIABLE, wanted, _short(reason, exam))
    job = _job(exam, entry, kind, of_system, folder)
    answer = worker.ask(job, DECLARED_LIMIT if wanted == Fate.HANGS else exam.time_limit).answer
    return _judged(exam, entry, kind, of_system, job, answer)


def _job(exam: Examination, entry: Transport, kind: Kind, of_system: Witness, folder: Path) -> DatabaseJob:
    writes = entry.operation is Operation.WRITE
    return DatabaseJob(
        transport=entry.id,
        module=entry.function.__module__,
        result=str(folder / "result.arrow"),
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
    wanted, writes = _wanted(entry, kind), entry.operation is Operation.WRITE
    if kind.tables and (done := of_system.executed()):
        return Finding(entry, kind.name, Fate.CHANGED, wanted, _short(done, exam))
    if isinstance(answer, Failed):
        fate = _FATES.get(answer.status, Fate.REFUSED)
        if _not_here(entry, answer.error) or (kind is _CONTROL and answer.status == Status.UNSUPPORTED):
            fate = Fate.UNAVAILABLE
        return Finding(entry, kind.name, fate, wanted, _short(answer.error, exam))
    try:
        found = of_system.fetch(kind, job.table) if writes else pl.read_ipc(job.result)
    except Exception as error:  # of any client: what stands in the table is not of this kind, or of no enum's labels
        return Finding(entry, kind.name, Fate.CHANGED, wanted, _short(f"written: {error}", exam))
    # Of a read without what SELECT * leaves out; by name, for polars would take the name * for all columns.
    expected = pl.DataFrame([of_system.rows(kind)[name] for name in found.columns])
    about = tables.one(kind, entry.system).about
    fate, detail = judge(about, expected, found, entry.frame, answer.converted or {})
    return Finding(entry, kind.name, fate, wanted, _short(detail, exam))


def _not_here(entry: Transport, error: str) -> bool:
    """Say whether it is the embedded service that cannot take this, where a server could."""
    service = SYSTEMS[entry.system].service
    return isinstance(service, Service) and bool(service.not_here) and service.not_here in error


def _short(text: str, exam: Examination) -> str:
    return " ".join(redact(text, exam.secrets).split())[:_LONGEST_DETAIL]


def judge(
    about: set[str], expected: pl.DataFrame, found: pl.DataFrame, frame: str, converted: dict[str, str]
) -> tuple[Fate, str]:
    """Say how the values of a kind fared: `exact`, `converted` or `changed`, and what is different. Pure.

    Of dtypes only those of the columns count that the kind is `about`; of all, where it is about none. A float64 column
    of pandas has one mark for a null and for NaN: there a null that became a NaN is `converted`; a NaN that became a
    null is `changed` as everywhere.
    """
    if frame == "pandas" and expected.height == found.height:
        with_nulls = equality.nulls_for_nans(expected, found, tables.ROW_KEY)
        marked = [name for name in found.columns if with_nulls[name].null_count() > found[name].null_count()]
        converted, found = {**converted, **dict.fromkeys(marked, "NaN for null")}, with_nulls
    if wrong := equality.differences(expected, found, tables.ROW_KEY):
        return Fate.CHANGED, "; ".join(wrong)
    told = {name: dtype for name, dtype in converted.items() if not about or name in about}
    return (Fate.CONVERTED, equality.came_back(told).removeprefix("converted: ")) if told else (Fate.EXACT, "")
