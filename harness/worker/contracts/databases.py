"""Transports of databases: a frame into a table, or a table into a frame."""

import io
import os
from dataclasses import dataclass, field, replace

from harness.check.canonical import NotConvertible, canonicalise, library_of, load_frame
from harness.machine import memory_limit, network_namespace
from harness.machine.memory_limit import MemoryLimit
from harness.model import Bucket, Frame, Operation, SharedFolder, Status, Transport, Workers
from harness.worker.contracts.calls import Calls, Imports
from harness.worker.messages import Answer, Failed, Job, Measured

WARMUP_ROWS = 1_000
SOURCES = {"table": False, "sorted table": True}  # frame of a write from a table -> whether the table is in key order


@dataclass(frozen=True)
class Addresses:
    """Where a transport connects: the server, the folder and bucket shared with it, and workers."""

    uri: str = field(repr=False)
    io: SharedFolder | None = None
    s3: Bucket | None = None
    workers: Workers | None = None


@dataclass(frozen=True, kw_only=True)
class DatabaseAnswer(Answer):
    """`converted` has the columns of a frame with other dtypes than canonical, and these; None without a frame.

    `returned` is a bound's result instead of a frame: discarded rows, the 1 of a call, or whether a copy is equal.
    """

    converted: dict[str, str] | None
    returned: Frame = None


@dataclass(frozen=True, kw_only=True)
class DatabaseJob(Job[DatabaseAnswer]):
    """A dataset as Parquet, its columns' logical types, and the tables to write, read or (`source`) copy from.

    Without addresses there is no connection; without `warmup_table` no warm-up. A load gets the dataset's file, and
    `warmup_dataset` for its warm-up. An unload leaves its files in two folders. `limit` limits the memory allocated
    after the imports. `namespace` is the file of the network namespace to connect from. `certificate` is the file of
    the only certificate that is trusted over TLS (None: the machine's). `clients` is the number of workers that share
    the job (0: not shared); each writer gets one of `slices`. `environment` are variables for processes that the job
    starts.
    """

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
        """See `Job`; each stores its result at a separate path."""
        datasets = self.slices or [self.dataset] * self.clients
        return [
            replace(self, dataset=path, result=f"{self.result}-{place}", together=True, clients=0, slices=[])
            for place, path in enumerate(datasets, start=1)
        ]


JOB = DatabaseJob
# polars loads a frame for a write, and makes the result of a read canonical.
IMPORTS: Imports = {
    (Operation.WRITE, "polars"): ("polars",),
    (Operation.READ, "polars"): ("polars",),
    (Operation.WRITE, "pandas"): ("pandas", "pyarrow.parquet"),
    (Operation.READ, "pandas"): ("pandas", "pyarrow.parquet", "polars"),
    (Operation.COPY, "bytes"): ("polars",),
}


def calls(entry: Transport, job: DatabaseJob) -> Calls:
    """Return the calls: a write's on the frame loaded here and on its first 1,000 rows, a read's on two tables.

    Without a warm-up table in the job there is no warm-up. Bounds differ: a write from table to table gets both names,
    a copy gets bytes, a call gets nothing.
    """
    _settle_in(job)
    if entry.operation is Operation.COPY:
        frame = load_frame(job.dataset, "polars", job.logical_types)
        return Calls((), (_as_bytes(frame.head(WARMUP_ROWS)),), (_as_bytes(frame),))
    assert job.addresses
    connect: tuple[object, ...] = (job.addresses.uri,)
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
    """Apply a job's limits and environment to this process."""
    os.environ.update(job.environment)
    if job.limit:
        memory_limit.enter(job.limit)
    if job.namespace:
        network_namespace.enter(job.namespace)
    if job.certificate:
        os.environ["SSL_CERT_FILE"] = job.certificate  # OpenSSL reads this, and httpx reads it first


def _as_bytes(frame: Frame) -> bytes:
    """Return a polars frame as an uncompressed Arrow file."""
    buffer = io.BytesIO()
    frame.write_ipc(buffer, compression="uncompressed")
    return buffer.getvalue()


def hand_over(entry: Transport, returned: Frame, job: DatabaseJob, measured: Measured) -> DatabaseAnswer | Failed:
    """Store the canonical frame of a read at `job.result`; nothing for a write, a load, or an unload to files.

    A bound that discards its rows hands over their number, a copy whether it is equal.
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
        if (found := library_of(returned)) != entry.frame:  # the conversion to the declared library was not timed
            return Failed(
                Status.ERROR,
                f"the transport returned a {found} DataFrame; by its name it must return a {entry.frame} one",
            )
        frame, converted = canonicalise(returned, job.logical_types)
    except NotConvertible as error:
        return Failed(Status.MISMATCH, str(error))
    frame.write_ipc(job.result)
    return DatabaseAnswer(measured=measured, converted=converted)
