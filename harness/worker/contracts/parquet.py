"""Transports of Parquet files: a list of files into the number of rows that match a filter."""

from dataclasses import dataclass

from harness.model import Frame, Status, Transport
from harness.worker.contracts.calls import Calls
from harness.worker.messages import Answer, Failed, Job, Measured


@dataclass(frozen=True, kw_only=True)
class ParquetAnswer(Answer):
    """The number of matching rows."""

    count: int


@dataclass(frozen=True, kw_only=True)
class ParquetJob(Job[ParquetAnswer]):
    """A scratch folder for engines, and the files."""

    folder: str
    files: list[str]
    warmup_files: list[str]


JOB = ParquetJob


def calls(entry: Transport, job: ParquetJob) -> Calls:
    """Return the calls on the warm-up files and on the files; `connect` gets a scratch folder."""
    return Calls((job.folder,), (job.warmup_files,), (job.files,))


def hand_over(entry: Transport, returned: Frame, job: ParquetJob, measured: Measured) -> ParquetAnswer | Failed:
    """Put the number into the answer."""
    if type(returned) is not int:
        return Failed(Status.ERROR, f"the transport returned {returned!r:.80}; return the number of rows, an int")
    return ParquetAnswer(measured=measured, count=returned)
