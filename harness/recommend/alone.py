"""Calls with a single column of a user's data, if no transport preserves all columns.

A client's message does not always name the column that caused the error. One worker process a module takes the calls
one after the other, as in `harness.fidelity.trials`. The lab does not time these calls.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path

from harness.check.canonical import NotConvertible
from harness.datasets.user_data.data import UserData
from harness.lab import interpreters
from harness.lab.tables import MOST, Tables
from harness.machine import scratch
from harness.model import Operation, Transport
from harness.run.execution import Worker
from harness.run.rigs.databases import DatabaseRig, addresses
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Failed

_ROWS = 1_000
_KEY = bytes(32)  # of a mark that is not kept
_LIMIT = 10.0  # seconds of one call


def failing(
    rig: DatabaseRig, data: UserData, entries: Sequence[Transport], columns: Sequence[str], deadline: float
) -> dict[str, set[str]]:
    """Return the columns that each transport fails at when they are alone, as far as tried before a deadline.

    The deadline is a time of the monotonic clock.
    """
    found: dict[str, set[str]] = {}
    by_module = sorted(entries, key=attrgetter("module"))
    with scratch.folder("alone") as folder, ExitStack() as stack:
        workers: dict[str, Worker] = {}
        for place, column in enumerate(columns):
            tables = _tables(rig, data.sample(_ROWS).only(column), Path(folder) / f"{place}")
            stack.callback(tables.drop, entries[0].system)
            for entry in by_module:
                if time.monotonic() > deadline:
                    return found
                worker = workers.get(entry.module)
                if worker is None or worker.ended:
                    worker = workers[entry.module] = Worker(Path(folder) / "log", interpreters.command_of(entry))
                    stack.callback(worker.end)
                if _fails(rig, entry, tables, worker, Path(folder)):
                    found.setdefault(entry.id, set()).add(column)
    return found


def _tables(rig: DatabaseRig, data: UserData, folder: Path) -> Tables:
    folder.mkdir()
    dataset = data.dataset(folder, data.rows, _KEY)
    return Tables(rig.references, data.specification, dataset, dataset, MOST)  # which the next run drops, too


def _fails(rig: DatabaseRig, entry: Transport, tables: Tables, worker: Worker, folder: Path) -> bool:
    writes, system = entry.operation is Operation.WRITE, entry.system
    try:
        table, _ = tables.for_write(system) if writes else tables.for_read(system)
        job = DatabaseJob(
            transport=entry.id,
            module=entry.module,
            result=str(folder / "result.arrow"),
            stays=True,
            table=table,
            dataset=tables.dataset.path,
            logical_types=tables.logical_types if writes else tables.read_logical_types(system),
            addresses=addresses(entry, rig.lab, rig.objects, rig.bucket),
        )
        answer = worker.ask(job, _LIMIT).answer
        if isinstance(answer, Failed):
            return True
        wrong = (
            tables.differences_in_table(system, table, entry.frame)
            if writes
            else tables.differences_in_file(job.result, entry.frame)
        )
        return bool(wrong)
    except NotConvertible:
        return True
    finally:
        if rig.revive():
            worker.end()
