"""The rig of database suites: a lab's servers, one dataset, and its tables in every database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab import labs, object_stores
from harness.lab.availability import reason_unavailable
from harness.lab.labs import Lab
from harness.lab.object_stores import Objects
from harness.lab.reference import PATIENCE_SECONDS, answered
from harness.lab.tables import Tables
from harness.machine.inventory import filesystem
from harness.model import Bucket, Case, Dataset, LabError, Operation, Server, Transport
from harness.run.lock import busy
from harness.run.rigs.rig import Checked, Order, Rig, dataset_facts, only_parameters, stopping_where_not_ours
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import SOURCES, WARMUP_ROWS, Addresses, DatabaseAnswer, DatabaseJob

_BYTES_A_ROW = 300  # upper bound of a row in the Arrow file by which a worker hands over what it read
PARAMETERS = frozenset({"rows"})
WITH_PROFILE = PARAMETERS | {"profile"}


@dataclass(frozen=True)
class DatabaseRig:
    """Servers, dataset, tables, and the S3 server (or why there is none); see `harness.run.rigs.rig.Rig`."""

    lab: Lab
    servers: dict[str, Server]
    dataset: Dataset
    kinds: dict[str, str]
    tables: Tables
    objects: Objects | str
    bucket: str

    @property
    def lab_name(self) -> str:
        return self.lab.kind

    @property
    def secrets(self) -> Sequence[str]:
        store = [] if isinstance(self.objects, str) else [self.objects.store.secret_key]
        return [*self.lab.endpoints.values(), *store]

    @property
    def headline(self) -> str:
        versions = ", ".join(f"{name} {server.version}" for name, server in self.servers.items())
        return f"lab: {self.lab.kind} ({versions}); {self.dataset.rows:,} rows of {self.dataset.name}"

    def facts(self) -> dict[str, Any]:
        servers = {
            name: {"version": server.version, "settings": server.settings} for name, server in self.servers.items()
        }
        if not isinstance(self.objects, str):
            servers["s3"] = {"version": self.objects.server.version, "settings": self.objects.server.settings}
        return {
            "data": [dataset_facts(self.dataset)],
            "servers": servers,
            "server_filesystem": filesystem(self.lab.folder) if self.lab.folder else None,
        }

    def extent(self, case: Case) -> tuple[int, int | None]:
        return 1 if case.transport.operation is Operation.CALL else self.dataset.rows, None

    def room(self, case: Case) -> int:
        return self.dataset.rows * _BYTES_A_ROW

    def unavailable(self, case: Case) -> str | None:
        no_s3 = self.objects if isinstance(self.objects, str) else None
        return reason_unavailable(case.transport, self.lab, self.servers, no_s3)

    def prepare(self, case: Case) -> DatabaseJob:
        entry = case.transport
        job = DatabaseJob(transport=entry.id, dataset=self.dataset.path, kinds=self.kinds)
        if entry.operation is Operation.COPY:
            return job
        self._greet(entry)
        pids = [pid for name, pid in self.lab.pids().items() if name == entry.system]
        reached = addresses(entry, self.lab, self.objects, self.bucket)
        return self._with_tables(case, replace(job, server_pids=pids, addresses=reached))

    def _greet(self, entry: Transport) -> None:
        """See that what a transport talks to answers. Raises NoAnswer, or Stop where it is not ours to bring back."""
        with stopping_where_not_ours(self.lab.kind):
            self.tables.greet(entry.system)
        if objects := self._store(entry):
            with stopping_where_not_ours(objects.kind):
                objects.greet(objects.store)

    def _store(self, entry: Transport) -> Objects | None:
        return None if isinstance(self.objects, str) or "s3" not in entry.needs else self.objects

    def _with_tables(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        """Add the tables that a case writes, reads or copies from to its job, empty or filled as it needs them."""
        entry, system = case.transport, case.transport.system
        if entry.operation is Operation.CALL:
            return job
        if entry.operation is Operation.READ:
            table, warmup_table = self.tables.for_read(system)
            return replace(job, table=table, warmup_table=warmup_table)
        if entry.frame in SOURCES:
            source, warmup_source = self.tables.for_copying(system, in_key_order=SOURCES[entry.frame])
            job = replace(job, source=source, warmup_source=warmup_source)
        table, warmup_table = self.tables.for_write(system, str(case.parameters.get("profile", PLAIN)))
        return replace(job, table=table, warmup_table=warmup_table)

    def check(self, case: Case, job: DatabaseJob, answer: DatabaseAnswer) -> Checked:
        """Compare every value of a table that was written or of a frame that was read; of a bound what it returned."""
        entry = case.transport
        if entry.operation is Operation.WRITE:
            return Checked(self.tables.differences_in_table(entry.system, job.table))
        if answer.converted is not None:
            return Checked(self.tables.differences(pl.read_ipc(job.result)), answer.converted)
        known = {Operation.CALL: 1, Operation.COPY: True}.get(entry.operation, self.dataset.rows)
        return Checked([] if answer.returned == known else [f"expected {known}, found {answer.returned}"], None)

    def died(self, case: Case) -> bool:
        store = self._store(case.transport)
        return case.transport.system in self.lab.dead() or bool(store and store.dead())

    def revive(self) -> list[str]:
        while self.tables.hung:
            self.lab.end(self.tables.hung.pop())
        revived = self.lab.revive() if self.lab.dead() else []
        for system in revived:
            self.tables.forget(system)
        return revived if isinstance(self.objects, str) else [*revived, *self.objects.revive()]

    def settle(self, case: Case) -> None:
        if case.transport.system not in SYSTEMS:
            return
        try:
            self.tables.settle(case.transport.system)
        except Exception:
            self.tables.forget(case.transport.system)
            raise


def addresses(entry: Transport, lab: Lab, objects: Objects | str, bucket: str) -> Addresses:
    """Return the part of a job that says where the transport connects to."""
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint])
    if "s3" not in entry.needs or isinstance(objects, str):
        return Addresses(uri, lab.io)
    return Addresses(uri, lab.io, Bucket(**asdict(objects.store), bucket=bucket))


@contextmanager
def opened(order: Order) -> Iterator[Rig[DatabaseJob, DatabaseAnswer]]:
    """Bring up the lab and its tables, and take them down again at the end.

    Raises LabError before anything is left behind: no server, another run on it, no disk, more than one dataset.
    """
    for case in order.cases:
        only_parameters([case], WITH_PROFILE if "profile" in case.parameters else PARAMETERS)
    asked = {(case.dataset, case.parameters["rows"]) for case in order.cases}
    if len(asked) > 1:
        raise LabError(f"expected one dataset and number of rows in a run on databases, found {sorted(asked)}")
    name, rows = asked.pop()
    with ExitStack() as stack:
        lab = stack.enter_context(labs.OPENED[order.lab](order.settings))
        servers = labs.check(lab)
        stack.enter_context(only_run_on_server(lab, order.run_id))
        dataset, warmup = (
            store.ensure(order.settings.datasets_dir, name, int(count), order.seed) for count in (rows, WARMUP_ROWS)
        )
        spec = store.specification(name)
        tables = Tables(lab.endpoints, spec, dataset, warmup, max(order.time_limit, PATIENCE_SECONDS))
        stack.callback(_close, tables, lab, order.say)
        tables.claim(lab.systems)
        used = any("s3" in case.transport.needs for case in order.cases)
        objects, bucket = stack.enter_context(object_store(order.settings, used, order.run_id, order.say))
        yield DatabaseRig(lab, servers, dataset, spec.kinds, tables, objects, bucket)


def _close(tables: Tables, lab: Lab, say: Callable[[str], None]) -> None:
    for system in tables.close(drop=tables.claimed and lab.kind != "embedded"):
        if lab.kind != "embedded":
            say(f"{system}: tables of this run could not be dropped; the next run on this server drops them")


@contextmanager
def object_store(
    settings: Settings, used: bool, run_id: str, say: Callable[[str], None]
) -> Iterator[tuple[Objects | str, str]]:
    """Yield the S3 server and a bucket on it, or the reason why there is none; none is started that nobody uses."""
    if not used:
        yield "no way of this run uses an S3 server", ""
        return
    with object_stores.opened(settings, False, say) as objects:
        if isinstance(objects, str):
            yield objects, ""
            return
        with objects.bucket(run_id, say) as bucket:
            yield objects, bucket


@contextmanager
def only_run_on_server(lab: Lab, run_id: str) -> Iterator[None]:
    """Keep runs from other machines off shared servers that can be held; our own embedded ones nobody else knows."""
    with ExitStack() as stack:
        for name in lab.systems if lab.kind != "embedded" else ():
            client = SYSTEMS[name].client
            connection = answered(name, partial(client.open_connection, lab.endpoints))
            stack.callback(connection.close)
            if holder := answered(name, partial(client.hold, connection, run_id)):
                raise LabError(busy(holder))
        yield
