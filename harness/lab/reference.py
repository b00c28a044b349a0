"""A reference connection whose every call ends: with an answer, with an error, or with NoAnswer after its patience.

Calls are made in a thread of their own. A client that waits in C code lets no signal through, ADBC takes SIGINT for
itself where it is called in the main thread (and reports it as an error of the query), and no client has a deadline for
a server that is there but does not answer: only closing the connection under it ends such a call.
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
from typing import Any, TypeVar

import psutil

from harness.machine import stopping
from harness.machine.patience import Patience
from harness.model import LabError
from harness.systems.system import System

PATIENCE_SECONDS = (
    30.0  # for one call, where the time limit of a run is not longer: loading and fetching take that long
)
GREETING_SECONDS = 20.0  # for SELECT 1, which a server that is well answers in milliseconds
_OPENING_SECONDS = 20.0  # an address that nobody is at is found in 5
_CUT_SECONDS = 2.0  # for a call to notice that its connection is closed
_CUT_AGAIN_SECONDS = 0.2
_LOOK_SECONDS = 0.1
# Connections that a call would not leave: to close or collect one under C code that is at it crashes the process.
_ABANDONED: list[Any] = []
_Answer = TypeVar("_Answer")
_Socket = tuple[Any, Any]


class NoAnswer(LabError):
    """A server did not answer in time: it hangs, or its machine cannot be reached any more."""


def within(
    seconds: float,
    system: str,
    what: str,
    call: Callable[[], _Answer],
    cut: Callable[[], object] = lambda: None,
    began: Callable[[threading.Thread], object] = lambda thread: None,
) -> _Answer:
    """Make a call in a thread and return its answer, or raise its error. Raises NoAnswer after `seconds`.

    `cut` is then told to close the connection, also where a signal ends the waiting. `began` is told of the thread.
    """
    seconds = stopping.seconds_left(seconds)
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
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
        # Should a signal come while the thread starts, it does nothing: the connection may be closed at any moment.
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
    return answer


def _first(answers: SimpleQueue[_Answer], seconds: float) -> _Answer:
    """Return the answer as it comes. Raises Empty after so many seconds, without those in which we were stopped."""
    patience = Patience(seconds)
    while (left := patience.left()) > 0:
        with suppress(Empty):
            return answers.get(timeout=min(left, _LOOK_SECONDS))
    raise Empty


def _cut_short(thread: threading.Thread, cut: Callable[[], object]) -> None:
    """Close the connection under a call until the call has noticed: a client may try again over another one."""
    deadline = time.monotonic() + _CUT_SECONDS
    while thread.is_alive() and time.monotonic() < deadline:
        cut()
        thread.join(_CUT_AGAIN_SECONDS)


class Reference:
    """The reference connection to one database, opened on first use and again after it was given up.

    `patience` are the seconds that one call may take.
    """

    def __init__(self, system: System, endpoints: dict[str, str], patience: float) -> None:
        self._system, self._client, self._endpoints, self._patience = system.name, system.client, endpoints, patience
        self._connection: Any = None
        self._last: list[threading.Thread] = []  # the thread of the last call
        self._sockets = partial(_sockets, system.ports(endpoints))
        self._of_others = set(self._sockets())

    def ask(
        self, call: Callable[..., _Answer], *arguments: Any, seconds: float | None = None, once: bool = False
    ) -> _Answer:
        """Return what `call(connection, *arguments)` does. Raises NoAnswer, and LabError where none can be opened.

        What fails is tried again over a new connection, unless it may be done only `once`: the old one may have been
        cut, which is nothing that a run has done.
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

    def _asked(self, call: Callable[..., _Answer], arguments: tuple[Any, ...], seconds: float | None) -> _Answer:
        if self._connection is None:
            self._connection = self._within(_OPENING_SECONDS, "opening a connection", self._opened)
        try:
            return self._within(seconds or self._patience, call.__name__, partial(call, self._connection, *arguments))
        except BaseException as error:
            if not isinstance(error, Exception) or isinstance(error, NoAnswer):
                self.close()  # it was cut
            raise

    def greet(self) -> None:
        """See that the server answers. Raises NoAnswer or LabError where it does not."""
        self.ask(self._client.greet, seconds=GREETING_SECONDS)

    def close(self) -> None:
        """Give the connection up; a server that hangs or is gone does not hold this up."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        for thread in self._last:
            thread.join(_CUT_AGAIN_SECONDS)  # one that has answered ends a moment later
        if any(thread.is_alive() for thread in self._last):
            _ABANDONED.append(connection)
        else:
            with suppress(Exception):  # of a server that is gone: closing can fail in any way and does not matter
                self._within(_CUT_SECONDS, "closing", connection.close)

    def _opened(self) -> Any:
        connection = self._client.open_connection(self._endpoints)
        self._client.ensure_namespace(connection)
        return connection

    def _within(self, seconds: float, what: str, call: Callable[[], _Answer]) -> _Answer:
        self._last.clear()
        return within(seconds, self._system, what, call, self._cut, self._last.append)

    def _cut(self) -> None:
        """Close our connections to this server under whoever waits for them, but those there were before this one."""
        for identity, descriptor in self._sockets().items():
            if identity not in self._of_others:
                with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as found:
                    found.shutdown(socket.SHUT_RDWR)


def answered(system: str, call: Callable[[], _Answer]) -> _Answer:
    """Make a call to a server that no Reference is open to. Raises LabError where it does not answer."""
    try:
        return within(PATIENCE_SECONDS, system, "its first call", call)
    except NoAnswer as error:
        raise LabError(f"{error}; is it up?") from None


def _sockets(ports: set[int]) -> dict[_Socket, int]:
    """Return the descriptors of this process's connections to these ports, by their two addresses."""
    connections = psutil.Process().net_connections("tcp")
    return {(c.laddr, c.raddr): c.fd for c in connections if c.raddr and c.raddr.port in ports and c.fd >= 0}
