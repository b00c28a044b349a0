"""The rig of suites that load and unload a piece at a time, in one process or with workers: tables as in `databases`.

Beside a run it looks at the workers' processes, and in some experiments kills one of them (`kill`), changes the table
that is read (`change`) or limits the memory (`memory_mb`).
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from harness.check import sums, unloaded
from harness.check.sums import Sums
from harness.datasets.specification import PLAIN
from harness.lab import cluster
from harness.lab.meanwhile import Beside, Changing, Killing, Looking
from harness.lab.tables import Tables
from harness.machine import marked, memory_limit, scratch
from harness.model import Case, LabError, Operation
from harness.run.rigs import databases
from harness.run.rigs.databases import DatabaseRig
from harness.run.rigs.rig import LIMIT, Checked, Order, Rig
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import WARMUP_ROWS, DatabaseAnswer, DatabaseJob
from harness.worker.messages import Numbers

REQUIRES: tuple[str, ...] = ()  # the base of the lab brings all of it
_MORE: dict[str, tuple[str, ...]] = {"kill": ("before", "after"), "change": ("during",)}  # and their values
PARAMETERS = frozenset({"rows", "workers", "profile", LIMIT, *_MORE})
# Of a run that is not timed: JVMs compile fast and not well, which takes an engine half of the CPU time of its start.
_OF_THE_KILLED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
WARMUP_PARTS = 8  # of an engine's warm-up load
_PARTS = (Operation.LOAD, Operation.UNLOAD)


@dataclass
class UnderWay:
    """What goes on beside the run under way, and what was made for it."""

    mark: str = ""
    limit: memory_limit.MemoryLimit | None = None
    looking: Looking | None = None
    killing: Killing | None = None
    changing: Changing | None = None

    @property
    def _threads(self) -> list[Beside]:
        return [thread for thread in (self.looking, self.killing, self.changing) if thread]

    def start(self) -> None:
        """Begin what is to go on."""
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """End what goes on."""
        for thread in self._threads:
            thread.finish()

    def forget(self) -> None:
        """Be ready for the next run."""
        self.mark, self.limit, self.looking, self.killing, self.changing = "", None, None, None, None


@dataclass(frozen=True, kw_only=True)
class ClusterRig(DatabaseRig):
    """A database rig, with a folder for files that are unloaded and one for files of engines; see `Rig`."""

    settings: Settings
    unloaded: Path
    engines: Path
    meanwhile: UnderWay = field(default_factory=UnderWay)

    @property
    def secrets(self) -> Sequence[str]:
        return [*super().secrets, *self.settings.endpoints_of_workers.values()]

    def facts(self) -> dict[str, object]:
        workers = f"a cluster of {self.named.engine}" if self.named else "of this machine"
        return {**super().facts(), "workers": workers, "memory_limit": memory_limit.limited_by()}

    def room(self, case: Case) -> int:
        return 0 if case.transport.operation is Operation.LOAD else super().room(case)

    def unavailable(self, case: Case) -> str | None:
        if "kill" in case.parameters and self.named:
            return "only workers on this machine are killed; take LAB_CLUSTER_ADDRESS out of the environment"
        return lacking(case) or super().unavailable(case)

    def prepare(self, case: Case) -> DatabaseJob:
        self.settle_engines()
        job = super().prepare(case)
        entry, beside = case.transport, self.meanwhile
        beside.mark = uuid.uuid4().hex
        if megabytes := case.parameters.get(LIMIT):
            beside.limit = memory_limit.make(int(megabytes) * 1_000_000)
        job = replace(job, mark=beside.mark, limit=beside.limit)
        if entry.engine and job.addresses:
            self.engines.mkdir(exist_ok=True)
            number = int(case.parameters.get("workers", 1))
            workers = cluster.workers(self.settings, entry, number, job.addresses.uri, str(self.engines))
            job = replace(job, addresses=replace(job.addresses, workers=workers))
            beside.looking = Looking(beside.mark)
        system = SYSTEMS.get(entry.system)
        if system and (moment := case.parameters.get("kill")):
            # Nobody is to be killed in a warm-up.
            job = replace(job, warmup_table="", environment=_OF_THE_KILLED)
            beside.killing = Killing(system, self.lab.endpoints, beside.mark, str(moment))
        if system and "change" in case.parameters:
            what = (job.table, job.warmup_table, self._of(case).spec.month)
            beside.changing = Changing(system, self.lab.endpoints, what, Path(job.warmup_destination))
        beside.start()
        return job

    def _with_tables(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        entry, tables, profile = case.transport, self._of(case), str(case.parameters.get("profile", PLAIN))
        if entry.operation is Operation.LOAD:
            if "kill" in case.parameters:  # a key would refuse the rows that somebody repeats, which is what is asked
                profile = SYSTEMS[entry.system].meanwhile.PROFILE
            table, warmup_table = tables.for_write(entry.system, profile)
            warmup = self._divided(tables.warmup.path) if entry.engine else tables.warmup.path
            return replace(job, table=table, warmup_table=warmup_table, warmup_dataset=warmup)
        if entry.operation is not Operation.UNLOAD:
            return super()._with_tables(case, job)
        changing = "change" in case.parameters
        table, warmup_table = tables.for_changing(entry.system) if changing else tables.for_read(entry.system, profile)
        folders = [self.unloaded / name for name in ("measured", "warmup")]
        for folder in folders:
            folder.mkdir(parents=True)
        return replace(
            job,
            table=table,
            warmup_table=warmup_table,
            destination=str(folders[0]),
            warmup_destination=str(folders[1]),
        )

    def _divided(self, path: str) -> str:
        """Write a file again in more row groups than there are workers: each is to be warm."""
        divided = self.unloaded / "warmup.parquet"
        divided.parent.mkdir(parents=True)
        pq.write_table(pq.read_table(path), divided, row_group_size=WARMUP_ROWS // WARMUP_PARTS)
        return str(divided)

    def check(self, case: Case, job: DatabaseJob, answer: DatabaseAnswer) -> Checked:
        """Compare the sums of what was loaded or unloaded with those of the dataset."""
        self.meanwhile.finish()
        if case.transport.operation not in _PARTS:
            return super().check(case, job, answer)
        tables, system = self._of(case), case.transport.system
        self._require_meanwhile()
        if case.transport.operation is Operation.LOAD:
            found, converted = tables.sums_of(system, job.table), None
        else:
            found, converted = unloaded.summed(job.destination, tables.logical_types)
        moments = self._moments(tables)
        nearest = min(moments, key=lambda moment: abs(moment.rows - found.rows))
        wrong = sums.differences(nearest, found)
        details = self._of_processes()
        if _MORE.keys() & case.parameters.keys():
            details |= {"expected_rows": nearest.rows, "found_rows": found.rows, **self._killed()}
        return Checked(wrong, converted, details)

    def _moments(self, tables: Tables) -> list[Sums]:
        """Return what the table summed up to at every moment of the run."""
        moments = [tables.expected_sums]
        if changing := self.meanwhile.changing:
            added = tables.sums_of_first_and_last_month
            for step in range(changing.steps):
                moments.append(moments[-1] + added[step % 2])
        return moments

    def _require_meanwhile(self) -> None:
        """Raise LabError where what was to happen meanwhile has not."""
        killing, changing = self.meanwhile.killing, self.meanwhile.changing
        if killing and not killing.killed:
            raise LabError(f"expected a worker to be killed, found none that had written; {killing.error}")
        if changing and not changing.steps:
            raise LabError(f"expected the table to be changed while it was read, found no change; {changing.error}")

    def _of_processes(self) -> Numbers:
        looking = self.meanwhile.looking
        if not looking or not looking.usage.processes:
            return {}
        return {"workers_peak_rss_bytes": looking.usage.peak_rss_bytes, "worker_processes": looking.usage.processes}

    def _killed(self) -> Numbers:
        return {"killed": int(bool(self.meanwhile.killing.killed))} if self.meanwhile.killing else {}

    def left(self, case: Case, job: DatabaseJob) -> Numbers:
        """Return how many rows a load left that failed after a worker was killed."""
        self.meanwhile.finish()
        if "kill" not in case.parameters or self.died(case):
            return {}
        tables = self._of(case)
        found = tables.rows_of(case.transport.system, job.table)
        return {"expected_rows": tables.dataset.rows, "found_rows": found, **self._killed()}

    def settle_engines(self) -> None:
        """End every process that a transport has left, and remove its files."""
        self.meanwhile.finish()
        if self.meanwhile.mark:
            marked.end(self.meanwhile.mark)
        if self.meanwhile.limit:
            memory_limit.remove(self.meanwhile.limit)
        self.meanwhile.forget()
        for folder in (self.unloaded, self.engines):
            shutil.rmtree(folder, ignore_errors=True)

    def settle(self, case: Case) -> None:
        self.settle_engines()
        if case.transport.system in SYSTEMS:
            self._of(case).discard_beside(case.transport.system)
        super().settle(case)


def lacking(case: Case) -> str:
    """Say what the room of the case's database lacks of what this rig asks of it; nothing where it has all."""
    system, parts = SYSTEMS.get(case.transport.system), ["sums"]
    parts += ["meanwhile"] if _MORE.keys() & case.parameters.keys() else []
    return next((reason for part in parts if system and (reason := system.lacks(part))), "")


def require_parameters(case: Case) -> None:
    """Raise LabError for a parameter that this rig does not know, or a value that it does not take."""
    needed = {"rows", "workers"} if case.transport.engine else {"rows"}
    if not needed <= case.parameters.keys() <= PARAMETERS:
        raise LabError(
            f"experiment {case.experiment}: expected the parameters {', '.join(sorted(needed))} and any of "
            f"{', '.join(sorted(PARAMETERS - needed))}, found {', '.join(sorted(case.parameters))}"
        )
    for name, values in _MORE.items():
        if name in case.parameters and case.parameters[name] not in values:
            raise LabError(
                f"experiment {case.experiment}: expected {name} to be {' or '.join(values)}, "
                f"found {case.parameters[name]}"
            )


@contextmanager
def opened(order: Order) -> Iterator[Rig[DatabaseJob, DatabaseAnswer]]:
    """Bring up the lab and its tables, and take them down again at the end. Raises LabError as `databases.opened`."""
    for case in order.cases:
        require_parameters(case)
    if named := cluster.of(order.settings):
        cluster.require_reached(named)
    with databases.servers_and_tables(order, 0, named) as rig, scratch.folder("cluster") as folder:
        for tables in rig.tables.values():
            for system in rig.lab.systems:
                tables.discard_beside(system)
        ours = ClusterRig(
            **vars(rig),
            settings=order.settings,
            unloaded=order.settings.results_dir / order.run_id / "unloaded",
            engines=Path(folder) / "engines",
        )
        try:
            yield ours
        finally:
            ours.settle_engines()
