"""Many pairs of a transport in one batch: over one connection and, if possible, in one table.

Connecting takes most of a pair's time. A batch tries only pairs whose values should arrive, and only a success
counts. Every other pair is tried alone, because only that can prove a loss.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from harness.check import equality
from harness.datasets.hostile.kind import KEY, ORDINARY, PLAIN, Kind, Rows
from harness.fidelity import pair, tables
from harness.fidelity.examination import Examination
from harness.fidelity.tables import Held
from harness.fidelity.witness import Witness
from harness.model import Finding, Operation, Status, Transport
from harness.run.execution import Worker
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.contracts.several_tables import SeveralTablesJob
from harness.worker.messages import Failed

# Several kinds of values in one table, so that one call shows the fate of each. Pure.
#
# The table has each kind's relevant columns under new names. Such a column begins as in the kind's own table and
# repeats its last value down to the height of the tallest. The values, their order and the first value are therefore
# the same. Ordinary values fill the other columns.

_FEW_BYTES = 10_000  # bytes of values per kind, to limit a table of all kinds
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Gathering:
    """Kinds in one table: `kind` is the table's, `columns` maps each kind's columns to their names there."""

    kind: Kind
    columns: dict[Kind, dict[str, str]]


@cache
def fits(of: Held, read: bool) -> bool:
    """Return whether a kind is only about the values of its columns, and these are few.

    Other kinds are about names, whole rows or tables, a type or column of one database, or the client's time zone. Or
    their right result depends on the server. In tables of reads, values that the reference client must insert with SQL
    stay separate.
    """
    kind, own = of.kind, of.own
    of_more = kind.tables or kind.zone or of.forbidden or own.may_refuse or own.types or own.hidden or own.shown
    by_server = kind.into.keys() - kind.columns.keys()
    if of_more or by_server or not of.about or (read and of.insertion):
        return False
    rows = _rows(of)
    of_rows = not rows or any(all(row[name] is None for name in kind.columns) for row in rows)
    return not of_rows and of.rows.estimated_size() <= _FEW_BYTES


@cache
def gathering(kinds: tuple[Kind, ...], system: str) -> Gathering:
    """Return kinds that fit in one table of a database."""
    held = [tables.one(kind, system) for kind in kinds]
    height = max(of.rows.height for of in held)
    columns = {of.kind: {name: f"{of.kind.name}_{name}" for name in sorted(of.about)} for of in held}
    rows: Rows = [dict(ORDINARY) for _ in range(height)]
    made = {}
    for of in held:
        names = columns[of.kind]
        for row, values in zip(rows, _down_to(height, _rows(of)), strict=True):
            row.update({names[name]: values[name] for name in names})
        of_table = {**of.kind.made, **of.own.made}
        made.update({names[name]: _down_to(height, of_table[name]) for name in names if name in of_table})
    kind = Kind(
        # A name made of the kinds, because tables and files of other kinds must have another one.
        f"gathered_{hashlib.sha256(' '.join(kind.name for kind in kinds).encode()).hexdigest()[:12]}",
        "several kinds next to each other",
        rows,
        {**PLAIN, **{names[name]: kind.columns[name] for kind, names in columns.items() for name in names}},
        {names[name]: kind.into[name] for kind, names in columns.items() for name in names if name in kind.into},
        made,
    )
    return Gathering(kind, columns)


def _rows(of: Held) -> Rows:
    return [{**ORDINARY, **row} for row in of.values]


def _down_to(height: int, values: Sequence[_Value]) -> list[_Value]:
    return [*values, *[values[-1]] * (height - len(values))]


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
    together = tuple(kind for kind in sought if fits(tables.one(kind, entry.system), reads))
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
    return [gathering(kinds, entry.system)] if len(kinds) > 1 else list(kinds)


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
    """Return the findings of one batch over all its tables, or its failure."""
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
