"""One run of a suite from start to end: its folder, its rig, its plan; new or resumed."""

from __future__ import annotations

import importlib
import json
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import registry, results
from harness.machine import scratch
from harness.machine.stopping import on_signals
from harness.model import LabError, Run, Status
from harness.run import blame, environment
from harness.run.lock import only_run
from harness.run.plan import Plan, cases, from_facts, shuffled_runs
from harness.run.rigs.rig import Order
from harness.run.runner import Session, require_room
from harness.settings import Settings


@dataclass(frozen=True)
class SuiteRun:
    """A suite run that is ready: what was there before, what is still to do, and the session to do it in."""

    session: Session
    done: list[dict[str, Any]]
    todo: list[Run]


@dataclass(frozen=True)
class Request:
    """What the person asked for: a plan on a rig and kind of lab, as a new run or (`run_id`) one to complete.

    `folder` is where the one to complete is. `traces` keeps the cores that runs use over time.
    """

    plan: Plan
    rig: str
    lab: str
    run_id: str | None = None
    folder: Path | None = None
    traces: bool = False


def resume_request(settings: Settings, run: str, rig_of: Callable[[str], str]) -> Request:
    """Read what an earlier run was asked to do; `rig_of` tells the rig of a suite.

    Raises LabError when there is no such run or it cannot be read.
    """
    folder = find_folder(settings, run)
    facts = _read_environment(folder)
    try:
        plan = from_facts(facts["plan"])
    except (KeyError, TypeError):
        raise LabError(f"{folder} was made by another version of the lab, whose plans are different") from None
    # The id is the one its rows have: a folder may have been copied or renamed.
    return Request(plan, rig_of(plan.suite), _LABS.get(facts["lab"], facts["lab"]), facts["run_id"], folder)


_LABS = {"local": "embedded"}  # a rig without servers does not ask for a lab


def find_folder(settings: Settings, run: str) -> Path:
    """Return the folder of a run given its id or path. Raises LabError."""
    for folder in (settings.results_dir / run, Path(run)):
        if (folder / "environment.json").is_file():
            return folder.resolve()
    raise LabError(f'no run "{run}": expected a folder with environment.json in {settings.results_dir} or at this path')


@contextmanager
def open_run(settings: Settings, request: Request, say: Callable[[str], None]) -> Iterator[SuiteRun]:
    """Bring up the rig and everything a suite run needs, and take it down again at the end.

    `say` is told what takes time. Raises LabError before anything is left behind: unknown transports, no server,
    another run under way, too little disk or memory.
    """
    plan = request.plan
    chosen = cases(plan, registry.select)
    run_id = request.run_id or new_id(settings.results_dir)
    rigs = importlib.import_module(f"harness.run.rigs.{request.rig}")
    with ExitStack() as stack:
        stack.enter_context(on_signals())
        stack.enter_context(only_run(settings.state_dir, run_id))
        scratch.remove_left()
        order = Order(settings, run_id, request.lab, chosen, plan.seed, plan.time_limit, say)
        rig = stack.enter_context(rigs.opened(order))
        facts = environment.describe(
            plan, rig, [case.transport for case in chosen], settings.state_dir, settings.commit
        )
        folder = request.folder or settings.results_dir / run_id
        require_room(folder, rig, max(chosen, key=rig.room), "then start again")
        earlier = _earlier_rows(folder, facts) if request.run_id else _make_folder(folder, run_id, facts)
        done = [row for row in earlier if row["status"] is not Status.AGAIN]
        session = Session(
            run_id,
            plan.suite,
            rig,
            facts["fingerprint"],
            folder,
            plan.time_limit,
            request.traces,
            (settings.state_dir, Path("/var/tmp"), Path(tempfile.gettempdir())),  # /var/tmp: see `reachable_folder`
            folder.name if folder.parent == settings.results_dir else str(folder),
            frozenset(_key(row) for row in earlier if (row["error"] or "").startswith(blame.STARVED)),
        )
        yield SuiteRun(session, done, _still_to_do(shuffled_runs(plan, chosen), done))


def new_id(results_dir: Path) -> str:
    host = re.sub(r"[^a-z0-9-]+", "-", platform.node().lower()).strip("-") or "host"
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{host}"
    taken = sum(1 for _ in results_dir.glob(f"{name}*"))
    return f"{name}-{taken + 1}" if taken else name


def _make_folder(folder: Path, run_id: str, facts: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        folder.mkdir(parents=True)
        text = json.dumps({"run_id": run_id, **facts}, indent=2)
        (folder / "environment.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write results to {folder}: {error.strerror}; set LAB_RESULTS_DIR") from None
    return []


def _read_environment(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "environment.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"cannot read {folder}/environment.json: {getattr(error, 'strerror', None) or error}") from None


def _earlier_rows(folder: Path, facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows an interrupted run already has.

    Raises LabError when it was made in another environment.
    """
    if changed := environment.differing(_read_environment(folder), facts):
        raise LabError(
            f"run {folder.name} was made in another environment ({', '.join(changed)} differ); start a new run instead"
        )
    if not (folder / "runs.csv").exists():
        return []
    results.drop_torn_line(folder / "runs.csv")
    return results.load(folder / "runs.csv")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what `Run.key` is of the run that a row is about."""
    return row["transport"], row["experiment"], row["parameters"], row["pass"]


def _still_to_do(runs: Sequence[Run], done: list[dict[str, Any]]) -> list[Run]:
    measured = set(map(_key, done))
    return [run for run in runs if run.key not in measured]
