"""The lab's actions during a transport's call: watch its processes, kill one, change a table."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.machine.marked import Connection, Connections, Usage, processes
from harness.model import Connection as ClientConnection
from harness.systems.system import System

_END_SECONDS = 10.0
_LOOK_SECONDS = 0.5  # between two checks of processes' memory; a check takes milliseconds per process
_AWAIT_SECONDS = 0.02  # between two checks for the first connection: a starting engine needs the cores itself
_KILL_SECONDS = 0.0005  # between two checks after that
_CHANGE_SECONDS = 0.05
# Words in the command lines of an engine's driver processes: killing one would end the program.
_DRIVERS = ("org.apache.spark.deploy.SparkSubmit",)


class DuringCall(threading.Thread):
    """A thread next to a run: `step` repeats until it returns True or the run is over.

    `connection` is its own database connection, which it closes at its end.
    """

    def __init__(self, seconds: float, connection: ClientConnection = None) -> None:
        super().__init__(daemon=True)
        self._seconds, self._over, self.error = seconds, threading.Event(), ""
        self._connection = connection

    def step(self) -> bool:
        """Do one step; True when there is nothing more to do."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            while not self._over.is_set() and not self.step():
                self._over.wait(self._seconds)
        except Exception as error:  # the server died meanwhile, or refused
            self.error = f"{type(error).__name__}: {error}"

    def finish(self) -> None:
        """End it."""
        self._over.set()
        if self.is_alive():
            self.join(_END_SECONDS)
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class Looking(DuringCall):
    """Watches the memory of all processes that carry a mark."""

    def __init__(self, mark: str) -> None:
        super().__init__(_LOOK_SECONDS)
        self._mark, self.usage = mark, Usage()

    def step(self) -> bool:
        self.usage.look(processes(self._mark))
        return False


class Killing(DuringCall):
    """Kills one of the processes that carry a mark, before or after it has committed its write to a database.

    A process that is to be killed after its commit must not report the commit to its engine first. It is therefore
    stopped during each check, and runs for half a millisecond between two checks. `killed` is its pid, 0 before the
    kill.
    """

    def __init__(self, system: System, endpoints: dict[str, str], mark: str, moment: str) -> None:
        super().__init__(_AWAIT_SECONDS, system.client.open_connection(endpoints))
        self._moment, self.killed = moment, 0
        self._told: list[int] = []  # processes that have committed and read the answer
        self._connections = Connections(mark, system.ports(endpoints), _DRIVERS)
        self._watch = system.concurrent_changes.watch(self._connection)

    def step(self) -> bool:
        opened = self._connections.now()
        if opened:
            self._seconds = _KILL_SECONDS
        elif self._seconds == _AWAIT_SECONDS:
            return False  # no process can have written yet
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
        """Return the process to kill: one that has not read the server's answer, or at last one that has."""
        unread = {one.pid for one in opened if one.unread}
        self._told += [pid for pid in committed if pid not in unread]
        certain = [pid for pid in committed if pid in unread]
        return certain or ([] if writing else self._told)


def _sent(pid: int, number: signal.Signals) -> bool:
    """Send a signal to a process and return whether it still existed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Changing(DuringCall):
    """Changes a table while it is read, from the first file in the folder `begins`.

    `what` are the table, the small one and the date column, `steps` the changes so far.
    """

    def __init__(self, system: System, endpoints: dict[str, str], what: tuple[str, str, str], begins: Path) -> None:
        super().__init__(_CHANGE_SECONDS, system.client.open_connection(endpoints))
        self._change: Callable[..., object] = system.concurrent_changes.change
        self._what, self._begins, self.steps = what, begins, 0

    def step(self) -> bool:
        if self.steps or any(self._begins.iterdir()):
            self._change(self._connection, *self._what, self.steps)
            self.steps += 1
        return False
