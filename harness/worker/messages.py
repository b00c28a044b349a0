"""What the parent and a worker say to each other: a job, and an answer or how it failed.

Every contract has a job and an answer of its own; what stands here is in all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, TypeVar

from harness.model import Status
from harness.worker.lines import Message
from harness.worker.measure import StopwatchReport

CALLED = b"called\n"  # what a worker says when its clock has stopped, before the line of its answer
PAUSED = b"paused\n"  # what a worker says that goes on when it is told to, by any line
READY = b"ready\n"  # what a worker says that was told its transport ahead of its job, when all imports are done
Numbers = dict[str, int | float]  # by names with their units
AnswerT = TypeVar("AnswerT", bound="Answer")


@dataclass(frozen=True, kw_only=True)
class Job(Message, ABC, Generic[AnswerT]):
    """What every job says: the transport and its module, where what it returns is left, whether the worker stays.

    `server_pids` are the servers of ours whose CPU time counts; None where no server has a part in it. `mark` stands in
    the environment of every process that the worker starts, by which these are found. `call` says which call of the
    process is measured: those before it are the same, and after each the worker pauses. With `together` it pauses
    before the measured one, connected and warm.
    """

    contract: ClassVar[str]

    transport: str
    module: str = ""
    result: str = ""
    stays: bool = False
    server_pids: list[int] | None = None
    mark: str = ""
    call: int = 1
    together: bool = False

    def shared(self) -> "Sequence[Job[AnswerT]]":
        """Return the jobs of several workers that this one is shared by; none where one worker does it."""
        return []

    @abstractmethod
    def answered_by(self) -> type[AnswerT]:
        """Return the type of its answer."""


@dataclass(frozen=True)
class Measured(Message):
    """What the worker measured of a call; `details` are what meters and phases tell."""

    connect_seconds: float
    report: StopwatchReport
    details: Numbers


@dataclass(frozen=True, kw_only=True)
class Answer(Message):
    """What every answer says of a call that ended well; `details` are what the call tells beside its result."""

    measured: Measured
    details: Numbers = field(default_factory=dict)
    status: Literal[Status.OK] = Status.OK
    stays: bool = False


@dataclass(frozen=True)
class Failed(Message):
    """The answer where there is nothing to measure or to verify: how it ended, and why."""

    status: Status
    error: str
    stays: bool = False
