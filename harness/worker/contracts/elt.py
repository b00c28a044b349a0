"""Transports of many files into one: a folder or prefix of CSV files becomes one Parquet file, here or on S3."""

from dataclasses import asdict, dataclass

from harness.model import Frame, ObjectStore, Transport
from harness.worker.contracts.calls import Calls
from harness.worker.messages import Answer, Job, Measured


@dataclass(frozen=True, kw_only=True)
class EltJob(Job[Answer]):
    """A scratch folder for engines, the S3 server if one is used, the source and the destination."""

    folder: str
    s3: ObjectStore | None
    source: str
    destination: str
    warmup_source: str
    warmup_destination: str


JOB = EltJob


def calls(entry: Transport, job: EltJob) -> Calls:
    """Return the calls on a small tree and on the tree; `connect` gets a scratch folder and the S3 server."""
    connect = (job.folder, job.s3 and asdict(job.s3))
    return Calls(connect, (job.warmup_source, job.warmup_destination), (job.source, job.destination))


def hand_over(entry: Transport, returned: Frame, job: EltJob, measured: Measured) -> Answer:
    """Add nothing: the parent finds the file at the requested path."""
    return Answer(measured=measured)
