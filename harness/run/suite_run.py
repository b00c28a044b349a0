"""One run of a suite from start to end: its folder, its rig, its plan; new or resumed."""

from __future__ import annotations

import importlib
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.datasets.user_data.data import NAME
from harness.datasets.user_data.losses import ruled_out
from harness.lab.packages import not_installed
from harness.machine import scratch
from harness.machine.calibration import calibrate
from harness.machine.stopping import on_signals
from harness.model import LabError
from harness.results import folder as folders
from harness.results.environment import differing
from harness.results.folder import Facts
from harness.results.row import Row
from harness.run import environment
from harness.run.ahead import Ahead
from harness.run.lock import only_run
from harness.run.plan import from_facts
from harness.run.redaction import DataRules
from harness.run.rigs.rig import AbsentRig, AnyRig, RunRequest
from harness.run.runner import SuiteRun, require_room
from harness.settings import Settings


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
    lab, run_id = str(facts["lab"]), facts["run_id"]  # the id in its rows: a folder may have been copied or renamed
    lab = "embedded" if lab == "local" else lab  # a rig without servers does not ask for a lab
    return RunRequest(settings=settings, plan=plan, rig=rig_of(plan.suite), lab=lab, run_id=run_id, folder=folder)


@contextmanager
def open_run(request: RunRequest) -> Iterator[SuiteRun]:
    """Start the rig and everything a suite run needs, and stop it at the end.

    Raises LabError before anything is left behind: unknown transports, no server, another run in progress, too little
    disk space or memory.
    """
    settings, plan, user_data, chosen = request.settings, request.plan, request.user_data, request.cases
    resumed, request = bool(request.run_id), replace(request, run_id=request.run_id or new_id(settings.results_dir))
    with ExitStack() as stack:
        stack.enter_context(on_signals())
        stack.enter_context(only_run(settings.lock_folder, request.run_id))
        scratch.remove_left()
        rigs = importlib.import_module(f"harness.run.rigs.{request.rig}")
        # Without its own packages a substitute reports what is missing.
        lacks = not_installed(rigs.REQUIRES)
        rig: AnyRig = AbsentRig(rigs.REQUIRES) if lacks else stack.enter_context(rigs.opened(request))
        facts = environment.describe(request, rig, chosen)
        folder = request.folder or settings.results_dir / request.run_id
        require_room(folder, rig, max(chosen, key=rig.room), "then start again")
        if not resumed:
            compared = {"compared": user_data.compared} if user_data and user_data.compared else {}
            folders.begin(
                folder,
                request.run_id,
                {**facts, **compared, "shuffled_by": request.run_id, "runs": len(chosen) * plan.passes},
            )
        described = {**rig.described(), **({NAME: user_data} if user_data else {})}
        suite_run = SuiteRun(
            request=request,
            rig=rig,
            fingerprint=facts["fingerprint"],
            folder=folder,
            earlier=_earlier(folder, facts) if resumed else [],
            rules=DataRules(
                ruled_out=ruled_out(described, chosen), columns=user_data.logical_types if user_data else {}
            ),
            calibration=_calibrate(settings, folder),
            ahead=Ahead(settings.ahead),
        )
        yield suite_run
        _calibrate(settings, folder)


def _calibrate(settings: Settings, folder: Path) -> Facts:
    """Note in the environment of a run how fast the machine is now, and was at its best; return it. Raises LabError."""
    if not settings.calibration:
        return {}
    try:
        now, best = calibrate(settings.state_dir)
    except OSError as error:
        raise LabError(f"cannot calibrate in {settings.state_dir}: {error.strerror or error}") from None
    calibration = {"now": now, "best": best}
    folders.amend(folder, "calibrations", calibration)
    return calibration


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
