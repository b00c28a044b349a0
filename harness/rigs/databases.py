"""The rig of database suites: a lab's servers, one dataset, and its tables in every database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from harness import labs
from harness.availability import reason_unavailable
from harness.contracts.databases import WARMUP_ROWS
from harness.datasets import store
from harness.labs import Lab
from harness.lock import busy
from harness.machine import filesystem
from harness.model import Case, Dataset, LabError, Operation, Server
from harness.rigs.rig import Order, Rig, dataset_facts, only_parameters
from harness.systems import postgres
from harness.systems.tables import SYSTEMS, Tables

_BYTES_A_ROW = 300  # upper bound of a row in the Arrow file by which a worker hands over what it read
PARAMETERS = frozenset({"rows"})


@dataclass(frozen=True)
class DatabaseRig:
    """Servers, dataset and tables; see `harness.rigs.rig.Rig`."""

    lab: Lab
    servers: dict[str, Server]
    dataset: Dataset
    kinds: dict[str, str]
    tables: Tables

    @property
    def kind(self) -> str:
        return self.lab.kind

    @property
    def secrets(self) -> Sequence[str]:
        return list(self.lab.endpoints.values())

    @property
    def headline(self) -> str:
        versions = ", ".join(f"{name} {server.version}" for name, server in self.servers.items())
        return f"lab: {self.lab.kind} ({versions}); {self.dataset.rows:,} rows of {self.dataset.name}"

    def facts(self) -> dict[str, Any]:
        servers = {
            name: {"version": server.version, "settings": server.settings} for name, server in self.servers.items()
        }
        return {
            "data": [dataset_facts(self.dataset)],
            "servers": servers,
            "server_filesystem": filesystem(self.lab.folder) if self.lab.folder else None,
        }

    def extent(self, case: Case) -> tuple[int, int | None]:
        return self.dataset.rows, None

    def room(self, case: Case) -> int:
        return self.dataset.rows * _BYTES_A_ROW

    def unavailable(self, case: Case) -> str | None:
        return reason_unavailable(case.transport, self.lab, self.servers)

    def prepare(self, case: Case) -> dict[str, Any]:
        entry = case.transport
        prepare = self.tables.for_write if entry.operation is Operation.WRITE else self.tables.for_read
        table, warmup_table = prepare(entry.system)
        return {
            "contract": "databases",
            "uri": SYSTEMS[entry.system].transport_uri(entry.endpoint, self.lab.endpoints[entry.endpoint]),
            "io": {"here": self.lab.io.here, "there": self.lab.io.there} if self.lab.io else None,
            "table": table,
            "warmup_table": warmup_table,
            "dataset": self.dataset.path,
            "kinds": self.kinds,
        }

    def differences(self, case: Case, job: dict[str, Any], answer: dict[str, Any]) -> list[str]:
        entry = case.transport
        if entry.operation is Operation.WRITE:
            return self.tables.differences_in_table(entry.system, job["table"])
        return self.tables.differences(pl.read_ipc(job["result"]))

    def died(self, case: Case) -> bool:
        return case.transport.system in self.lab.dead()

    def revive(self) -> list[str]:
        revived = self.lab.revive() if self.lab.dead() else []
        for system in revived:
            self.tables.forget(system)
        return revived

    def settle(self, case: Case) -> None:
        try:
            self.tables.settle(case.transport.system)
        except Exception:
            self.tables.forget(case.transport.system)
            raise


@contextmanager
def opened(order: Order) -> Iterator[Rig]:
    """Bring up the lab and its tables, and take them down again at the end.

    Raises LabError before anything is left behind: no server, another run on it, no disk, more than one dataset.
    """
    only_parameters(order.cases, PARAMETERS)
    asked = {(case.dataset, case.parameters["rows"]) for case in order.cases}
    if len(asked) > 1:
        raise LabError(f"expected one dataset and number of rows in a run on databases, found {sorted(asked)}")
    name, rows = asked.pop()
    with ExitStack() as stack:
        lab = stack.enter_context(labs.OPENED[order.lab](order.settings))
        servers = labs.check(lab)
        stack.enter_context(_only_run_on_server(lab, order.run_id))
        dataset, warmup = (
            store.ensure(order.settings.datasets_dir, name, int(count), order.seed) for count in (rows, WARMUP_ROWS)
        )
        spec = store.specification(name)
        tables = Tables(lab.endpoints, spec, dataset, warmup)
        stack.callback(lambda: tables.close(drop=tables.claimed and lab.kind != "embedded"))
        tables.claim(lab.systems)
        yield DatabaseRig(lab, servers, dataset, spec.kinds, tables)


@contextmanager
def _only_run_on_server(lab: Lab, run_id: str) -> Iterator[None]:
    """Keep runs from other machines off a shared Postgres server; our own embedded one nobody else knows."""
    if lab.kind == "embedded" or "postgres" not in lab.systems:
        yield
        return
    connection = postgres.open_connection(lab.endpoints)
    try:
        if holder := postgres.lock(connection, run_id):
            raise LabError(busy(holder))
        yield
    finally:
        connection.close()
