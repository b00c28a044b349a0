"""Costs of a call outside its own process: bytes on its TCP connections, and CPU time of our servers.

Both are read from the kernel just before and just after the timing, without involving client or server. Linux only;
other systems report nothing.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness.machine.marked import processes
from harness.worker.measure import read_cpu_seconds

_LINUX = sys.platform == "linux"
# Offsets of tcpi_bytes_received and tcpi_bytes_sent (u64) in struct tcp_info of linux/tcp.h (since 4.19).
_RECEIVED, _SENT, _INFO_BYTES = 128, 200, 208
_TICK = os.sysconf("SC_CLK_TCK") if _LINUX else 100
_CUTIME = 13  # fields 16 and 17 of /proc/PID/stat (proc(5)), counted from the field after the name in brackets


class Meters:
    """Reads both meters around the body of a `with` block."""

    def __init__(self, server_pids: Iterable[int], mark: str = "") -> None:
        self._pids, self._mark = list(server_pids), mark

    def __enter__(self) -> Meters:
        self._workers = self._cpu_of_workers()
        self._cpu = servers_cpu_seconds(self._pids)
        self._wire = connections()
        return self

    def __exit__(self, *_: object) -> None:
        self._wire_after = connections()
        self._cpu_after = servers_cpu_seconds(self._pids)
        self._workers_after = self._cpu_of_workers()

    def _cpu_of_workers(self) -> dict[int, float]:
        """Return the CPU time so far of every living process that the transport started."""
        found = {}
        for pid in processes(self._mark) if self._mark else ():
            with suppress(ProcessLookupError):  # it has just ended
                found[pid] = read_cpu_seconds(pid)
        return found

    def details(self) -> dict[str, int | float]:
        """Return `server_cpu_seconds`, `workers_cpu_seconds`, `sent_bytes` and `received_bytes`, if known.

        The workers' figure covers an engine's processes that live when the call ends. The bytes are known for a client
        that keeps its connections open during the call and opens no further ones.
        """
        found = spent_by_servers(self._cpu, self._cpu_after)
        if self._workers_after:
            spent = sum(seconds - self._workers.get(pid, 0.0) for pid, seconds in self._workers_after.items())
            found["workers_cpu_seconds"] = round(spent, 6)
        if self._wire and self._wire.keys() == self._wire_after.keys():
            for place, name in enumerate(("sent_bytes", "received_bytes")):
                found[name] = sum(self._wire_after[key][place] - before[place] for key, before in self._wire.items())
        return found


def connections() -> dict[str, tuple[int, int]]:
    """Return the bytes sent and received so far over each open TCP connection of this process, by socket."""
    if not _LINUX:
        return {}
    found = {}
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError, struct.error):  # closed meanwhile, not a TCP connection, or an old kernel
            inode = os.readlink(f"/proc/self/fd/{entry}")
            if inode.startswith("socket:"):
                found[inode] = _bytes(int(entry))
    return found


def _bytes(descriptor: int) -> tuple[int, int]:
    with socket.socket(fileno=os.dup(descriptor)) as ours:
        info = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return struct.unpack_from("Q", info, _SENT)[0], struct.unpack_from("Q", info, _RECEIVED)[0]


def servers_cpu_seconds(pids: Iterable[int]) -> float | None:
    """Return the CPU time of servers so far; None without servers, or if one is gone."""
    found = [tree_cpu_seconds(pid) for pid in pids]
    return None if not found or None in found else sum(seconds or 0.0 for seconds in found)


def spent_by_servers(before: float | None, after: float | None) -> dict[str, int | float]:
    """Return `server_cpu_seconds` between two readings, if both are known."""
    return {} if before is None or after is None else {"server_cpu_seconds": round(max(after - before, 0.0), 6)}


def tree_cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a server and of all children it has or had; None if it is gone.

    The kernel adds the time of an ended child to its parent, in hundredths of a second.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        ended = sum(int(stat[place]) for place in (_CUTIME, _CUTIME + 1)) / _TICK
        return read_cpu_seconds(pid) + ended + sum(tree_cpu_seconds(child) or 0.0 for child in children)
    except OSError:
        return None
