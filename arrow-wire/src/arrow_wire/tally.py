"""The rows and bytes that a write has sent, over all of its connections."""

import threading
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Progress: TypeAlias = Callable[[int], object]  # given the rows so far, by one thread at a time


class Written(NamedTuple):
    """The result of a write: its rows, and their bytes on the wire."""

    rows: int
    bytes: int


class Tally:
    """Counts rows and bytes that several threads send. If `progress` raises, the write ends, with nothing written."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._lock, self.progress = threading.Lock(), progress
        self._rows = self._bytes = 0

    def add(self, rows: int, size: int) -> None:
        """Count rows and bytes that were sent, and report them."""
        with self._lock:
            self._rows += rows
            self._bytes += size
            if self.progress is not None and rows:
                self.progress(self._rows)

    @property
    def written(self) -> Written:
        """The counts so far."""
        return Written(self._rows, self._bytes)
