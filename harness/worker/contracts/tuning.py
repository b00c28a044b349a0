"""Transports of jobs: each gets the arguments it names and returns an answer that the parent can check."""

from dataclasses import asdict, dataclass

from harness.model import Frame, ObjectStore, Status, Transport, Value
from harness.worker.contracts.calls import Calls
from harness.worker.messages import Answer, Failed, Job, Measured


@dataclass(frozen=True, kw_only=True)
class TuningAnswer(Answer):
    """The transport's result, which the parent can check: a number, or a list of groups."""

    returned: Frame


@dataclass(frozen=True, kw_only=True)
class TuningJob(Job[TuningAnswer]):
    """A scratch folder for engines, the S3 server if one is used, and the arguments by name."""

    folder: str
    s3: ObjectStore | None
    arguments: dict[str, Value]
    warmup_arguments: dict[str, Value]


JOB = TuningJob


def calls(entry: Transport, job: TuningJob) -> Calls:
    """Return the calls on little data and on the data; `connect` gets a scratch folder and the S3 server."""
    connect = (job.folder, job.s3 and asdict(job.s3))
    return Calls(connect, (), (), warmup_named=job.warmup_arguments, measured_named=job.arguments)


def hand_over(entry: Transport, returned: Frame, job: TuningJob, measured: Measured) -> TuningAnswer | Failed:
    """Put the transport's answer and details into the worker's answer.

    A transport returns the answer, or a dict of `answer` and `details` (names with their units, and numbers).
    """
    if not isinstance(returned, dict):
        return TuningAnswer(measured=measured, returned=returned)
    details = returned.get("details", {})
    numbers = all(type(value) in (int, float) for value in details.values())
    if returned.keys() - {"answer", "details"} or "answer" not in returned or not numbers:
        return Failed(
            Status.ERROR, f"the transport returned {returned!r:.200}; return an answer, and numbers as details"
        )
    return TuningAnswer(measured=measured, returned=returned["answer"], details=details)
