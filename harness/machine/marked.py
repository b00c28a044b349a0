"""Processes identified by a mark in their environment, regardless of their current parent; Linux only.

An engine's processes start further processes. Some of these leave their parent, their session and their group.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

VARIABLE = "LAB_JOB"  # identifies the processes that a transport has started
_ENDS_SECONDS = 5.0


def processes(mark: str) -> list[int]:
    """Return the ids, in order, of the living processes that were started with this mark in their environment."""
    wanted = f"{VARIABLE}={mark}".encode()
    return [pid for pid in psutil.pids() if wanted in _environment(pid)]


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it has ended, or is another user's; a zombie has no environment
        return []


def end(mark: str) -> list[int]:
    """Kill all of them, and those that they start meanwhile; return their ids."""
    ended: set[int] = set()
    deadline = time.monotonic() + _ENDS_SECONDS
    while (found := processes(mark)) and time.monotonic() < deadline:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended.update(found)
        time.sleep(0.02)
    return sorted(ended)


@dataclass
class Usage:
    """The usage of several processes so far: the peak of their total resident memory, and of their number."""

    peak_rss_bytes: int = 0
    processes: int = 0

    def look(self, pids: list[int]) -> None:
        """Check the processes once more. Shared memory is counted once: each process has its proportional share."""
        memory = []
        for pid in pids:
            with suppress(psutil.Error):
                memory.append(psutil.Process(pid).memory_full_info().pss)  # memory shared by n processes, divided by n
        self.peak_rss_bytes = max(self.peak_rss_bytes, sum(memory))
        self.processes = max(self.processes, len(memory))
