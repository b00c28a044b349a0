"""How long something may take, on a clock that stands still while this process is stopped (Ctrl-Z, a debugger)."""

import time

_STEP_SECONDS = 0.25  # between two looks; a longer gap was no waiting: this process was stopped


class Patience:
    """So many seconds; whoever waits looks at `left` every tenth of a second, and at what is there after each look."""

    def __init__(self, seconds: float) -> None:
        self._left, self._looked = seconds, time.monotonic()

    def left(self) -> float:
        """Return the seconds that are left, 0 or less at their end."""
        now = time.monotonic()
        self._left -= min(now - self._looked, _STEP_SECONDS)
        self._looked = now
        return self._left

    def shorten(self, seconds: float) -> None:
        """Leave no more than so many seconds."""
        self._left = min(self._left, seconds)
