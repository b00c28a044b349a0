"""Messages between the parent and a worker: a job there, and events back, the last of them with an answer.

Every contract extends the job and the answer; this module has their common fields.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from harness.model import Status
from harness.worker.lines import Message
from harness.worker.measure import StopwatchReport

# The events that a worker reports, each as one line of JSON.
PAUSED = "paused"  # it waits until it receives any line
CALLED = "called"  # its timing has ended
ANSWERED = "answered"  # with its answer, or its failure
Numbers = dict[str, int | float]  # by name with unit
AnswerT = TypeVar("AnswerT", bound="Answer")


@dataclass(frozen=True, kw_only=True)
class Job(Message, Generic[AnswerT]):
    """The common fields of a job, which names the type of its answer.

    These are the transport and its module, the path for its result, and whether the worker stays.

    `server_pids` are our servers whose CPU time counts; None if no server is involved. `mark` is an environment
    variable of every process that the worker starts, which identifies these. `call` is the number of the process's call
    to measure. The calls before it are the same, and the worker pauses after each. With `together` it pauses before the
    measured call, connected and warm.
    """

    transport: str
    module: str = ""
    result: str = ""
    stays: bool = False
    server_pids: list[int] | None = None
    mark: str = ""
    call: int = 1
    together: bool = False

    @property
    def contract(self) -> str:
        """The name of its module, which has the functions for this type of job."""
        return type(self).__module__.rpartition(".")[2]

    def shared(self) -> "Sequence[Job[AnswerT]]":
        """Return the jobs of several workers that share this one; empty if one worker does it."""
        return []

    def answered_by(self) -> type[AnswerT]:
        """Return the type of its answer, which its class names."""
        answer: type[AnswerT] = get_args(self.__orig_bases__[0])[0]  # type: ignore[attr-defined]  # of every generic
        return answer


AnyJob = Job[Any]


@dataclass(frozen=True)
class Measured(Message):
    """The worker's measurements of a call; `details` come from meters and phases."""

    connect_seconds: float
    report: StopwatchReport
    details: Numbers


@dataclass(frozen=True, kw_only=True)
class Answer(Message):
    """The common fields of a successful call's answer; `details` are the call's facts in addition to its result."""

    measured: Measured
    details: Numbers = field(default_factory=dict)
    status: Literal[Status.OK] = Status.OK
    stays: bool = False


@dataclass(frozen=True)
class Failed(Message):
    """The answer without a measurement or result: the status, and the reason."""

    status: Status
    error: str
    stays: bool = False
