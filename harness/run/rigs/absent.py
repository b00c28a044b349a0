"""The substitute for a rig whose own packages are missing: every case is unavailable and names the packages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.lab.packages import not_installed
from harness.model import Case
from harness.run.rigs.rig import Checked, Rig
from harness.worker.messages import Answer, AnyJob


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
