"""Causes of a failed run other than the transport.

These are a full disk, lack of memory, too few processes or files, or a server that another user interrupted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.machine.inventory import free_bytes
from harness.machine.shortage import SHORT, missing
from harness.model import FINE, Outcome, Status
from harness.systems import SYSTEMS

# With less a database cannot continue (its log may grow by twice 16 MB), and may not report why.
FULL_BYTES = 32_000_000
STARVED = "the kernel ended a process for want of memory during this run"
_NO_SPACE = (
    *(os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "disk is full"),
    *(words for system in SYSTEMS.values() for words in system.no_space),
)
INTERRUPTED = "another user interrupted the server during this run"
ONCE = (STARVED, SHORT, INTERRUPTED)  # prefixes of reasons that excuse a run once
_INTERRUPTED = tuple(words for system in SYSTEMS.values() for words in system.interrupted)
_INNOCENT = (*FINE, Status.AGAIN)


def no_space(text: str) -> bool:
    """Return whether an error reports a full disk, in the words of the machine, SQLite or a database."""
    return any(words in text for words in _NO_SPACE)


@dataclass(frozen=True)
class Shortages:
    """The folders whose disks a run uses, and how many processes the kernel had killed for memory before it."""

    places: Sequence[Path]
    ended_before: int | None

    def full(self) -> Path | None:
        """Return a folder whose disk is full, if there is one."""
        return next((place for place in self.places if free_bytes(place) < FULL_BYTES), None)

    def judged(
        self, outcome: Outcome, excused_before: bool = False, limited: bool = False, disturbed: str = ""
    ) -> Outcome:
        """Return the outcome attributable to the transport: `again` if it is not to blame.

        A lack of memory, processes or files, or an interrupted server, excuses a run once (ONCE). If the run meets it
        again, the run itself needs too much or causes it. A run with `limited` memory needs more than it got.
        `disturbed` describes interference with the run's server.
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
        if excused_before and (starved or not disturbed):  # the kernel kills server processes, too
            text = f"{excuse}, for the second time: it needs more than there is; {outcome.error}"
            return replace(outcome, error=text)
        return replace(outcome, status=Status.AGAIN, error=f"{excuse}; {outcome.error}")


def _excuse(error: str, disturbed: str) -> str:
    """Return the reason that excuses a failed run, with a prefix from ONCE; empty without one."""
    if disturbed:
        return f"{INTERRUPTED}: {disturbed}"
    if any(words in error for words in _INTERRUPTED):
        return INTERRUPTED
    return missing(error)


def watch(places: Sequence[Path]) -> Shortages:
    """Record the state before a run."""
    return Shortages(places, ended_for_memory())


def ended_for_memory(counters: Path = Path("/proc/vmstat")) -> int | None:
    """Return how many processes the kernel has killed for lack of memory so far; None if it does not report it.

    Kills within control groups count, and perhaps those in another container.
    """
    try:
        lines = dict(line.split() for line in counters.read_text().splitlines())
    except (OSError, ValueError):
        return None
    return int(lines["oom_kill"]) if "oom_kill" in lines else None
