"""The request for a run, and the interface between rigs and the runner.

A rig is a module with `opened(request)` and `REQUIRES`. These are the modules that the rig itself needs, for any
transport, beyond the lab's base dependencies.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

from harness import registry
from harness.datasets.specification import Specification
from harness.datasets.user_data.data import NAME, UserData
from harness.datasets.user_data.losses import Described
from harness.lab.packages import not_installed
from harness.model import Case, Dataset, LabError
from harness.run.plan import Plan, cases
from harness.settings import Settings
from harness.worker.messages import Answer, AnyJob, Numbers

LIMIT = "memory_mb"  # the case parameter that limits its worker's memory
_Job = TypeVar("_Job", bound=AnyJob)
_Answer = TypeVar("_Answer", bound=Answer, contravariant=True)


class Unavailable(Exception):
    """Raised if a run cannot be prepared on this machine; its message is the reason."""


class NotNow(LabError):
    """Raised if a run did not start because of this machine's current load; it must be repeated."""


class Stop(LabError):
    """Raised if no run is useful until a person acts, for example restarts their server."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A request to run a plan on a rig in a lab.

    `run_id` names the run. To complete an earlier run, `folder` is its folder. `say` announces slow steps. With
    `traces` the run records how many cores it keeps busy. `user_data` is the user's own data, if any.
    """

    settings: Settings
    plan: Plan
    rig: str
    lab: str
    run_id: str = ""
    folder: Path | None = None
    say: Callable[[str], None] = lambda text: None
    traces: bool = False
    user_data: UserData | None = None

    @cached_property
    def cases(self) -> list[Case]:
        """The cases of the plan. Raises LabError: unknown transports, or user data that are not given again."""
        found = cases(self.plan, registry.select)
        if self.user_data is None and any(case.dataset == NAME for case in found):
            raise LabError(f"run {self.run_id} is on your own data: name these again (--data, --query)")
        return found


@dataclass(frozen=True)
class Checked:
    """The result of a check: one line per fault in a run's values; empty if every value is right.

    `converted` are the columns of a returned frame with other dtypes than canonical, and these; None without a frame.
    `details` are further facts of the run.
    """

    wrong: list[str]
    converted: dict[str, str] | None = field(default_factory=dict)
    details: Numbers = field(default_factory=dict)


class Rig(Protocol[_Job, _Answer]):
    """A rig that is ready; it builds its contract's jobs and checks their answers.

    Some methods have a default: of a rig without servers, repeated calls or leftovers.
    """

    @property
    def lab_name(self) -> str:
        """The lab: embedded, compose or external; `local` if no server is involved."""
        return "local"

    @property
    def secrets(self) -> Sequence[str]:
        """Addresses whose passwords must not appear in results."""
        return ()

    @property
    def headline(self) -> str:
        """The lab in use, in one line."""

    def facts(self) -> dict[str, object]:
        """Return the rig's facts for environment.json: `data`, `servers`, `server_filesystem`."""

    def extent(self, case: Case) -> tuple[int | None, int | None]:
        """Return the rows of a case's data (None if they do not exist yet) and their bytes on disk (None: no files)."""

    def room(self, case: Case) -> int:
        """Return the bytes that a run may need in its results folder for its result."""
        return 0

    def described(self) -> Mapping[str, Described]:
        """Return known facts about datasets' values, by name, which exclude transports that lose some of them."""
        return {}

    def unavailable(self, case: Case) -> str | None:
        """Return why a case cannot run here, in one line, or None if it can."""

    def prepare(self, case: Case) -> _Job:
        """Prepare a run and return its job for the worker. Raises Unavailable, NotNow, NoAnswer (it hangs), Stop."""

    def between(self, case: Case, job: _Job) -> None:
        """Undo the effect of a worker's call before its next call."""
        return

    def check(self, case: Case, job: _Job, answer: _Answer) -> Checked:
        """Compare every value that a run wrote or returned with the known data."""

    def left(self, case: Case, job: _Job) -> Numbers:
        """Return facts about the remains of a failed run; empty if the case does not ask for them."""
        return {}

    def died(self, case: Case) -> bool:
        """Return whether the server of a case has died; must be fast, because it is called many times a second."""
        return False

    def revive(self) -> list[str]:
        """Restart our servers that have died or did not answer, and return their names."""
        return []

    def disturbed(self, case: Case) -> str:
        """Describe interference with a case's server since the last call; empty without any."""
        return ""

    def settle(self, case: Case) -> None:
        """Bring everything to rest after a run, however it ended. Raises NoAnswer if a server hangs."""


AnyRig = Rig[Any, Any]


@contextmanager
def working_folder(settings: Settings, name: str) -> Iterator[Path]:
    """Yield the path of a folder for a rig's files, which does not exist; remove it at the end."""
    folder = settings.state_dir / name
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed run: the lock shows that it has ended
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def stopping_where_not_ours(lab_name: str) -> Iterator[None]:
    """Raise Stop if a server of this lab cannot be used and the lab cannot restart it."""
    try:
        yield
    except LabError as error:
        if lab_name == "embedded":
            raise
        raise Stop(f"{error}; nothing can be measured on it") from None


def only_parameters(of: Sequence[Case], known: frozenset[str]) -> None:
    """Raise LabError if an experiment has a parameter that its rig does not know, or lacks one."""
    for case in of:
        if case.parameters.keys() != known:
            raise wrong_parameters(case, known)


def wrong_parameters(case: Case, needed: Iterable[str], others: Iterable[str] = ()) -> LabError:
    """Describe a case with wrong parameters: those that it needs, and the optional ones in `others`."""
    found, wanted, more = (", ".join(sorted(names)) for names in (case.parameters, needed, others))
    more = f", and any of {more}" if more else ""
    return LabError(f"experiment {case.experiment}: the parameters are {found or 'none'}; give {wanted}{more}")


def wrong_value(case: Case, name: str, choices: str) -> LabError:
    """Describe a parameter with an invalid value."""
    return LabError(f"experiment {case.experiment}: {name} {case.parameters[name]!r}: choose {choices}")


def dataset_facts(dataset: Dataset, spec: Specification | None = None) -> dict[str, object]:
    """Return a dataset's facts for environment.json: its columns if it has a spec with them, and never its path."""
    facts = asdict(dataset)
    del facts["path"]
    if spec and spec.columns:
        facts["columns"] = {
            column.name: column.logical_type + ("?" if column.nullable else "") for column in spec.columns
        }
    return facts


# The substitute for a rig whose own packages are missing: every case is unavailable and names the packages.


@dataclass(frozen=True)
class AbsentRig(Rig[AnyJob, Answer]):
    """A rig without data, which needs the modules in `requires`; see `harness.run.rigs.rig.Rig`."""

    requires: Sequence[str]

    @property
    def headline(self) -> str:
        return f"nothing of this suite can run here: {not_installed(self.requires)}"

    def facts(self) -> dict[str, object]:
        return {"data": [], "servers": {}, "server_filesystem": None}

    def extent(self, case: Case) -> tuple[int | None, int | None]:
        return None, None

    def unavailable(self, case: Case) -> str | None:
        """Name the missing packages of the rig and of the transport together, for one install command."""
        return not_installed([*self.requires, *case.transport.requires])

    def prepare(self, case: Case) -> AnyJob:
        raise AssertionError(f"{case.transport.id} was prepared on a rig that is not there")

    def check(self, case: Case, job: AnyJob, answer: Answer) -> Checked:
        raise AssertionError(f"{case.transport.id} was checked on a rig that is not there")

    def settle(self, case: Case) -> None:
        """Do nothing: nothing has run."""
