"""Many pairs of a transport in one sitting: over one connection and, if possible, in one table.

Connecting takes most of a pair's time. A sitting tries only pairs whose values should arrive, and only a success
counts. Every other pair is tried alone, because only that can prove a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.check import equality
from harness.datasets.hostile.kind import KEY, PLAIN, Kind
from harness.fidelity import gathering, pair, tables
from harness.fidelity.examination import Examination
from harness.fidelity.gathering import Gathering
from harness.fidelity.witness import Witness
from harness.model import Finding, Operation, Status, Transport
from harness.run.execution import Worker
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.contracts.several_tables import SeveralTablesJob
from harness.worker.messages import Failed

Table = Kind | Gathering


def findings(
    exam: Examination,
    entry: Transport,
    kinds: Sequence[Kind],
    of_system: Witness,
    worker: Callable[[], Worker],
    folder: Path,
) -> list[Finding]:
    """Return the findings on those kinds that arrived as they should. `worker` returns a living one."""
    coming = [kind for kind in kinds if not pair.wanted(entry, kind)]
    sought = [kind for kind in coming if not of_system.verdict(kind)]
    if len(sought) < len(coming):  # the server may be the reason why no pair is verifiable
        of_system.reference.greet()
    reads = entry.operation is Operation.READ
    together = tuple(kind for kind in sought if gathering.fits(tables.one(kind, entry.system), reads))
    apart: list[Table] = [kind for kind in sought if kind not in together]
    found: list[Finding] = []
    left: list[list[Table]] = [apart, _as_table(entry, together)]  # each over a separate connection
    while left:
        seated = left.pop()
        if not seated:
            continue
        came = _sat(exam, entry, seated, of_system, worker(), folder)
        if isinstance(came, Failed):
            if came.status not in (Status.TIMEOUT, Status.KILLED):  # these take long, so repeat them only alone
                left += _halves(entry, seated)
        else:
            found += came
    return found


def _as_table(entry: Transport, kinds: tuple[Kind, ...]) -> list[Table]:
    return [gathering.gathering(kinds, entry.system)] if len(kinds) > 1 else list(kinds)


def _halves(entry: Transport, seated: list[Table]) -> list[list[Table]]:
    """Return two halves that may succeed separately; a table of several kinds becomes two of half the kinds."""
    if len(seated) > 1:
        middle = len(seated) // 2
        return [seated[:middle], seated[middle:]]
    (table,) = seated
    if isinstance(table, Kind):
        return []
    kinds = tuple(table.columns)
    middle = len(kinds) // 2
    return [_as_table(entry, kinds[:middle]), _as_table(entry, kinds[middle:])]


def _sat(
    exam: Examination,
    entry: Transport,
    seated: Sequence[Table],
    of_system: Witness,
    worker: Worker,
    folder: Path,
) -> list[Finding] | Failed:
    """Return the findings of one sitting over all its tables, or its failure."""
    kinds = [table.kind if isinstance(table, Gathering) else table for table in seated]
    if entry.operation is Operation.READ and (reason := "; ".join(filter(None, map(of_system.verdict, kinds)))):
        return Failed(Status.ERROR, reason)
    jobs = [
        pair.job_of(exam, entry, kind, of_system, folder / f"result-{place}.arrow") for place, kind in enumerate(kinds)
    ]
    job = SeveralTablesJob(transport=entry.id, module=entry.module, stays=True, jobs=jobs)
    answer = worker.ask(job, exam.time_limit).answer
    if worker.ended:
        of_system.settle()
    if any(kind.tables for kind in kinds) and (done := of_system.executed()):
        return Failed(Status.ERROR, done)
    if isinstance(answer, Failed):
        of_system.reference.greet()  # the server may have failed
        return answer
    came: list[Finding] = []
    for table, of_table, converted in zip(seated, jobs, answer.converted, strict=True):
        came += _came_through(exam, entry, table, of_system, of_table, converted or {})
    return came


def _came_through(
    exam: Examination,
    entry: Transport,
    table: Table,
    of_system: Witness,
    job: DatabaseJob,
    converted: dict[str, str],
) -> list[Finding]:
    """Return the findings on the kinds of one table whose values all arrived."""
    kind = table.kind if isinstance(table, Gathering) else table
    try:
        came = pair.came_through(entry, kind, of_system, job)
    except Exception:  # any client's error; the pair alone will show it
        return []
    expected = pair.expected(kind, of_system, came)
    came, converted = pair.with_nulls(expected, came, entry.frame, converted)
    right = not equality.differences(expected, came, tables.ROW_KEY)
    if isinstance(table, Kind):
        return [_fine(exam, entry, kind, converted)] if right else []

    def as_expected(names: Iterable[str]) -> bool:
        columns = [KEY, *names]
        return right or not equality.differences(expected.select(columns), came.select(columns), tables.ROW_KEY)

    if not as_expected(PLAIN):  # the ordinary columns: no single kind is responsible
        return []
    return [
        _fine(exam, entry, of, {name: converted[there] for name, there in names.items() if there in converted})
        for of, names in table.columns.items()
        if as_expected(names.values())
    ]


def _fine(exam: Examination, entry: Transport, kind: Kind, converted: dict[str, str]) -> Finding:
    fate, detail = pair.as_it_came(tables.one(kind, entry.system).about, converted)
    return Finding(entry, kind.name, fate, "", pair.short(detail, exam))
