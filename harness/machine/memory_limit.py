"""A limit of the memory that a process and all it starts may take: a control group where one can be made.

Groups of version 2 and of version 1. Where neither can be made, the limit is that of each process's own data
(RLIMIT_DATA, setrlimit(2)), which counts memory that was asked for, whether it is used or not.
"""

from __future__ import annotations

import os
import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_GONE_SECONDS = 5.0


@dataclass(frozen=True)
class MemoryLimit:
    """A limit in bytes that is ready to be entered; `group` is the folder of its control group, empty without one."""

    bytes: int
    group: str = ""


def limited_by() -> str:
    """Return what limits on this machine, for people."""
    probe = make(1 << 30)
    remove(probe)
    return "control group" if probe.group else "RLIMIT_DATA"


def make(limit: int) -> MemoryLimit:
    """Make a limit ready; `remove` it when all processes in it have ended."""
    try:
        group, memory, swap = _group(f"lab-{os.getpid()}-{time.monotonic_ns()}")
    except OSError:
        return MemoryLimit(limit)
    (group / memory).write_text(str(limit))
    with suppress(OSError):  # a kernel that does not count swap has no such file
        # Version 1 counts memory and swap together, version 2 swap alone.
        (group / swap).write_text(str(limit) if swap.startswith("memory.memsw") else "0")
    return MemoryLimit(limit, str(group))


def enter(limit: MemoryLimit) -> None:
    """Put this process under a limit, with all that it starts from now on."""
    if limit.group:
        (Path(limit.group) / "cgroup.procs").write_text(str(os.getpid()))
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (limit.bytes, limit.bytes))


def remove(limit: MemoryLimit) -> None:
    """Remove what was made for a limit, when its processes have ended."""
    group, deadline = Path(limit.group), time.monotonic() + _GONE_SECONDS
    while limit.group and group.is_dir() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:  # a process in it has not ended yet
            time.sleep(0.05)


def _group(name: str) -> tuple[Path, str, str]:
    """Make a control group; return its folder, and its files of memory and of swap. Raises OSError."""
    if (_ROOT / "memory").is_dir():  # version 1
        group = _ROOT / "memory" / name
        group.mkdir()
        return group, "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
    controllers = _ROOT / "cgroup.subtree_control"
    if "memory" not in controllers.read_text().split():
        controllers.write_text("+memory")
    group = _ROOT / name
    group.mkdir()
    return group, "memory.max", "memory.swap.max"
