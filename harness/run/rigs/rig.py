"""What every rig offers the runner, and what it is told when it is opened.

A rig is a module with `opened(order)`, and with `REQUIRES`: the modules that it needs itself, whatever the transports,
and that the base of the lab does not bring.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeVar

from harness.datasets.own.data import OwnData
from harness.datasets.own.losses import Described
from harness.datasets.specification import Specification
from harness.model import Case, Dataset, LabError
from harness.settings import Settings
from harness.worker.messages import Answer, Job, Numbers

LIMIT = "memory_mb"  # the parameter of a case that limits its worker's memory
_Job = TypeVar("_Job", bound=Job[Any])
_Answer = TypeVar("_Answer", bound=Answer, contravariant=True)


class Unavailable(Exception):
    """Raised where a run cannot be prepared on this machine; its text is the reason."""


class NotNow(LabError):
    """Raised where a run was not begun because of what this machine is busy with: it is to be done again."""


class Stop(LabError):
    """Raised where no run makes sense any more until somebody has done something, such as start their server again."""


@dataclass(frozen=True)
class Order:
    """What a rig is opened for: the cases of a run, the lab asked for by name, and whom to tell what takes time.

    `own` are somebody's own data, where the run is on them.
    """

    settings: Settings
    run_id: str
    lab: str
    cases: Sequence[Case]
    seed: int
    time_limit: float
    say: Callable[[str], None]
    own: OwnData | None = None


@dataclass(frozen=True)
class Checked:
    """What a check found: what is wrong with the values of a run, one line each; none where every value is right.

    `converted` are the columns of a frame that came back which were of other dtypes, with these; None where no frame
    did. `details` are further facts of the run.
    """

    wrong: list[str]
    converted: dict[str, str] | None = field(default_factory=dict)
    details: Numbers = field(default_factory=dict)


class Rig(Protocol[_Job, _Answer]):
    """A rig that is ready; it makes the jobs of its contract, and checks the answers to them."""

    @property
    def lab_name(self) -> str:
        """The lab: embedded, compose or external; `local` where no server is involved."""

    @property
    def secrets(self) -> Sequence[str]:
        """Addresses whose passwords must not stand in results."""

    @property
    def headline(self) -> str:
        """What is used, in one line."""

    def facts(self) -> dict[str, object]:
        """Return what environment.json says of the rig: `data`, `servers`, `server_filesystem`."""

    def extent(self, case: Case) -> tuple[int | None, int | None]:
        """Return the rows of a case's data (None where there are none yet) and their bytes on disk (None: no files)."""

    def room(self, case: Case) -> int:
        """Return the bytes that a run may need in its results folder for handing over what it read."""

    def described(self) -> Mapping[str, Described]:
        """Return what is known of the values of datasets, by name, which rule out who loses some of them."""

    def unavailable(self, case: Case) -> str | None:
        """Return why a case cannot run here, in one line, or None when it can."""

    def prepare(self, case: Case) -> _Job:
        """Make a run ready and return its job for the worker. Raises Unavailable, NotNow, NoAnswer (it hangs), Stop."""

    def between(self, case: Case, job: _Job) -> None:
        """Undo what a call of a worker has done that is to make another one."""

    def check(self, case: Case, job: _Job, answer: _Answer) -> Checked:
        """Compare every value that a run wrote or returned with what is known."""

    def left(self, case: Case, job: _Job) -> Numbers:
        """Return facts of what a run left that failed; nothing where that is not asked."""

    def died(self, case: Case) -> bool:
        """Say whether the server that a case uses has died, cheaply: it is asked many times a second."""

    def revive(self) -> list[str]:
        """Bring back servers that have died or did not answer, where they are ours, and return their names."""

    def disturbed(self, case: Case) -> str:
        """Say what somebody has done to the server of a case since this was asked the last time; else nothing."""

    def settle(self, case: Case) -> None:
        """Bring everything to rest after a run, however it ended. Raises NoAnswer where a server hangs."""


@contextmanager
def stopping_where_not_ours(lab_name: str) -> Iterator[None]:
    """Raise Stop where a server of this lab cannot be used and nobody here can bring it back."""
    try:
        yield
    except LabError as error:
        if lab_name == "embedded":
            raise
        raise Stop(f"{error}; nothing can be measured on it") from None


class NothingLeft:
    """The parts of a rig that look at values, between calls, at what failed runs left, and at what others did to a
    server, where nobody asks for it.
    """

    def described(self) -> Mapping[str, Described]:
        """See `Rig`."""
        return {}

    def between(self, case: Case, job: Any) -> None:
        """See `Rig`."""

    def left(self, case: Case, job: Any) -> Numbers:
        """See `Rig`."""
        return {}

    def disturbed(self, case: Case) -> str:
        """See `Rig`."""
        return ""


class NothingToRevive(NothingLeft):
    """The part of a rig that watches servers, where there are none."""

    def died(self, case: Case) -> bool:
        """See `Rig`."""
        return False

    def revive(self) -> list[str]:
        """See `Rig`."""
        return []


def only_parameters(cases: Sequence[Case], known: frozenset[str]) -> None:
    """Raise LabError when an experiment has a parameter that its rig does not know, or lacks one."""
    for case in cases:
        if case.parameters.keys() != known:
            raise LabError(
                f"experiment {case.experiment}: expected the parameters {', '.join(sorted(known))}, "
                f"found {', '.join(sorted(case.parameters)) or 'none'}"
            )


def dataset_facts(dataset: Dataset, spec: Specification | None = None) -> dict[str, object]:
    """Return what environment.json says of a dataset: all but where it lies; of a described one also the columns."""
    facts = asdict(dataset)
    del facts["path"]
    if spec and spec.columns:
        facts["columns"] = {
            column.name: column.logical_type + ("?" if column.nullable else "") for column in spec.columns
        }
    return facts
