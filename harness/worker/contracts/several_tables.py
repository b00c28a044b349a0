"""Transports of databases over several tables, one after the other on one connection, without measurement."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.model import Frame, Transport
from harness.worker.contracts import databases
from harness.worker.contracts.calls import Calls
from harness.worker.contracts.databases import DatabaseAnswer, DatabaseJob
from harness.worker.messages import Answer, Failed, Job, Measured


@dataclass(frozen=True, kw_only=True)
class SeveralTablesAnswer(Answer):
    """`converted` has, for each table, the columns of a frame with other dtypes than canonical, and these."""

    converted: list[dict[str, str] | None]


@dataclass(frozen=True, kw_only=True)
class SeveralTablesJob(Job[SeveralTablesAnswer]):
    """The jobs that the transport would have with each table alone; all use the first one's addresses."""

    jobs: list[DatabaseJob]


JOB = SeveralTablesJob
IMPORTS = databases.IMPORTS


def calls(entry: Transport, job: SeveralTablesJob) -> Calls:
    """Return the call on the first table, and those that follow."""
    first, *others = (databases.calls(entry, each) for each in job.jobs)
    return replace(first, following=tuple(each.measured for each in others))


def hand_over(
    entry: Transport, returned: Sequence[Frame], job: SeveralTablesJob, measured: Measured
) -> SeveralTablesAnswer | Failed:
    """Store each read's canonical frame at its job's path, or report the first failure."""
    answers: list[DatabaseAnswer] = []
    for each, of_call in zip(job.jobs, returned, strict=True):
        answer = databases.hand_over(entry, of_call, each, measured)
        if isinstance(answer, Failed):
            return answer
        answers.append(answer)
    return SeveralTablesAnswer(measured=measured, converted=[answer.converted for answer in answers])
