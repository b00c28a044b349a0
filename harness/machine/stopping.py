"""How the lab ends on SIGINT (Ctrl-C), SIGTERM and SIGHUP: in every lab, within ten seconds.

The first signal becomes one exception in the main thread, so that `with` blocks end in order: worker, tables, servers.
Later signals change nothing. A thread also receives the signal at once, even while the main thread is in C code. If the
orderly end takes too long, the thread calls all functions in `AT_LAST` and ends the process. Keepers then
clean up on their own.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# A timeout on a clock that stops while this process is stopped (Ctrl-Z, a debugger).

_STEP_SECONDS = 0.25  # between two checks; a longer gap means that this process was stopped


class Patience:
    """A number of seconds; a waiting loop checks `left` every tenth of a second, and its condition after each check."""

    def __init__(self, seconds: float) -> None:
        self._left, self._looked = seconds, time.monotonic()

    def left(self) -> float:
        """Return the remaining seconds, 0 or less at the end."""
        now = time.monotonic()
        self._left -= min(now - self._looked, _STEP_SECONDS)
        self._looked = now
        return self._left

    def shorten(self, seconds: float) -> None:
        """Leave at most this many seconds."""
        self._left = min(self._left, seconds)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TIDY_SECONDS = 4.0  # time for calls to servers at the end: dropping tables, closing connections
LAST_SECONDS = 8.5  # after this, the process is killed during its cleanup
_NO_MORE = 0  # the byte that ends the thread; no signal has this number


class _Stopping:
    """Whether a stop was requested, by which signal and when; and the thread that enforces it."""

    def __init__(self) -> None:
        self.number, self.asked_at, self._raised = 0, 0.0, False
        self.bell, self._rope = os.pipe()
        os.set_blocking(self._rope, False)
        self._thread = threading.Thread(target=self._watch, name="stopping", daemon=True)

    @contextmanager
    def ringing(self) -> Iterator[None]:
        """Make every signal ring the bell."""
        earlier = signal.set_wakeup_fd(self._rope, warn_on_full_buffer=False)
        self._thread.start()
        try:
            yield
        finally:
            signal.set_wakeup_fd(earlier)
            os.write(self._rope, bytes([_NO_MORE]))
            self._thread.join()
            os.close(self.bell)
            os.close(self._rope)

    def leave(self, number: int, frame: object) -> None:
        """Handle a signal."""
        self._ask(number)
        if not self._raised:
            self.check()

    def check(self) -> None:
        """Raise the exception that ends the lab if a stop was requested."""
        if self.number:
            self._raised = self._raised or threading.current_thread() is threading.main_thread()
            raise KeyboardInterrupt if self.number == signal.SIGINT else SystemExit(128 + self.number)

    def _ask(self, number: int) -> None:
        if not self.number:
            self.number, self.asked_at = number, time.monotonic()

    def _watch(self) -> None:
        rings = select.poll()  # select() refuses descriptors above 1,023, which a notebook may have
        rings.register(self.bell, select.POLLIN)
        while True:
            left = max(0.0, self.asked_at + LAST_SECONDS - time.monotonic()) * 1000 if self.number else None
            if not rings.poll(left):
                self._end_at_once()
            for number in os.read(self.bell, 4096):
                if number == _NO_MORE:
                    return
                if number in SIGNALS:
                    self._ask(number)

    def _end_at_once(self) -> None:
        for action in list(AT_LAST):
            with suppress(Exception):
                action()
        os.write(2, b"lab: the cleanup took too long and was cut short; the next run removes the rest\n")
        os._exit(128 + self.number)


_stop: _Stopping | None = None
AT_LAST: set[Callable[[], object]] = set()  # functions to call if the process must be killed during its cleanup


@contextmanager
def on_signals() -> Iterator[None]:
    """Turn the first of SIGNALS into KeyboardInterrupt or SystemExit(128 + signal) in the main thread.

    Does nothing in another thread or inside another `on_signals`. An ignored SIGHUP stays ignored, because nohup needs
    that. An ignored SIGINT does not, because it only results from the way a shell starts jobs.
    """
    global _stop
    if _stop is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
    stop = _Stopping()
    with stop.ringing():
        earlier = [(number, signal.signal(number, stop.leave)) for number in numbers]
        _stop = stop
        try:
            yield
        finally:
            _stop = None
            for number, handler in earlier:
                signal.signal(number, handler)


def check() -> None:
    """Raise the exception that ends the lab if a stop was requested: an interrupted run must not become a row."""
    if _stop is not None:
        _stop.check()


def seconds_left(otherwise: float) -> float:
    """Return the time limit of a call to a server: `otherwise`, or the rest of TIDY_SECONDS after a signal."""
    if _stop is None or not _stop.number:
        return otherwise
    return max(0.1, min(otherwise, _stop.asked_at + TIDY_SECONDS - time.monotonic()))
