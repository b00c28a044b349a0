"""What the lab does beside a transport while that is at work: look at its processes, kill one, change a table."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.machine.connections import Connection, Connections
from harness.machine.marked import Usage, processes
from harness.systems.system import System

_END_SECONDS = 10.0
_LOOK_SECONDS = 0.5  # between two looks at the memory of processes: one takes some milliseconds a process
_AWAIT_SECONDS = 0.02  # between two looks for the first connection: an engine that starts needs the cores itself
_KILL_SECONDS = 0.0005  # between two looks from then on
_CHANGE_SECONDS = 0.05
# What of an engine's processes drives and works not, by a word of its command line: to kill it would end the program.
_DRIVERS = ("org.apache.spark.deploy.SparkSubmit",)


class Beside(threading.Thread):
    """A thread beside a run: `step` again and again until it returns True or the run is over.

    `connection` is its own to a database, which it closes at its end.
    """

    def __init__(self, seconds: float, connection: Any = None) -> None:
        super().__init__(daemon=True)
        self._seconds, self._over, self.error = seconds, threading.Event(), ""
        self._connection = connection

    def step(self) -> bool:
        """Do it once; True when it is done for good."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            while not self._over.is_set() and not self.step():
                self._over.wait(self._seconds)
        except Exception as error:  # of a server that died meanwhile, or that refused
            self.error = f"{type(error).__name__}: {error}"

    def finish(self) -> None:
        """End it."""
        self._over.set()
        if self.is_alive():
            self.join(_END_SECONDS)
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Looking(Beside):
    """Looks at the memory of all processes that carry a mark."""

    def __init__(self, mark: str) -> None:
        super().__init__(_LOOK_SECONDS)
        self._mark, self.usage = mark, Usage()

    def step(self) -> bool:
        self.usage.look(processes(self._mark))
        return False


class Killing(Beside):
    """Kills one of the processes that carry a mark, before or after it has committed what it wrote to a database.

    One that is to be killed after it has committed must not tell its engine before: it is stopped while it is looked
    at, and goes on for half a millisecond between two looks. `killed` is its number, 0 as long as none was.
    """

    def __init__(self, system: System, endpoints: dict[str, str], mark: str, moment: str) -> None:
        super().__init__(_AWAIT_SECONDS, system.client.open_connection(endpoints))
        self._moment, self.killed = moment, 0
        self._told: list[int] = []  # who has committed and read the answer
        self._connections = Connections(mark, system.ports(endpoints), _DRIVERS)
        self._watch = system.meanwhile.watch(self._connection)

    def step(self) -> bool:
        opened = self._connections.now()
        if opened:
            self._seconds = _KILL_SECONDS
        elif self._seconds == _AWAIT_SECONDS:
            return False  # nobody can have written yet
        stopped = {one.pid for one in opened} if self._moment == "after" else set()
        for pid in stopped:
            _sent(pid, signal.SIGSTOP)
        try:
            opened = self._connections.now() if stopped else opened
            writing, committed = self._watch.look(opened)
            found = writing if self._moment == "before" else self._of_committed(writing, committed, opened)
            self.killed = next((pid for pid in found if _sent(pid, signal.SIGKILL)), 0)
        finally:
            for pid in stopped - {self.killed}:
                _sent(pid, signal.SIGCONT)
        return bool(self.killed)

    def _of_committed(self, writing: list[int], committed: list[int], opened: Sequence[Connection]) -> list[int]:
        """Return whom to kill: who has not read the server's answer yet, or at last who has and may have told of it."""
        unread = {one.pid for one in opened if one.unread}
        self._told += [pid for pid in committed if pid not in unread]
        certain = [pid for pid in committed if pid in unread]
        return certain or ([] if writing else self._told)


def _sent(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process and say whether it was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Changing(Beside):
    """Somebody who changes a table while it is read, from when the folder `begins` has its first file.

    `what` are the table, the small one and the column of dates, `steps` the changes so far.
    """

    def __init__(self, system: System, endpoints: dict[str, str], what: tuple[str, str, str], begins: Path) -> None:
        super().__init__(_CHANGE_SECONDS, system.client.open_connection(endpoints))
        self._change: Callable[..., Any] = system.meanwhile.change
        self._what, self._begins, self.steps = what, begins, 0

    def step(self) -> bool:
        if self.steps or any(self._begins.iterdir()):
            self._change(self._connection, *self._what, self.steps)
            self.steps += 1
        return False
