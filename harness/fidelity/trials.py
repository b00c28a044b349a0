"""The work of `lab verify`: every transport over every hostile kind of values, each pair judged separately.

One worker process per transport module takes its pairs one after the other, each on a separate connection. After a hang
or a death the next pair gets a new process. Pairs that are declared to hang come last, in parallel, because each takes
a process and its whole time limit. Nothing here is measured.

An examination may begin with batches, which are faster, see `batch`: pairs that succeed there are not tried alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar
from zoneinfo import TZPATH

from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind
from harness.fidelity import batch, pair, witness
from harness.fidelity.examination import Examination, pairs
from harness.fidelity.pair import CONTROL
from harness.fidelity.witness import Witness
from harness.lab.labs import reason_unavailable
from harness.lab.reference import NoAnswer
from harness.machine import scratch
from harness.model import Fate, Finding, LabError, Status, Transport
from harness.run.execution import Worker

_AT_ONCE = 8  # pairs declared to hang: each has its own process
_Found = TypeVar("_Found")


def examine(exam: Examination, on_finding: Callable[[Finding], None] = lambda finding: None) -> list[Finding]:
    """Try every pair and return the findings in the order of the transports and kinds.

    The databases are examined in parallel. `on_finding` receives each finding in the caller's thread.
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
                yield Finding(entry, kind.name, Fate.UNAVAILABLE, pair.wanted(entry, kind), reason)
    ready = [entry for entry in entries if not reasons[entry.id]]
    if ready:
        hanging: dict[str, list[Transport]] = {}
        with witness.opened(entries[0].system, exam.lab.endpoints) as of_system:
            for _, module in groupby(sorted(ready, key=attrgetter("module")), key=attrgetter("module")):
                yield from _of_module(exam, list(module), of_system, hanging)
            for name, of_kind in hanging.items():
                for first in range(0, len(of_kind), _AT_ONCE):
                    yield from _declared_to_hang(exam, of_kind[first : first + _AT_ONCE], KINDS[name], of_system)


def _of_module(
    exam: Examination, entries: list[Transport], of_system: Witness, hanging: dict[str, list[Transport]]
) -> Iterator[Finding]:
    """Yield the findings on one module's transports, which share a process; set aside pairs declared to hang."""
    with scratch.folder("verify") as folder, ExitStack() as stack:
        process = stack.enter_context(_Process(Path(folder), exam.command))
        elsewhere = {
            zone: stack.enter_context(_Process(Path(folder), in_zone(exam.command, zone)))
            for zone in sorted({kind.zone for kind in exam.kinds if kind.zone})
        }
        for entry in entries:
            kinds = [kind for kind in pairs(entry, exam.kinds) if entry.lossy.get(kind.name) != Fate.HANGS]
            for kind in pairs(entry, exam.kinds):
                if kind not in kinds:
                    hanging.setdefault(kind.name, []).append(entry)
            control = _cared_for(exam, entry, CONTROL, of_system, process)
            if CONTROL in kinds:
                kinds.remove(CONTROL)
                yield control
            if exam.in_batches and control.fate in (Fate.EXACT, Fate.CONVERTED):
                here = [kind for kind in kinds if not kind.zone]
                for finding in _in_batches(exam, entry, here, of_system, process):
                    kinds.remove(KINDS[finding.kind])
                    yield finding
            unsupported = control.detail if control.fate is Fate.UNAVAILABLE else ""
            for kind in kinds:
                if unsupported and kind.columns == CONTROL.columns:
                    yield Finding(entry, kind.name, Fate.UNAVAILABLE, pair.wanted(entry, kind), unsupported)
                    continue
                finding = _cared_for(exam, entry, kind, of_system, elsewhere.get(kind.zone, process))
                not_here = unsupported and finding.detail == unsupported
                yield replace(finding, fate=Fate.UNAVAILABLE) if not_here else finding


def in_zone(command: tuple[str, ...], zone: str) -> tuple[str, ...]:
    """Return a command whose process starts in a time zone, because clients remember the first zone that they find.

    Raises LabError if this machine lacks the zone, which would silently be UTC.
    """
    if not any((Path(place) / zone).is_file() for place in TZPATH):
        raise LabError(f"this machine does not have the time zone {zone}; install tzdata")
    return ("env", f"TZ={zone}", *command)


class _Process:
    """The worker process of a module and the folder for its files; after its end a new one starts."""

    def __init__(self, folder: Path, command: tuple[str, ...]) -> None:
        self.folder, self._command = folder, command
        self._worker: Worker | None = None

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker:
            self._worker.end()

    def worker(self) -> Worker:
        """Return a living worker."""
        if self._worker is None or self._worker.ended:
            self._worker = Worker(self.folder / "log", self._command)
        return self._worker


def _declared_to_hang(
    exam: Examination, entries: Sequence[Transport], kind: Kind, of_system: Witness
) -> Iterator[Finding]:
    """Yield the findings on pairs that wait in parallel for their time limit, in one table: a hang writes nothing.

    A pair that does not hang after all is tried again, alone.
    """
    with scratch.folder("verify") as folder, ExitStack() as stack:
        command = in_zone(exam.command, kind.zone) if kind.zone else exam.command
        workers = [Worker(Path(folder) / f"log-{place}", command) for place in range(len(entries))]
        for worker in workers:
            stack.callback(worker.end)

        def asked(kind: Kind, limit: float) -> list[Status]:
            jobs = [pair.job_of(exam, entry, kind, of_system, Path(folder) / "result.arrow") for entry in entries]
            with ThreadPoolExecutor(len(entries)) as pool:
                return list(
                    pool.map(
                        lambda worker, job: Status.ERROR if worker.ended else worker.ask(job, limit).answer.status,
                        workers,
                        jobs,
                    )
                )

        of_system.verdict(kind)  # fills the table of a read
        of_system.verdict(CONTROL)
        asked(CONTROL, exam.time_limit)  # import first, so that no import counts as a hang
        statuses = asked(kind, pair.DECLARED_LIMIT)
        of_system.settle()
        for entry, status in zip(entries, statuses, strict=True):
            if status == Status.TIMEOUT and not of_system.verdict(kind):
                detail = f"ended after the time limit of {pair.DECLARED_LIMIT:g} s"
                yield Finding(entry, kind.name, Fate.HANGS, Fate.HANGS, detail)
            else:
                alone = Worker(Path(folder) / "log", command)
                stack.callback(alone.end)
                pair.finding(exam, entry, CONTROL, of_system, alone, Path(folder))
                yield pair.finding(exam, entry, kind, of_system, alone, Path(folder))


def _cared_for(exam: Examination, entry: Transport, kind: Kind, of_system: Witness, process: _Process) -> Finding:
    """Return the finding on a pair. A server that died or hung is one too, and is restarted for the next pair."""

    def tried() -> Finding:
        worker = process.worker()
        finding = pair.finding(exam, entry, kind, of_system, worker, process.folder)
        if worker.ended:
            of_system.settle()
        elif not finding.as_wanted:  # the server may be the cause
            of_system.reference.greet()
        return finding

    found = _or_loss(exam, entry.system, of_system, process, tried)
    if isinstance(found, _Loss):
        return Finding(entry, kind.name, found.fate, pair.wanted(entry, kind), found.detail)
    return found


def _in_batches(
    exam: Examination, entry: Transport, kinds: list[Kind], of_system: Witness, process: _Process
) -> list[Finding]:
    """Return the findings on pairs that succeed in batches; empty if a server is lost meanwhile."""
    found = _or_loss(
        exam,
        entry.system,
        of_system,
        process,
        lambda: batch.findings(exam, entry, kinds, of_system, process.worker, process.folder),
    )
    return [] if isinstance(found, _Loss) else found


@dataclass(frozen=True)
class _Loss:
    """A server that died or hung, and was restarted."""

    fate: Fate
    detail: str


def _or_loss(
    exam: Examination, system: str, of_system: Witness, process: _Process, tried: Callable[[], _Found]
) -> _Found | _Loss:
    """Return the finding, or how the server was lost meanwhile."""
    fate = Fate.CRASHES
    try:
        return tried()
    except NoAnswer:
        fate = Fate.HANGS
    except LabError:
        if not exam.died(system):
            raise
    process.worker().end()
    detail = exam.mend(system, hangs=fate is Fate.HANGS)
    of_system.forget()
    return _Loss(fate, detail)
