"""The rig of suites that load and unload in pieces, in one process or with workers; tables as in `databases`.

During a run it watches the workers' processes. In some experiments it kills one of them (`kill`), changes the table
that is read (`change`) or limits the memory (`memory_mb`).
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq

from harness.check import sums, unloaded
from harness.check.sums import Sums
from harness.datasets.specification import PLAIN
from harness.lab import cluster
from harness.lab.tables import Tables
from harness.machine import marked, memory_limit, scratch
from harness.machine.marked import Connection, Connections, Usage, processes
from harness.model import Case, LabError, Operation
from harness.model import Connection as ClientConnection
from harness.run.rigs import databases
from harness.run.rigs.databases import DatabaseRig
from harness.run.rigs.rig import LIMIT, Checked, Rig, RunRequest, wrong_parameters, wrong_value
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.systems.system import System
from harness.worker.contracts.databases import WARMUP_ROWS, DatabaseAnswer, DatabaseJob
from harness.worker.messages import Numbers

# The lab's actions during a transport's call: watch its processes, kill one, change a table.

_END_SECONDS = 10.0
_LOOK_SECONDS = 0.5  # between two checks of processes' memory; a check takes milliseconds per process
_AWAIT_SECONDS = 0.02  # between two checks for the first connection: a starting engine needs the cores itself
_KILL_SECONDS = 0.0005  # between two checks after that
_CHANGE_SECONDS = 0.05
# Words in the command lines of an engine's driver processes: killing one would end the program.
_DRIVERS = ("org.apache.spark.deploy.SparkSubmit",)


class DuringCall(threading.Thread):
    """A thread next to a run: `step` repeats until it returns True or the run is over.

    `connection` is its own database connection, which it closes at its end.
    """

    def __init__(self, seconds: float, connection: ClientConnection = None) -> None:
        super().__init__(daemon=True)
        self._seconds, self._over, self.error = seconds, threading.Event(), ""
        self._connection = connection

    def step(self) -> bool:
        """Do one step; True when there is nothing more to do."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            while not self._over.is_set() and not self.step():
                self._over.wait(self._seconds)
        except Exception as error:  # the server died during it, or refused
            self.error = f"{type(error).__name__}: {error}"

    def finish(self) -> None:
        """End it."""
        self._over.set()
        if self.is_alive():
            self.join(_END_SECONDS)
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Looking(DuringCall):
    """Watches the memory of all processes that carry a mark."""

    def __init__(self, mark: str) -> None:
        super().__init__(_LOOK_SECONDS)
        self._mark, self.usage = mark, Usage()

    def step(self) -> bool:
        self.usage.look(processes(self._mark))
        return False


class Killing(DuringCall):
    """Kills one of the processes that carry a mark, before or after it has committed its write to a database.

    A process that is to be killed after its commit must not report the commit to its engine first. It is therefore
    stopped during each check, and runs for half a millisecond between two checks. `killed` is its pid, 0 before the
    kill.
    """

    def __init__(self, system: System, endpoints: dict[str, str], mark: str, moment: str) -> None:
        super().__init__(_AWAIT_SECONDS, system.client.open_connection(endpoints))
        self._moment, self.killed = moment, 0
        self._told: list[int] = []  # processes that have committed and read the answer
        self._connections = Connections(mark, system.ports(endpoints), _DRIVERS)
        self._watch = system.concurrent_changes.watch(self._connection)

    def step(self) -> bool:
        opened = self._connections.now()
        if opened:
            self._seconds = _KILL_SECONDS
        elif self._seconds == _AWAIT_SECONDS:
            return False  # no process can have written yet
        stopped = {one.pid for one in opened} if self._moment == "after" else set()
        for pid in stopped:
            _sent(pid, signal.SIGSTOP)
        try:
            opened = self._connections.now() if stopped else opened
            writing, committed = self._watch.look(opened)
            found = writing if self._moment == "before" else self._of_committed(writing, committed, opened)
            self.killed = next((pid for pid in found if _sent(pid, signal.SIGKILL)), 0)
        finally:
            for pid in stopped - {self.killed}:
                _sent(pid, signal.SIGCONT)
        return bool(self.killed)

    def _of_committed(self, writing: list[int], committed: list[int], opened: Sequence[Connection]) -> list[int]:
        """Return the process to kill: one that has not read the server's answer, or at last one that has."""
        unread = {one.pid for one in opened if one.unread}
        self._told += [pid for pid in committed if pid not in unread]
        certain = [pid for pid in committed if pid in unread]
        return certain or ([] if writing else self._told)


def _sent(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process and return whether it still existed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Changing(DuringCall):
    """Changes a table while it is read, from the first file in the folder `begins`.

    `what` are the table, the small one and the date column, `steps` the changes so far.
    """

    def __init__(self, system: System, endpoints: dict[str, str], what: tuple[str, str, str], begins: Path) -> None:
        super().__init__(_CHANGE_SECONDS, system.client.open_connection(endpoints))
        self._change: Callable[..., object] = system.concurrent_changes.change
        self._what, self._begins, self.steps = what, begins, 0

    def step(self) -> bool:
        if self.steps or any(self._begins.iterdir()):
            self._change(self._connection, *self._what, self.steps)
            self.steps += 1
        return False


REQUIRES: tuple[str, ...] = ()  # the lab's base dependencies include everything
_MORE: dict[str, tuple[str, ...]] = {"kill": ("before", "after"), "change": ("during",)}  # parameters and their values
PARAMETERS = frozenset({"rows", "workers", "profile", LIMIT, *_MORE})
# For an untimed run: JVMs compile quickly and optimize little, which halves an engine's CPU time at start.
_OF_THE_KILLED = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
WARMUP_PARTS = 8  # parts of an engine's warm-up load
_PARTS = (Operation.LOAD, Operation.UNLOAD)


@dataclass
class UnderWay:
    """Background activity of the current run, and the objects created for it."""

    mark: str = ""
    limit: memory_limit.MemoryLimit | None = None
    looking: Looking | None = None
    killing: Killing | None = None
    changing: Changing | None = None

    @property
    def threads(self) -> list[DuringCall]:
        """The background activity, which starts with the run."""
        return [thread for thread in (self.looking, self.killing, self.changing) if thread]

    def finish(self) -> None:
        """End the background activity."""
        for thread in self.threads:
            thread.finish()

    def forget(self) -> None:
        """Reset for the next run."""
        self.mark, self.limit, self.looking, self.killing, self.changing = "", None, None, None, None


@dataclass(frozen=True, kw_only=True)
class ClusterRig(DatabaseRig):
    """A database rig, with a folder for unloaded files and one for engines' files; see `Rig`."""

    settings: Settings
    unloaded: Path
    engines: Path
    concurrent: UnderWay = field(default_factory=UnderWay)

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
        entry, concurrent = case.transport, self.concurrent
        concurrent.mark = uuid.uuid4().hex
        if megabytes := case.parameters.get(LIMIT):
            concurrent.limit = memory_limit.make(int(megabytes) * 1_000_000)
        job = replace(job, mark=concurrent.mark, limit=concurrent.limit)
        if entry.engine and job.addresses:
            self.engines.mkdir(exist_ok=True)
            number = int(case.parameters.get("workers", 1))
            workers = cluster.workers(self.settings, entry, number, job.addresses.uri, str(self.engines))
            job = replace(job, addresses=replace(job.addresses, workers=workers))
            concurrent.looking = Looking(concurrent.mark)
        system = SYSTEMS.get(entry.system)
        if system and (moment := case.parameters.get("kill")):
            # No worker is killed in a warm-up.
            job = replace(job, warmup_table="", environment=_OF_THE_KILLED)
            concurrent.killing = Killing(system, self.lab.endpoints, concurrent.mark, str(moment))
        if system and "change" in case.parameters:
            what = (job.table, job.warmup_table, self._of(case).spec.month)
            concurrent.changing = Changing(system, self.lab.endpoints, what, Path(job.warmup_destination))
        for thread in concurrent.threads:
            thread.start()
        return job

    def _with_tables(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        entry, tables, profile = case.transport, self._of(case), str(case.parameters.get("profile", PLAIN))
        if entry.operation is Operation.LOAD:
            if "kill" in case.parameters:  # a key would refuse repeated rows, which this experiment counts
                profile = SYSTEMS[entry.system].concurrent_changes.PROFILE
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
        """Write a file again with more row groups than there are workers, so that each worker warms up."""
        divided = self.unloaded / "warmup.parquet"
        divided.parent.mkdir(parents=True)
        pq.write_table(pq.read_table(path), divided, row_group_size=WARMUP_ROWS // WARMUP_PARTS)
        return str(divided)

    def check(self, case: Case, job: DatabaseJob, answer: DatabaseAnswer) -> Checked:
        """Compare the sums of the loaded or unloaded rows with the dataset's."""
        self.concurrent.finish()
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
        """Return the table's sums at every time of the run."""
        moments = [tables.expected_sums]
        if changing := self.concurrent.changing:
            added = tables.sums_of_first_and_last_month
            for step in range(changing.steps):
                moments.append(moments[-1] + added[step % 2])
        return moments

    def _require_meanwhile(self) -> None:
        """Raise LabError if the planned change or kill did not happen."""
        killing, changing = self.concurrent.killing, self.concurrent.changing
        if killing and not killing.killed:
            raise LabError(f"no worker was killed, because none had written; {killing.error}")
        if changing and not changing.steps:
            raise LabError(f"the table was not changed while it was read; {changing.error}")

    def _of_processes(self) -> Numbers:
        looking = self.concurrent.looking
        if not looking or not looking.usage.processes:
            return {}
        return {"workers_peak_rss_bytes": looking.usage.peak_rss_bytes, "worker_processes": looking.usage.processes}

    def _killed(self) -> Numbers:
        return {"killed": int(bool(self.concurrent.killing.killed))} if self.concurrent.killing else {}

    def left(self, case: Case, job: DatabaseJob) -> Numbers:
        """Return how many rows remained after a load that failed because a worker was killed."""
        self.concurrent.finish()
        if "kill" not in case.parameters or self.died(case):
            return {}
        tables = self._of(case)
        found = tables.rows_of(case.transport.system, job.table)
        return {"expected_rows": tables.dataset.rows, "found_rows": found, **self._killed()}

    def settle_engines(self) -> None:
        """End every process that a transport left behind, and remove its files."""
        self.concurrent.finish()
        if self.concurrent.mark:
            marked.end(self.concurrent.mark)
        if self.concurrent.limit:
            memory_limit.remove(self.concurrent.limit)
        self.concurrent.forget()
        for folder in (self.unloaded, self.engines):
            shutil.rmtree(folder, ignore_errors=True)

    def settle(self, case: Case) -> None:
        self.settle_engines()
        if case.transport.system in SYSTEMS:
            self._of(case).discard_beside(case.transport.system)
        super().settle(case)


def lacking(case: Case) -> str:
    """Name the module that this rig needs and the case's database package lacks; empty if it has everything."""
    system, parts = SYSTEMS.get(case.transport.system), ["sums"]
    parts += ["concurrent_changes"] if _MORE.keys() & case.parameters.keys() else []
    return next((reason for part in parts if system and (reason := system.lacks(part))), "")


def require_parameters(case: Case) -> None:
    """Raise LabError for an unknown parameter of this rig, or an invalid value."""
    needed = {"rows", "workers"} if case.transport.engine else {"rows"}
    if not needed <= case.parameters.keys() <= PARAMETERS:
        raise wrong_parameters(case, needed, PARAMETERS - needed)
    for name, values in _MORE.items():
        if name in case.parameters and case.parameters[name] not in values:
            raise wrong_value(case, name, " or ".join(values))


@contextmanager
def opened(request: RunRequest) -> Iterator[Rig[DatabaseJob, DatabaseAnswer]]:
    """Bring up the lab and its tables, and remove them at the end. Raises LabError as `databases.opened`."""
    if named := cluster.of(request.settings):
        cluster.require_reached(named)
    with databases.opened(request, 0, named, require_parameters) as rig, scratch.folder("cluster") as folder:
        for tables in rig.tables.values():
            for system in rig.lab.systems:
                tables.discard_beside(system)
        ours = ClusterRig(
            **vars(rig),
            settings=request.settings,
            unloaded=request.settings.results_dir / request.run_id / "unloaded",
            engines=Path(folder) / "engines",
        )
        try:
            yield ours
        finally:
            ours.settle_engines()
