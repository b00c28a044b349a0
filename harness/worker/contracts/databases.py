"""Transports of databases: a frame into a table, or a table into a frame."""

import io
import os
from dataclasses import dataclass, field, replace
from typing import Any

from harness.check.canonical import NotConvertible, canonicalise, library_of, load_frame
from harness.machine import memory_limit, network_namespace
from harness.machine.memory_limit import MemoryLimit
from harness.model import Bucket, Operation, SharedFolder, Status, Transport, Workers
from harness.worker.contracts.calls import Calls, Imports
from harness.worker.messages import Answer, Failed, Job, Measured

WARMUP_ROWS = 1_000
SOURCES = {"table": False, "sorted table": True}  # frame of a write from a table: whether that is in key order


@dataclass(frozen=True)
class Addresses:
    """Where a transport connects to: the server, the folder and the bucket that it shares with that, and workers."""

    uri: str = field(repr=False)
    io: SharedFolder | None = None
    s3: Bucket | None = None
    workers: Workers | None = None


@dataclass(frozen=True, kw_only=True)
class DatabaseAnswer(Answer):
    """`converted` are the columns of a frame that came back with the dtypes they had; None where none did.

    `returned` is what a bound gives in place of a frame: rows thrown away, the 1 of a call, whether a copy is the same.
    """

    converted: dict[str, str] | None
    returned: Any = None


@dataclass(frozen=True, kw_only=True)
class DatabaseJob(Job[DatabaseAnswer]):
    """A dataset as Parquet, the logical types of its columns, and the tables to write, read or (`source`) copy from.

    Without addresses nothing is connected to; without `warmup_table` there is no warm-up. What loads is given the
    dataset itself and for its warm-up `warmup_dataset`; what unloads leaves its files in two folders. `limit` is
    one of memory, of all that follows the imports. `namespace` is the file of the network namespace to connect from,
    `certificate` that of the one certificate which is trusted over TLS (none: those of this machine).
    `clients` are workers that share it (0: nobody does), of which each that writes has its own one of `slices`.
    `environment` are variables for what it starts.
    """

    contract = "databases"

    dataset: str
    logical_types: dict[str, str]
    addresses: Addresses | None = None
    table: str = ""
    warmup_table: str = ""
    source: str = ""
    warmup_source: str = ""
    warmup_dataset: str = ""
    destination: str = ""
    warmup_destination: str = ""
    limit: MemoryLimit | None = None
    namespace: str = ""
    certificate: str = ""
    clients: int = 0
    slices: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def shared(self) -> list["DatabaseJob"]:
        """See `Job`; each leaves what it reads at a place of its own."""
        datasets = self.slices or [self.dataset] * self.clients
        return [
            replace(self, dataset=path, result=f"{self.result}-{place}", together=True, clients=0, slices=[])
            for place, path in enumerate(datasets, start=1)
        ]

    def answered_by(self) -> type[DatabaseAnswer]:
        return DatabaseAnswer


JOB = DatabaseJob
# What loads a frame, and for one that is read what makes it canonical: polars.
IMPORTS: Imports = {
    (Operation.WRITE, "polars"): ("polars",),
    (Operation.READ, "polars"): ("polars",),
    (Operation.WRITE, "pandas"): ("pandas", "pyarrow.parquet"),
    (Operation.READ, "pandas"): ("pandas", "pyarrow.parquet", "polars"),
    (Operation.COPY, "bytes"): ("polars",),
}


def calls(entry: Transport, job: DatabaseJob) -> Calls:
    """Return the calls: a write's on the frame loaded here and on its first 1,000 rows, a read's on two tables.

    Where the job has no table for it there is no warm-up. Bounds differ: a write from table to table is given the names
    of both, a copy bytes, a call nothing.
    """
    _settle_in(job)
    if entry.operation is Operation.COPY:
        frame = load_frame(job.dataset, "polars", job.logical_types)
        return Calls((), (_as_bytes(frame.head(WARMUP_ROWS)),), (_as_bytes(frame),))
    assert job.addresses
    connect: tuple[Any, ...] = (job.addresses.uri,)
    if "shared_io" in entry.needs:
        connect += (job.addresses.io,)
    if "s3" in entry.needs:
        connect += (job.addresses.s3,)
    if entry.engine:
        connect += (job.addresses.workers,)
    if entry.operation is Operation.CALL:
        return Calls(connect, (), ())
    if entry.operation is Operation.READ:
        return Calls(connect, (job.warmup_table,) if job.warmup_table else None, (job.table,))
    if entry.operation is Operation.LOAD:
        warmup_load = (job.warmup_dataset, job.warmup_table) if job.warmup_table else None
        return Calls(connect, warmup_load, (job.dataset, job.table))
    if entry.operation is Operation.UNLOAD:
        return Calls(connect, (job.warmup_table, job.warmup_destination), (job.table, job.destination))
    if entry.frame in SOURCES:
        return Calls(connect, (job.warmup_source, job.warmup_table), (job.source, job.table))
    frame = load_frame(job.dataset, entry.frame, job.logical_types)
    warmup = (frame.head(WARMUP_ROWS), job.warmup_table) if job.warmup_table else None
    return Calls(connect, warmup, (frame, job.table))


def _settle_in(job: DatabaseJob) -> None:
    """Give this process the limits and the surroundings of a job."""
    os.environ.update(job.environment)
    if job.limit:
        memory_limit.enter(job.limit)
    if job.namespace:
        network_namespace.enter(job.namespace)
    if job.certificate:
        os.environ["SSL_CERT_FILE"] = job.certificate  # where OpenSSL looks, and httpx before that


def _as_bytes(frame: Any) -> bytes:
    """Return a polars frame as an uncompressed Arrow file."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


def hand_over(entry: Transport, returned: Any, job: DatabaseJob, measured: Measured) -> DatabaseAnswer | Failed:
    """Leave the canonical frame of a read at `job.result`; nothing for a write, a load, or an unload that left files.

    Of a bound that throws away what it reads the number of rows is handed over, of a copy whether it is the same.
    """
    if entry.operation is Operation.WRITE:
        return DatabaseAnswer(measured=measured, converted={})
    if entry.operation in (Operation.LOAD, Operation.UNLOAD):
        return DatabaseAnswer(measured=measured, converted=None)
    if entry.operation is Operation.CALL or not entry.frame:
        return DatabaseAnswer(measured=measured, converted=None, returned=returned)
    if entry.operation is Operation.COPY:
        copied, data = bytes(returned), _as_bytes(load_frame(job.dataset, "polars", job.logical_types))
        copied_bytes: dict[str, int | float] = {"copied_bytes": len(data)}
        return DatabaseAnswer(measured=measured, converted=None, returned=copied == data, details=copied_bytes)
    try:
        if (found := library_of(returned)) != entry.frame:  # the conversion to the library it names was not timed
            return Failed(Status.ERROR, f"expected a {entry.frame} DataFrame, found one of {found}")
        frame, converted = canonicalise(returned, job.logical_types)
    except NotConvertible as error:
        return Failed(Status.MISMATCH, str(error))
    frame.write_ipc(job.result)
    return DatabaseAnswer(measured=measured, converted=converted)
