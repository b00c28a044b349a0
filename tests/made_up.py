"""Transports that exist in one test only, run by a real worker; they log each of their steps with its time."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness import registry, transports
from harness.lab import interpreters
from harness.run.execution import Worker
from harness.worker.messages import AnswerT, Failed, Job

_LOG = """
import os, time
from contextlib import asynccontextmanager, contextmanager
from harness.registry import Unsupported, transport

def log(*words):
    with open({events!r}, "a") as file:
        print(time.monotonic_ns(), *words, file=file)
"""
_START = """
import sys
sys.path.insert(0, {folder!r})
import harness.transports
harness.transports.__path__.append({folder!r} + "/transports")
from harness.worker import jobs as worker
worker.main(sys.argv[1:])
"""


class MadeUp:
    """A folder with modules `made.<name>` of transports, their events, and a worker that knows them.

    Every module begins with `log(*words)` and the imports of transports. A package `needed` logs its import.
    """

    def __init__(self, folder: Path, **modules: str) -> None:
        self.folder, self._events = folder, folder / "events"
        package = folder / "transports" / "made"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        head = _LOG.format(events=str(self._events))
        for name, text in modules.items():
            (package / f"{name}.py").write_text(head + text)
        (folder / "needed.py").write_text(head + "log('import')\n")
        (folder / "start.py").write_text(_START.format(folder=str(folder)))
        self.command = (sys.executable, str(folder / "start.py"))
        self.log, self.result = folder / "log", folder / "result.arrow"

    def run(self, job: Job[AnswerT], paused: Callable[[], object] = lambda: None) -> AnswerT | Failed:
        """Run a job in a worker, which leaves the returned data at `result`, and return its answer."""
        job = replace(job, result=str(self.result))
        return Worker(self.log, self.command).ask(job, 120, paused=paused).answer

    def join(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Until the end of a test, put the transports into the catalogue, and let workers be such that know them."""
        registry.catalogue()
        monkeypatch.setattr(registry, "_CATALOGUE", dict(registry._CATALOGUE))
        monkeypatch.setattr(transports, "__path__", [*transports.__path__, str(self.folder / "transports")])
        for name in [name for name in sys.modules if name.startswith("harness.transports.made")]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(interpreters, "command_of", lambda *entry: self.command)

    def events(self) -> tuple[list[str], list[int]]:
        """Return the log: strings, and nanoseconds of the monotonic clock."""
        lines = [line.split() for line in self._events.read_text().splitlines()]
        return [" ".join(words) for _, *words in lines], [int(at) for at, *_ in lines]
