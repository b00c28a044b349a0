"""Requests of tests for rigs, and for the runner on them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import registry
from harness.model import Case, Value
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.runner import SuiteRun
from harness.settings import Settings


def case(transport: str, dataset: str = "integers", **parameters: Value) -> Case:
    """Return a case of a transport; without parameters it has 20 rows."""
    return Case(registry.one(transport), "an experiment", dataset, parameters or {"rows": 20})


def order(settings: Settings, *cases: Case, say: Callable[[str], None] = lambda text: None) -> RunRequest:
    """Return a request for these cases."""
    plan = Plan("a suite", "a size", "*", (), 1, 1, 120.0)
    request = RunRequest(settings=settings, plan=plan, rig="", lab="embedded", run_id="the-run", say=say)
    vars(request)["cases"] = list(cases)  # of no experiment
    return request


def running(rig: Any, folder: Path, seconds: float = 120.0, traces: bool = False, **more: Any) -> SuiteRun:
    """Return a run on a rig, for the runner."""
    plan, settings = Plan("scan", "a size", "*", (), 1, 1, seconds), Settings(results_dir=folder.parent)
    request = RunRequest(settings=settings, plan=plan, rig="", lab="embedded", run_id="the-run", traces=traces)
    return SuiteRun(request=request, rig=rig, fingerprint="0123456789ab", folder=folder, **more)
