"""The worker of the next run, started and its clients imported while the last result is verified.

A start and its imports take half a second, in which the parent has nothing to do but to wait. Nothing runs beside a
timed call: a worker is started here when the clock of the one before it has stopped, and is handed its job when it has
said that it is ready. From then on it waits for it, doing nothing. What cannot be imported is not told here: the job
meets it again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from harness.lab import interpreters
from harness.model import Run
from harness.run.execution import Worker, getting_ready


class Ahead:
    """At most one worker that waits for its run."""

    def __init__(self) -> None:
        self._next: Run | None = None
        self._waiting: tuple[Run, Worker, Path] | None = None

    def then(self, run: Run | None) -> None:
        """Say which run comes after the one under way; None where there is none."""
        self._next = run

    def start(self, contract: str, log: Path) -> None:
        """Start the worker of the run that comes next; `log` is its own. Where none can be started, the run will.

        One that is started already stays.
        """
        if self._waiting and self._waiting[0] is self._next:
            return
        self.end()
        if self._next is None:
            return
        entry = self._next.case.transport
        with suppress(OSError):  # a full disk, a folder that is gone: the run meets it again, and says so
            command = interpreters.command_of(entry)
            worker = getting_ready(log, contract, entry.id, entry.function.__module__, command=command)
            self._waiting = self._next, worker, log

    def take(self, run: Run) -> Worker | None:
        """Return the worker that waits for this run, if one does; one that waits for another is ended."""
        if self._waiting is None or self._waiting[0] is not run:
            self.end()
            return None
        (_, worker, _), self._waiting = self._waiting, None
        return worker

    @property
    def next(self) -> Run | None:
        """The run that comes next."""
        return self._next

    def end(self) -> None:
        """End the worker that waits, with its empty log."""
        if self._waiting is None:
            return
        (_, worker, log), self._waiting = self._waiting, None
        worker.end()
        log.unlink(missing_ok=True)
