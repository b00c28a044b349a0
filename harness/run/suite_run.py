"""One run of a suite from start to end: its folder, its rig, its plan; new or resumed."""

from __future__ import annotations

import importlib
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from harness import registry
from harness.datasets.user_data import data
from harness.datasets.user_data.data import UserData
from harness.datasets.user_data.losses import ruled_out, undeclared
from harness.lab.packages import not_installed
from harness.machine import scratch
from harness.machine.calibration import calibrate
from harness.machine.stopping import on_signals
from harness.model import Case, LabError, Run, Status
from harness.results import folder as folders
from harness.results.environment import differing
from harness.results.folder import Facts
from harness.results.row import Row
from harness.run import environment, fault_attribution
from harness.run.estimate import Key
from harness.run.lock import only_run
from harness.run.plan import Plan, cases, from_facts, shuffled_runs
from harness.run.prefork import Ahead
from harness.run.rigs.absent import AbsentRig
from harness.run.rigs.rig import Order, Rig
from harness.run.runner import SuiteSession, cannot_run, require_room
from harness.settings import Settings


@dataclass(frozen=True)
class SuiteRun:
    """A suite run that is ready: earlier rows, remaining runs, and the session to do them in."""

    session: SuiteSession
    done: list[Row]
    todo: list[Run]

    @cached_property
    def reasons(self) -> dict[Key, str]:
        """Why remaining runs leave a row without starting, by their keys."""
        return {run.key: outcome.error for run in self.todo if (outcome := cannot_run(self.session, run))}

    @property
    def work(self) -> list[Run]:
        """The remaining runs that will start."""
        return [run for run in self.todo if run.key not in self.reasons]


@dataclass(frozen=True)
class RunRequest:
    """The user's request: a plan on a rig and in a lab, as a new run or (`run_id`) one to complete.

    `folder` is that of the run to complete. `traces` keeps the cores that runs use over time. `user_data` are the
    user's own data, if any. `ready` is called once the servers accepted the data, before anything is left behind.
    """

    plan: Plan
    rig: str
    lab: str
    run_id: str | None = None
    folder: Path | None = None
    traces: bool = False
    user_data: UserData | None = None
    ready: Callable[[], None] = lambda: None


def resume_request(settings: Settings, run: str, rig_of: Callable[[str], str]) -> RunRequest:
    """Read an earlier run's request; `rig_of` returns the rig of a suite.

    Raises LabError if there is no such run or it cannot be read.
    """
    folder = folders.find(settings.results_dir, run)
    facts = folders.environment(folder)
    try:
        plan = from_facts(facts["plan"])
    except (KeyError, TypeError):
        raise LabError(f"{folder} was made by another version of the lab, whose plans are different") from None
    # Use the id in its rows, because a folder may have been copied or renamed.
    return RunRequest(
        plan, rig_of(plan.suite), _LABS.get(str(facts["lab"]), str(facts["lab"])), facts["run_id"], folder
    )


_LABS = {"local": "embedded"}  # a rig without servers does not ask for a lab


@contextmanager
def open_run(settings: Settings, request: RunRequest, say: Callable[[str], None]) -> Iterator[SuiteRun]:
    """Start the rig and everything a suite run needs, and stop it at the end.

    `say` announces slow steps. Raises LabError before anything is left behind: unknown transports, no server, another
    run in progress, too little disk space or memory.
    """
    plan, chosen = request.plan, _chosen(request)
    run_id = request.run_id or new_id(settings.results_dir)
    with ExitStack() as stack:
        stack.enter_context(on_signals())
        stack.enter_context(only_run(settings.lock_folder, run_id))
        scratch.remove_left()
        order = Order(settings, run_id, request.lab, chosen, plan.seed, plan.time_limit, say, request.user_data)
        rig = stack.enter_context(_rig(request.rig, order))
        request.ready()
        facts = environment.describe(
            plan,
            rig,
            [case.transport for case in chosen],
            settings.state_dir,
            settings.commit,
            settings.ahead,
            settings.emulated,
        )
        folder = request.folder or settings.results_dir / run_id
        require_room(folder, rig, max(chosen, key=rig.room), "then start again")
        earlier = _earlier(folder, facts) if request.run_id else []
        if not request.run_id:
            compared = (
                {"compared": request.user_data.compared} if request.user_data and request.user_data.compared else {}
            )
            folders.begin(
                folder, run_id, {**facts, **compared, "shuffled_by": run_id, "runs": len(chosen) * plan.passes}
            )
        done = [row for row in earlier if row.status is not Status.AGAIN]
        session = SuiteSession(
            run_id,
            plan.suite,
            rig,
            facts["fingerprint"],
            folder,
            plan.time_limit,
            request.traces,
            (settings.state_dir, Path("/var/tmp"), Path(tempfile.gettempdir())),  # /var/tmp: see `reachable_folder`
            folder.name if folder.parent == settings.results_dir else str(folder),
            frozenset(row.key for row in earlier if row.error.startswith(fault_attribution.ONCE)),
            tuple(request.user_data.logical_types) if request.user_data else (),
            ruled_out({**rig.described(), **({data.NAME: request.user_data} if request.user_data else {})}, chosen),
            undeclared(request.user_data.logical_types) if request.user_data else {},
            Ahead() if settings.ahead else None,
        )
        _calibrate(settings, folder)
        yield SuiteRun(session, done, _still_to_do(shuffled_runs(plan, chosen, run_id), done))
        _calibrate(settings, folder)


def _calibrate(settings: Settings, folder: Path) -> None:
    """Note in the environment of a run how fast the machine is now, and was at its best. Raises LabError."""
    if not settings.calibration:
        return
    try:
        now, best = calibrate(settings.state_dir)
    except OSError as error:
        raise LabError(f"cannot calibrate in {settings.state_dir}: {error.strerror or error}") from None
    folders.amend(folder, "calibrations", {"now": now, "best": best})


def _chosen(request: RunRequest) -> list[Case]:
    """Return the cases of a run. Raises LabError: unknown transports, or a resumed run without its user's own data."""
    chosen = cases(request.plan, registry.select)
    if request.user_data is None and any(case.dataset == data.NAME for case in chosen):
        raise LabError(f"run {request.run_id} is on data of its person's own: expected these again (--data, --query)")
    return chosen


def _rig(name: str, order: Order) -> AbstractContextManager[Rig[Any, Any]]:
    """Return the rig of a suite, not yet opened; if its own packages are missing, a stand-in that reports them."""
    found = importlib.import_module(f"harness.run.rigs.{name}")
    return nullcontext(AbsentRig(found.REQUIRES)) if not_installed(found.REQUIRES) else found.opened(order)


def new_id(results_dir: Path) -> str:
    host = re.sub(r"[^a-z0-9-]+", "-", platform.node().lower()).strip("-") or "host"
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host}"
    taken = sum(1 for _ in results_dir.glob(f"{name}*"))
    return f"{name}-{taken + 1}" if taken else name


def _earlier(folder: Path, facts: Facts) -> list[Row]:
    """Return the rows that an interrupted run already has. Raises LabError if its environment differs."""
    if changed := differing(folders.environment(folder), facts):
        raise LabError(
            f"run {folder.name} was made in another environment ({', '.join(changed)} differ); start a new run instead"
        )
    return folders.interrupted(folder)


def _still_to_do(runs: Sequence[Run], done: list[Row]) -> list[Run]:
    measured = {row.key for row in done}
    return [run for run in runs if run.key not in measured]
