"""What of a run that failed is not the transport's doing: disks without space, memory taken back, too few processes or
files, a server that somebody else has interrupted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.machine.inventory import free_bytes
from harness.machine.shortage import SHORT, missing
from harness.model import Outcome, Status
from harness.systems import SYSTEMS

FULL_BYTES = 32_000_000  # with less a database cannot go on (its log may grow by twice 16 MB), and may not say why
STARVED = "the kernel ended a process for want of memory during this run"
_NO_SPACE = (
    *(os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "disk is full"),
    *(words for system in SYSTEMS.values() for words in system.no_space),
)
INTERRUPTED = "somebody interrupted the server during this run"
ONCE = (STARVED, SHORT, INTERRUPTED)  # beginnings of what excuses a run, but not for the second time
_INTERRUPTED = tuple(words for system in SYSTEMS.values() for words in system.interrupted)
_INNOCENT = (Status.OK, Status.UNAVAILABLE, Status.UNSUPPORTED, Status.AGAIN)


def no_space(text: str) -> bool:
    """Say whether an error is about a disk without space, in the words of the machine, SQLite or a database."""
    return any(words in text for words in _NO_SPACE)


@dataclass(frozen=True)
class Shortages:
    """The folders whose disks a run uses, and how many processes the kernel had ended for memory when it began."""

    places: Sequence[Path]
    ended_before: int | None

    def full(self) -> Path | None:
        """Return a folder whose disk has no space left, if there is one."""
        return next((place for place in self.places if free_bytes(place) < FULL_BYTES), None)

    def judged(
        self, outcome: Outcome, excused_before: bool = False, limited: bool = False, disturbed: str = ""
    ) -> Outcome:
        """Return the outcome as the transport deserves it: `again` where it is not to blame.

        That memory, processes or files were wanted, or a server was interrupted, excuses a run once (ONCE): one that
        it meets again needs too much, or does it itself. A run that was `limited` in its memory needs more than it was
        given. `disturbed` is what somebody was seen to do to its server.
        """
        if outcome.status in _INNOCENT:
            return outcome
        if no_space(outcome.error) or self.full():
            text = f"a disk of this machine had no space left during this run; {outcome.error}"
            return replace(outcome, status=Status.AGAIN, error=text)
        ended = ended_for_memory()
        starved = ended is not None and self.ended_before is not None and ended > self.ended_before
        if starved and limited:
            return replace(outcome, error=f"it needs more memory than its limit; {outcome.error}")
        if not (excuse := STARVED if starved else _excuse(outcome.error, disturbed)):
            return outcome
        if excused_before and (starved or not disturbed):  # the kernel kills processes of servers, too
            text = f"{excuse}, for the second time: it needs more than there is; {outcome.error}"
            return replace(outcome, error=text)
        return replace(outcome, status=Status.AGAIN, error=f"{excuse}; {outcome.error}")


def _excuse(error: str, disturbed: str) -> str:
    """Return what a failed run is excused by, in words that begin as one of ONCE; empty where by nothing."""
    if disturbed:
        return f"{INTERRUPTED}: {disturbed}"
    if any(words in error for words in _INTERRUPTED):
        return INTERRUPTED
    return missing(error)


def watch(places: Sequence[Path]) -> Shortages:
    """Look before a run."""
    return Shortages(places, ended_for_memory())


def ended_for_memory(counters: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the kernel has ended for want of memory so far; None where that is not told.

    Those of control groups count too; so may one of another container.
    """
    try:
        lines = dict(line.split() for line in counters.read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(lines["oom_kill"]) if "oom_kill" in lines else None
