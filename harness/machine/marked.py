"""Processes identified by a mark in their environment, regardless of their current parent; Linux only.

An engine's processes start further processes. Some of these leave their parent, their session and their group.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
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


# Which of the processes that carry a mark are connected to a server; Linux only (proc_pid_net(5)).
#
# A check takes well under a millisecond unless there is a new connection, because only a new one's owner is searched.

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"


@dataclass(frozen=True)
class Connection:
    """An open connection: its local port, its process, and whether it has unread data from the server."""

    port: int
    pid: int
    unread: bool


class Connections:
    """Connections of marked processes to some ports, except processes with a word of `not_of` in their command."""

    def __init__(self, mark: str, ports: Collection[int], not_of: Collection[str] = ()) -> None:
        self._mark, self._ports, self._not_of = mark, ports, not_of
        self._owners: dict[str, int | None] = {}  # by the inode of a socket; None for other processes

    def now(self) -> list[Connection]:
        """Return the connections that are open now."""
        opened = list(_established(self._ports))
        if new := {inode for inode, _, _ in opened} - self._owners.keys():
            ours = [pid for pid in processes(self._mark) if self._counts(pid)]
            found = {inode: pid for pid in ours for inode in _sockets_of(pid)}
            self._owners |= {inode: found.get(inode) for inode in new}
        owned = ((port, self._owners[inode], unread) for inode, port, unread in opened)
        return [Connection(port, pid, unread) for port, pid, unread in owned if pid is not None]

    def _counts(self, pid: int) -> bool:
        try:
            return not any(word in psutil.Process(pid).cmdline() for word in self._not_of)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False


def _established(ports: Collection[int]) -> Iterator[tuple[str, int, bool]]:
    """Yield (inode, local port, has unread data) for each connection to one of the ports."""
    for table in _TABLES:
        with suppress(FileNotFoundError), open(table) as file:  # a kernel without IPv6 has only one of them
            next(file)
            for line in file:
                _, here, there, state, *more = line.split()
                if state == _ESTABLISHED and int(there.rpartition(":")[2], 16) in ports:
                    queued = int(more[0].rpartition(":")[2], 16)  # tx_queue:rx_queue
                    yield more[5], int(here.rpartition(":")[2], 16), queued > 0


def _sockets_of(pid: int) -> Iterator[str]:
    """Yield the inodes of a process's sockets."""
    folder = f"/proc/{pid}/fd"
    with suppress(OSError):  # it has ended
        for name in os.listdir(folder):
            with suppress(OSError):  # this one is closed already
                target = os.readlink(f"{folder}/{name}")
                if target.startswith("socket:["):
                    yield target[len("socket:[") : -1]
