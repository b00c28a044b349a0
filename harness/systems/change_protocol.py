"""Changes to a table while a transport works on it, and detection of writers; each database implements them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from harness.model import Connection

if TYPE_CHECKING:
    from harness.machine.connections import Connection


class Watch(Protocol):
    """Detects writers in the lab's namespace, as far as the server reports them."""

    def look(self, opened: Sequence[Connection]) -> tuple[list[int], list[int]]:
        """Return the processes that have written and not committed, and those that have just committed.

        `opened` are the server connections of the processes to watch.
        """


class ConcurrentChanges(Protocol):
    """Changes to a table while a transport works on it: a database package's module `meanwhile`.

    `PROFILE` is the profile of a table that accepts repeated rows.
    """

    PROFILE: str

    def watch(self, connection: Connection) -> Watch:
        """Start to watch writers and commits."""

    def change(self, connection: Connection, table: str, warmup: str, month: str, step: int) -> None:
        """Add all rows of one month of the small table `warmup` in one step: the first (`step` is even) or the last.

        `month` is the date column. A consistent read sees the whole change or none of it.
        """
