"""What a database's room does to a table while a transport is at work on it, and how it sees who writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harness.machine.connections import Connection


class Watch(Protocol):
    """Who writes to the lab's namespace, as far as the server tells."""

    def look(self, opened: Sequence[Connection]) -> tuple[list[int], list[int]]:
        """Return the processes that have written and not committed, and those that have just committed.

        `opened` are the connections to the server that processes of interest have.
        """


class Meanwhile(Protocol):
    """What happens to a table while a transport is at it: the module `meanwhile` of a room.

    `PROFILE` is the form of a table that takes rows which come again.
    """

    PROFILE: str

    def watch(self, connection: Any) -> Watch:
        """Begin to watch who writes and who has committed."""

    def change(self, connection: Any, table: str, warmup: str, month: str, step: int) -> None:
        """Add all rows of the first (`step` is even) or the last month of the small table `warmup`, at once.

        `month` is the column of dates. Who reads as of one moment sees all of it or nothing.
        """
