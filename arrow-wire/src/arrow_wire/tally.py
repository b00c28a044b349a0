"""How many rows and bytes a write has sent, over all of its connections."""

import threading
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Progress: TypeAlias = Callable[[int], object]  # given the rows so far, by one thread at a time


class Written(NamedTuple):
    """What a write has done: its rows, and the bytes that they were on the wire."""

    rows: int
    bytes: int


class Tally:
    """Counts what several threads send. What `progress` raises ends the write, and nothing is written then."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._lock, self.progress = threading.Lock(), progress
        self._rows = self._bytes = 0

    def add(self, rows: int, size: int) -> None:
        """Count rows and bytes that were sent, and say so."""
        with self._lock:
            self._rows += rows
            self._bytes += size
            if self.progress is not None and rows:
                self.progress(self._rows)

    @property
    def written(self) -> Written:
        """What was counted until now."""
        return Written(self._rows, self._bytes)
