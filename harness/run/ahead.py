"""The worker of the next run, started and its clients imported while the last result is verified.

Starting and importing take half a second, in which the parent would only wait. Nothing runs during a timed call. The
worker starts when the previous one's timing has ended, imports the modules of its transport, and then waits for its
job. A failed import is not reported here, because the job fails on it again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.lab import interpreters
from harness.model import Run
from harness.run.execution import Worker


@dataclass
class Ahead:
    """At most one worker that waits for its run, if `on`. `next` is the run that follows the current one, if any."""

    on: bool = False
    next: Run | None = None
    _waiting: tuple[Run, Worker, Path] | None = None

    def start(self, contract: str, log_of: Callable[[Run], Path]) -> None:
        """Start the next run's worker with its own log. If none can be started, the run starts one.

        A worker that is already started stays.
        """
        if self.next is None or (self._waiting and self._waiting[0] is self.next):
            return
        self.close()
        entry, environment = self.next.case.transport, self.next.case.environment
        with suppress(OSError):  # a full disk or missing folder: the run meets it again and reports it
            log, command = log_of(self.next), interpreters.command_of(entry, environment)
            self._waiting = self.next, Worker(log, (*command, contract, entry.id, entry.module)), log

    def take(self, run: Run) -> Worker | None:
        """Return the worker that waits for this run, if any; end one that waits for another run."""
        if self._waiting is None or self._waiting[0] is not run:
            self.close()
            return None
        (_, worker, _), self._waiting = self._waiting, None
        return worker

    def close(self) -> None:
        """End the waiting worker and remove its empty log."""
        if self._waiting is None:
            return
        (_, worker, log), self._waiting = self._waiting, None
        worker.end()
        log.unlink(missing_ok=True)
