"""Many pairs of a transport in one sitting: over one connection, and where they can, in one table.

To connect takes most of the time of a pair. Only what should come through is tried here, and only what does counts:
whatever does not is no finding, and the pair is tried alone, which alone can say that something is lost.
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
    """Return the findings on those of the kinds that came through as they should. `worker` returns one that lives."""
    coming = [kind for kind in kinds if not pair.wanted(entry, kind)]
    sought = [kind for kind in coming if not of_system.verdict(kind)]
    if len(sought) < len(coming):  # it may be the server that vouches for nothing
        of_system.reference.greet()
    reads = entry.operation is Operation.READ
    together = tuple(kind for kind in sought if gathering.fits(tables.one(kind, entry.system), reads))
    apart: list[Table] = [kind for kind in sought if kind not in together]
    found: list[Finding] = []
    left: list[list[Table]] = [apart, _as_table(entry, together)]  # each over a connection of its own
    while left:
        seated = left.pop()
        if not seated:
            continue
        came = _sat(exam, entry, seated, of_system, worker(), folder)
        if isinstance(came, Failed):
            if came.status not in (Status.TIMEOUT, Status.KILLED):  # which take long: again only alone
                left += _halves(entry, seated)
        else:
            found += came
    return found


def _as_table(entry: Transport, kinds: tuple[Kind, ...]) -> list[Table]:
    return [gathering.gathering(kinds, entry.system)] if len(kinds) > 1 else list(kinds)


def _halves(entry: Transport, seated: list[Table]) -> list[list[Table]]:
    """Return what may come through without the other half; of a table of several kinds two with half of them each."""
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
    """Return the findings of one sitting, over all its tables, or how it failed."""
    kinds = [table.kind if isinstance(table, Gathering) else table for table in seated]
    if entry.operation is Operation.READ and (reason := "; ".join(filter(None, map(of_system.verdict, kinds)))):
        return Failed(Status.ERROR, reason)
    jobs = [
        pair.job_of(exam, entry, kind, of_system, folder / f"result-{place}.arrow") for place, kind in enumerate(kinds)
    ]
    job = SeveralTablesJob(transport=entry.id, module=entry.function.__module__, stays=True, jobs=jobs)
    answer = worker.ask(job, exam.time_limit).answer
    if worker.ended:
        of_system.settle()
    if any(kind.tables for kind in kinds) and (done := of_system.executed()):
        return Failed(Status.ERROR, done)
    if isinstance(answer, Failed):
        of_system.reference.greet()  # it may be the server that failed
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
    """Return the findings on the kinds of one table of which every value came through."""
    kind = table.kind if isinstance(table, Gathering) else table
    try:
        came = pair.came_through(entry, kind, of_system, job)
    except Exception:  # of any client; what it is shows alone
        return []
    expected = pair.expected(kind, of_system, came)
    came, converted = pair.with_nulls(expected, came, entry.frame, converted)
    right = not equality.differences(expected, came, tables.ROW_KEY)
    if isinstance(table, Kind):
        return [_fine(exam, entry, kind, converted)] if right else []

    def as_expected(names: Iterable[str]) -> bool:
        columns = [KEY, *names]
        return right or not equality.differences(expected.select(columns), came.select(columns), tables.ROW_KEY)

    if not as_expected(PLAIN):  # what stands beside them all: no kind has done that alone
        return []
    return [
        _fine(exam, entry, of, {name: converted[there] for name, there in names.items() if there in converted})
        for of, names in table.columns.items()
        if as_expected(names.values())
    ]


def _fine(exam: Examination, entry: Transport, kind: Kind, converted: dict[str, str]) -> Finding:
    fate, detail = pair.as_it_came(tables.one(kind, entry.system).about, converted)
    return Finding(entry, kind.name, fate, "", pair.short(detail, exam))
