"""A timeout on a clock that stops while this process is stopped (Ctrl-Z, a debugger), and how busy the machine is."""

import time
from pathlib import Path

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


def slowdown() -> float:
    """Return how many times as long as on an idle machine this thread has taken so far; 1 where Linux does not tell."""
    try:
        worked, waited, _ = map(int, Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split())
    except OSError:
        return 1.0
    return (worked + waited) / worked if worked else 1.0
