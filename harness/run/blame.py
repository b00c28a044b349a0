"""What of a run that failed is the machine's doing and not the transport's: disks without space, memory taken back."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.machine.inventory import free_bytes
from harness.model import Outcome, Status
from harness.systems import SYSTEMS

FULL_BYTES = 32_000_000  # with less a database cannot go on (its log may grow by twice 16 MB), and may not say why
STARVED = "the kernel ended a process for want of memory during this run"
_NO_SPACE = (
    *(os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "disk is full"),
    *(words for system in SYSTEMS.values() for words in system.no_space),
)
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

    def judged(self, outcome: Outcome, starved_before: bool = False, limited: bool = False) -> Outcome:
        """Return the outcome as the transport deserves it: `again` where the machine is to blame.

        That memory was wanted is the machine's doing once; a run that it ends for the second time needs too much. A run
        that was `limited` in its memory needs more than it was given.
        """
        if outcome.status in _INNOCENT:
            return outcome
        ended = ended_for_memory()
        if ended is not None and self.ended_before is not None and ended > self.ended_before:
            if limited:
                return replace(outcome, error=f"it needs more memory than its limit; {outcome.error}")
            if starved_before:
                return replace(
                    outcome, error=f"{STARVED}, for the second time: it needs more than there is; {outcome.error}"
                )
            return replace(outcome, status=Status.AGAIN, error=f"{STARVED}; {outcome.error}")
        if no_space(outcome.error) or self.full():
            text = f"a disk of this machine had no space left during this run; {outcome.error}"
            return replace(outcome, status=Status.AGAIN, error=text)
        return outcome


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
