"""`lab run` as the fault campaign needs it: it says when it begins a phase, and waits there until the fault is made.

Run by its path: `paused_run.py run ...` is the parent, which starts `paused_run.py worker` instead of the lab's worker.
Nothing else differs. LAB_FAULT_PLACE is the folder where they meet the campaign, LAB_FAULT_PHASE the phase (and
system).
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.pop(0)  # this folder, whose harness.py is not the harness
PLACE, PHASE = Path(os.environ["LAB_FAULT_PLACE"]), os.environ["LAB_FAULT_PHASE"]
PATIENCE_SECONDS = 60.0


def tell(phase: str) -> None:
    """Say that a phase begins, if it is the one that is waited for, and go on when the fault was made."""
    if phase == PHASE and not (PLACE / "made").exists():
        (PLACE / "reached").touch()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (PLACE / "made").exists() and time.monotonic() < deadline:
            time.sleep(0.005)


def parent() -> None:
    """Be `lab`; the rig and the writer of the report announce phases."""
    from harness import cli
    from harness.lab import interpreters
    from harness.report import sections
    from harness.run.rigs.databases import DatabaseRig

    def pause_at(method: str, phase: str) -> None:
        original = getattr(DatabaseRig, method)

        def paused(self: Any, case: Any, *more: Any) -> Any:
            tell(f"{phase} {case.transport.system}")
            return original(self, case, *more)

        setattr(DatabaseRig, method, paused)

    for method, phase in (("prepare", "prepare"), ("check", "verify"), ("settle", "settle")):
        pause_at(method, phase)
    write = sections.write

    def paused(*arguments: Any) -> Any:
        tell("report")
        return write(*arguments)

    sections.write = paused
    command = (sys.executable, __file__, "worker")
    interpreters.command_of = lambda *entry: command
    cli.main()


def worker() -> None:
    """Be the worker, and announce connecting and the call."""
    from harness import registry
    from harness.worker import jobs as worker

    connect_of, system = registry.connect_of, []

    def connecting(entry: Any) -> Any:
        system.append(entry.system)
        tell(f"connect {entry.system}")
        return connect_of(entry)

    class Stopwatch(worker.Stopwatch):
        def __enter__(self) -> Any:
            tell(f"call {system[-1]}")
            return super().__enter__()

    registry.connect_of, worker.Stopwatch = connecting, Stopwatch
    worker.main(sys.argv[2:])


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker()
    else:
        parent()
