"""A run's reference connections, one per database; every call ends with an answer, an error, or NoAnswer.

Calls run in a separate thread. A client that waits in C code blocks signals. ADBC handles SIGINT itself if called in
the main thread, and reports it as a query error. No client has a deadline for a server that exists but does not answer.
Only closing its connection ends such a call.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar, cast

import psutil

from harness.machine import stopping
from harness.machine.stopping import Patience
from harness.model import Connection, LabError
from harness.systems import SYSTEMS
from harness.systems.system import System

PATIENCE_SECONDS = 30.0  # for one call, unless the run's time limit is longer: loading and fetching take that long
GREETING_SECONDS = 20.0  # for SELECT 1, which a healthy server answers in milliseconds
_OPENING_SECONDS = 20.0  # an address without a server is detected in 5 s
_CUT_SECONDS = 2.0  # for a call to notice its closed connection
_CUT_AGAIN_SECONDS = 0.2
_LOOK_SECONDS = 0.1
# Connections that a call did not release: closing or collecting one that C code uses crashes the process.
_ABANDONED: list[Connection] = []
_Answer = TypeVar("_Answer")
_Socket = tuple[object, object]


class NoAnswer(LabError):
    """A server did not answer in time: it hangs, or its machine is no longer reachable."""


def within(
    seconds: float,
    system: str,
    what: str,
    call: Callable[[], _Answer],
    cut: Callable[[], object] = lambda: None,
    began: Callable[[threading.Thread], object] = lambda thread: None,
) -> _Answer:
    """Make a call in a thread and return its answer, or raise its error. Raises NoAnswer after `seconds`.

    It then calls `cut` to close the connection, even if a signal ends the waiting. `began` receives the thread.
    """
    seconds = stopping.seconds_left(seconds)
    answers: SimpleQueue[tuple[_Answer | None, BaseException | None]] = SimpleQueue()
    waited_for: SimpleQueue[bool] = SimpleQueue()

    def work() -> None:
        if not waited_for.get():
            return
        try:
            answers.put((call(), None))
        except BaseException as error:
            answers.put((None, error))

    thread = threading.Thread(target=work, name=f"{system} {what}", daemon=True)
    try:
        # If a signal arrives while the thread starts, the thread does nothing, because the connection may close at any
        # time.
        thread.start()
        began(thread)
        waited_for.put(True)
        answer, error = _first(answers, seconds)
    except BaseException as reason:
        waited_for.put(False)
        _cut_short(thread, cut)
        if isinstance(reason, Empty):
            raise NoAnswer(f"the {system} server did not answer within {seconds:.0f} s ({what})") from None
        raise
    if error is not None:
        raise error
    return cast(_Answer, answer)


def _first(answers: SimpleQueue[_Answer], seconds: float) -> _Answer:
    """Return the answer when it arrives. Raises Empty after this many seconds, not counting those while stopped."""
    patience = Patience(seconds)
    while (left := patience.left()) > 0:
        with suppress(Empty):
            return answers.get(timeout=min(left, _LOOK_SECONDS))
    raise Empty


def _cut_short(thread: threading.Thread, cut: Callable[[], object]) -> None:
    """Close a call's connection until the call has noticed: a client may retry over another one."""
    deadline = time.monotonic() + _CUT_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        cut()
        thread.join(_CUT_AGAIN_SECONDS)


class Reference:
    """The reference connection to one database, opened on first use and again after `close`.

    `patience` are the seconds that one call may take.
    """

    def __init__(self, system: System, endpoints: dict[str, str], patience: float) -> None:
        self._system, self._client, self._endpoints, self._patience = system.name, system.client, endpoints, patience
        self._connection: Connection = None
        self._last: list[threading.Thread] = []  # threads of the last call
        self._sockets = partial(_sockets, system.ports(endpoints))
        self._of_others = set(self._sockets())

    def ask(
        self, call: Callable[..., _Answer], *arguments: object, seconds: float | None = None, once: bool = False
    ) -> _Answer:
        """Return the result of `call(connection, *arguments)`. Raises NoAnswer, and LabError without a connection.

        Repeat a failed call over a new connection, unless it may run only `once`: a cut connection is not the run's
        fault.
        """
        try:
            return self._asked(call, arguments, seconds)
        except (LabError, NoAnswer):
            raise
        except Exception:
            if once:
                raise
            self.close()
            return self._asked(call, arguments, seconds)

    def _asked(self, call: Callable[..., _Answer], arguments: tuple[object, ...], seconds: float | None) -> _Answer:
        if self._connection is None:
            self._connection = self._within(_OPENING_SECONDS, "opening a connection", self._opened)
        try:
            return self._within(seconds or self._patience, call.__name__, partial(call, self._connection, *arguments))
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, NoAnswer):
                self.close()  # it was cut
            raise

    def greet(self) -> None:
        """Check that the server answers. Raises NoAnswer or LabError if it does not."""
        self.ask(self._client.say, "SELECT 1", seconds=GREETING_SECONDS)

    def close(self) -> None:
        """Close the connection; a server that hangs or is gone does not delay this."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        for thread in self._last:
            thread.join(_CUT_AGAIN_SECONDS)  # a thread that has answered ends shortly after
        if any(thread.is_alive() for thread in self._last):
            _ABANDONED.append(connection)
        else:
            with suppress(Exception):  # the server may be gone: closing can fail in any way, which does not matter
                self._within(_CUT_SECONDS, "closing", connection.close)

    def _opened(self) -> Connection:
        connection = self._client.open_connection(self._endpoints)
        self._client.ensure_namespace(connection)
        return connection

    def _within(self, seconds: float, what: str, call: Callable[[], _Answer]) -> _Answer:
        self._last.clear()
        return within(seconds, self._system, what, call, self._cut, self._last.append)

    def _cut(self) -> None:
        """Close our connections to this server under any waiting call, except those that existed before this one."""
        for identity, descriptor in self._sockets().items():
            if identity not in self._of_others:
                with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as found:
                    found.shutdown(socket.SHUT_RDWR)


class References:
    """Connections that are opened on first use and again after `forget`.

    Every call to a server ends within `patience` seconds, or raises NoAnswer: `hung` names the databases that did.
    `lives` counts how often a database was forgotten: its data from an earlier life may be gone.
    """

    def __init__(self, endpoints: dict[str, str], patience: float = PATIENCE_SECONDS) -> None:
        self._endpoints, self._patience = endpoints, patience
        self._opened: dict[str, Reference] = {}
        self.lives = dict.fromkeys(SYSTEMS, 0)
        self.hung: set[str] = set()

    def ask(self, system: str, call: Callable[..., _Answer], *arguments: object, once: bool = False) -> _Answer:
        """Return the result of `call(connection, *arguments)`; see `Reference.ask`."""
        return self._watched(system, lambda: self._reference(system).ask(call, *arguments, once=once))

    def greet(self, system: str) -> None:
        """Check that a database answers. Raises NoAnswer, or LabError if no connection can be opened."""
        self._watched(system, self._reference(system).greet)

    def forget(self, system: str) -> None:
        """Drop a database's connection after its server has died."""
        self.lives[system] += 1
        if reference := self._opened.pop(system, None):
            reference.close()

    def close(self, tidy: Callable[[str], object]) -> list[str]:
        """Clean up every connected database and close its connection; return which could not be cleaned up."""
        left = []
        for system in list(self._opened):
            try:
                tidy(system)
            except Exception:  # a server that is gone or hangs cannot be cleaned up
                left.append(system)
            self.forget(system)
        return left

    def _watched(self, system: str, call: Callable[[], _Answer]) -> _Answer:
        try:
            return call()
        except NoAnswer:
            self.hung.add(system)
            self.forget(system)
            raise

    def _reference(self, system: str) -> Reference:
        if system not in self._opened:
            self._opened[system] = Reference(SYSTEMS[system], self._endpoints, self._patience)
        return self._opened[system]


def answered(system: str, call: Callable[[], _Answer]) -> _Answer:
    """Make a call to a server without an open Reference. Raises LabError if it does not answer."""
    try:
        return within(PATIENCE_SECONDS, system, "its first call", call)
    except NoAnswer as error:
        raise LabError(f"{error}; is it up?") from None


def _sockets(ports: set[int]) -> dict[_Socket, int]:
    """Return the descriptors of this process's connections to these ports, by their two addresses."""
    connections = psutil.Process().net_connections("tcp")
    return {(c.laddr, c.raddr): c.fd for c in connections if c.raddr and c.raddr.port in ports and c.fd >= 0}
