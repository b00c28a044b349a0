"""The rig of database suites: a lab's servers, one dataset, and its tables in every database."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.datasets.user_data import data as user_data
from harness.datasets.user_data import mark
from harness.datasets.user_data.losses import Described, found_in
from harness.lab import labs
from harness.lab.cluster import Cluster
from harness.lab.labs import Lab, reason_unavailable
from harness.lab.object_stores import Objects, object_store
from harness.lab.reference import PATIENCE_SECONDS, References
from harness.lab.tables import SUMMED_ROWS, Tables, places
from harness.machine import scratch
from harness.machine.inventory import filesystem
from harness.machine.stopping import Patience
from harness.model import Bucket, Case, Operation, Server, Transport, Value
from harness.run.lock import only_run_on_server
from harness.run.rigs import networks, server_parameters
from harness.run.rigs.networks import Networks
from harness.run.rigs.objects import OnObjectStore
from harness.run.rigs.rig import (
    Checked,
    RunRequest,
    dataset_facts,
    only_parameters,
    stopping_where_not_ours,
)
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import SOURCES, WARMUP_ROWS, Addresses, DatabaseAnswer, DatabaseJob

REQUIRES: tuple[str, ...] = ()  # the lab's base dependencies include everything
_RECOVERY_SECONDS, _LOOK_SECONDS = 20.0, 0.1
_BYTES_A_ROW = 300  # upper bound of a row in the Arrow file with a worker's result
PARAMETERS = frozenset({"rows"})
OPTIONAL = (
    frozenset({"environment", "profile"}) | server_parameters.PARAMETERS | networks.PARAMETERS
)  # parameters that an experiment may have


@dataclass(frozen=True)
class DatabaseRig(OnObjectStore):
    """Servers, tables by dataset name and rows, and the S3 server (or the reason without one); see `Rig`.

    `named` is the cluster that the user named, in suites with workers. `configured` has the settings of whole servers.
    """

    lab: Lab
    servers: dict[str, Server]
    references: References
    tables: dict[tuple[str, int], Tables]
    objects: Objects | str
    bucket: str
    folder: Path
    networks: Networks
    named: Cluster | None = None
    configured: dict[str, dict[str, Value]] = field(default_factory=dict)
    _read: dict[str, int] = field(default_factory=dict)  # bytes read of each server's log

    @property
    def lab_name(self) -> str:
        return self.lab.name

    @property
    def secrets(self) -> Sequence[str]:
        return [*self.lab.endpoints.values(), *super().secrets]

    @property
    def headline(self) -> str:
        used = self.servers | self.networks.servers()
        whose = {name: f" of {one.program.partition(' ')[0]}" if one.program else "" for name, one in used.items()}
        versions = ", ".join(f"{name} {server.version}{whose[name]}" for name, server in used.items())
        sizes: dict[str, list[str]] = defaultdict(list)
        for name, rows in self.tables:
            sizes["your data" if name == user_data.NAME else name].append(f"{rows:,}")
        data = "; ".join(f"{' and '.join(rows)} rows of {name}" for name, rows in sizes.items())
        also = f"; installed here, not used: {', '.join(self.lab.not_used)}" if self.lab.not_used else ""
        return f"lab: {self.lab.name} ({versions}{also}); {data}"

    def facts(self) -> dict[str, object]:
        servers = {name: server.facts for name, server in (self.servers | self.networks.servers()).items()}
        return {
            "data": [dataset_facts(tables.dataset, tables.spec) for tables in self.tables.values()],
            "servers": servers | self.server_of_store(),
            "server_filesystem": filesystem(self.lab.folder) if self.lab.folder else None,
        }

    def on_s3(self, case: Case) -> bool:
        return "s3" in case.transport.needs

    def extent(self, case: Case) -> tuple[int, int | None]:
        rows = self._of(case).dataset.rows * server_parameters.readers(case)
        return 1 if case.transport.operation is Operation.CALL else rows, None

    def room(self, case: Case) -> int:
        tables = self._of(case)
        return server_parameters.readers(case) * tables.dataset.rows * max(_BYTES_A_ROW, tables.spec.bytes_a_row)

    def described(self) -> dict[str, Described]:
        of_lab = {name: one for (name, _), one in self.tables.items() if one.spec.columns and not one.spec.private}
        return {name: found_in(one.dataset.path, one.logical_types) for name, one in of_lab.items()}

    def unavailable(self, case: Case) -> str | None:
        no_s3 = self.objects if isinstance(self.objects, str) else None
        entry, named, environment = case.transport, self.named, case.environment
        lacking = reason_unavailable(entry, self.lab, self.servers, no_s3, named, environment)
        return lacking or server_parameters.unavailable(case, self.lab) or self.networks.unavailable(case)

    def prepare(self, case: Case) -> DatabaseJob:
        entry, tables = case.transport, self._of(case)
        job = DatabaseJob(transport=entry.id, dataset=tables.dataset.path, logical_types=tables.logical_types)
        if entry.operation is Operation.COPY:
            return job
        with stopping_where_not_ours(self.lab.name):
            self.references.greet(entry.system)
        self._greet(case)
        server_parameters.configure(case, self.lab, self.references, self.configured)
        pids = [pid for name, pid in self.lab.pids().items() if name == entry.system]
        reached = addresses(entry, self.lab, self.objects, self.bucket)
        job = self._with_tables(case, replace(job, server_pids=pids, addresses=reached))
        return self.networks.put(case, server_parameters.with_parameters(case, job, tables, self.folder))

    def _of(self, case: Case) -> Tables:
        return self.tables[case.dataset, int(case.parameters["rows"])]

    def _with_tables(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        """Add the tables that a case writes, reads or copies from to its job, empty or filled as needed."""
        entry, system, tables = case.transport, case.transport.system, self._of(case)
        if entry.operation is Operation.CALL:
            return job
        if entry.operation is Operation.READ:
            table, warmup_table = tables.for_read(system)
            return replace(job, logical_types=tables.read_logical_types(system), table=table, warmup_table=warmup_table)
        if entry.frame in SOURCES:
            source, warmup_source = tables.for_copying(system, in_key_order=SOURCES[entry.frame])
            job = replace(job, source=source, warmup_source=warmup_source)
        table, warmup_table = tables.for_write(system, str(case.parameters.get("profile", PLAIN)))
        return replace(job, table=table, warmup_table=warmup_table)

    def between(self, case: Case, job: DatabaseJob) -> None:
        """Empty the table that a call has written."""
        if case.transport.operation is Operation.WRITE:
            self._of(case).empty(case.transport.system, job.table)

    def check(self, case: Case, job: DatabaseJob, answer: DatabaseAnswer) -> Checked:
        """Compare every value of a written table or a returned frame; for a bound its result."""
        details = server_parameters.details(case, job, self._of(case))  # before the table is read
        lost = server_parameters.lost_before(case, job, self._of(case))
        compared = self._compared(case, job, answer)
        return replace(compared, wrong=[*lost, *compared.wrong], details=compared.details | details)

    def _compared(self, case: Case, job: DatabaseJob, answer: DatabaseAnswer) -> Checked:
        entry, tables = case.transport, self._of(case)
        details = self.networks.after(case, answer.measured.details)
        if entry.operation is Operation.WRITE:
            wrong = tables.differences_in_table(entry.system, job.table, entry.frame)
            return Checked(wrong, details=details)
        if job.clients and answer.converted is not None:
            return Checked(server_parameters.found_in_files(tables, job, entry.frame), answer.converted, details)
        if answer.converted is not None:
            wrong = tables.differences_in_file(job.result, entry.frame)
            return Checked(wrong, answer.converted, details)
        known = {Operation.CALL: 1, Operation.COPY: True}.get(entry.operation, tables.dataset.rows)
        wrong = [] if answer.returned == known else [f"expected {known}, found {answer.returned}"]
        return Checked(wrong, None, details)

    def died(self, case: Case) -> bool:
        return case.transport.system in self.lab.dead() or super().died(case) or self.networks.died(case)

    def revive(self) -> list[str]:
        while self.references.hung:
            self.lab.end(self.references.hung.pop())
        revived = self.lab.revive() if self.lab.dead() else []
        for system in revived:
            self.references.forget(system)
        return [*revived, *self.networks.revive(), *super().revive()]

    def disturbed(self, case: Case) -> str:
        system = case.transport.system
        if system not in SYSTEMS or not (line := self._line_of_a_kill(system)):
            return ""
        self.references.forget(system)  # tables without a log, such as those to copy from, are empty after a crash
        patience = Patience(_RECOVERY_SECONDS)
        while patience.left() > 0:
            with suppress(Exception):  # the server reports that it recovers
                self.references.greet(system)
                break
            time.sleep(_LOOK_SECONDS)
        return f"a process of the {system} server was killed: {line}"

    def _line_of_a_kill(self, system: str) -> str:
        """Return the first new line of a server's log that reports a killed process."""
        log, words = self.lab.log(system), SYSTEMS[system].killed
        if log is None or not words:
            return ""
        with log.open("rb") as file:
            file.seek(self._read.get(system, 0))
            lines = file.read().decode(errors="replace").splitlines()
            self._read[system] = file.tell()
        return next((line.partition("LOG:")[2].strip() for line in lines if re.search(words, line)), "")

    def settle(self, case: Case) -> None:
        if case.transport.system not in SYSTEMS:
            return
        try:
            self._of(case).settle(case.transport.system)
        except Exception:
            self.references.forget(case.transport.system)
            raise


def addresses(entry: Transport, lab: Lab, objects: Objects | str, bucket: str) -> Addresses:
    """Return the part of a job with the addresses to connect to."""
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint])
    if "s3" not in entry.needs or isinstance(objects, str):
        return Addresses(uri, lab.io)
    return Addresses(uri, lab.io, Bucket(**asdict(objects.store), bucket=bucket))


def require_parameters(case: Case) -> None:
    """Raise LabError for parameters that this rig does not know or lacks, or an invalid value."""
    only_parameters([case], PARAMETERS | (OPTIONAL & case.parameters.keys()))
    server_parameters.require_values(case)
    networks.never(case)  # raises LabError for invalid values


@contextmanager
def opened(
    request: RunRequest,
    summed_above: int = SUMMED_ROWS,
    named: Cluster | None = None,
    require: Callable[[Case], None] = require_parameters,
) -> Iterator[DatabaseRig]:
    """Bring up the lab and its tables, and remove them at the end; more than `summed_above` rows are compared by sums.

    `named` is the cluster that the user named, `require` judges the parameters of a case.

    Raises LabError before anything is left behind: no server, another run on it, no disk space, too many datasets.
    """
    for case in request.cases:
        require(case)
    asked = sorted({(case.dataset, int(case.parameters["rows"])) for case in request.cases})
    found_places = places(asked)
    needed = [name for name in SYSTEMS if any(case.transport.system == name for case in request.cases)]
    with ExitStack() as stack:
        lab = stack.enter_context(labs.OPENED[request.lab](request.settings, needed or SYSTEMS))
        servers = labs.check(lab)
        stack.enter_context(only_run_on_server(lab, request.run_id))
        references = References(lab.endpoints, max(request.plan.time_limit, PATIENCE_SECONDS))
        folder = Path(stack.enter_context(scratch.folder("own")))
        tables = {
            of: _tables(request, references, *of, place, folder, summed_above) for of, place in found_places.items()
        }
        of_systems = dict.fromkeys((c.dataset, c.parameters["rows"], c.transport.system) for c in request.cases)
        for name, rows, system in of_systems:
            if (spec := tables[name, int(rows)].spec).columns and system in SYSTEMS:
                SYSTEMS[system].tables.definition(spec, PLAIN)  # raises LabError before any table is created
        claimed: list[str] = []
        stack.callback(_close, references, list(tables.values()), lab, claimed, request.say)
        for system in lab.systems:
            for one in {name: one for (name, _), one in tables.items()}.values():
                one.claim(system)
            claimed.append(system)
        own = [(int(rows), system) for name, rows, system in of_systems if name == user_data.NAME and system in SYSTEMS]
        for system, rows in {system: rows for rows, system in sorted(own)}.items():  # the largest number of rows
            tables[user_data.NAME, rows].require_held(system)
        # Compile or start the other services only for cases that can run; the rest have reported their reason.
        rig = DatabaseRig(lab, servers, references, tables, "", "", folder, Networks(""), named)
        can_run = [case for case in request.cases if not rig.unavailable(case)]
        on_s3 = sorted({case.transport.id for case in can_run if "s3" in case.transport.needs})
        objects, bucket = stack.enter_context(object_store(request.settings, on_s3, request.run_id, request.say))
        linked = stack.enter_context(networks.linked(request.settings, lab, can_run, request.say))
        yield replace(rig, objects=objects, bucket=bucket, networks=linked)


def _tables(
    request: RunRequest, references: References, name: str, rows: int, place: int, folder: Path, summed_above: int
) -> Tables:
    if request.user_data and name == user_data.NAME:
        key = mark.key_in(request.settings.state_dir)
        dataset, warmup = (
            request.user_data.dataset(folder, min(count, request.user_data.rows), key) for count in (rows, WARMUP_ROWS)
        )
        return Tables(references, request.user_data.specification, dataset, warmup, place)
    dataset, warmup = (
        store.ensure(request.settings.datasets_dir, name, count, request.plan.seed) for count in (rows, WARMUP_ROWS)
    )
    return Tables(references, store.specification(name), dataset, warmup, place, summed_above)


def _close(
    references: References, tables: Sequence[Tables], lab: Lab, claimed: Sequence[str], say: Callable[[str], None]
) -> None:
    def tidy(system: str) -> None:
        for one in tables if system in claimed and lab.name != "embedded" else ():
            one.drop(system)

    for system in references.close(tidy):
        if lab.name != "embedded":
            say(f"{system}: tables of this run could not be dropped; the next run on this server drops them")
