"""A limit of the memory of a process and its children: a control group if one can be created.

Groups of version 2 and version 1 are supported. Otherwise the limit applies to each process's own data (RLIMIT_DATA,
setrlimit(2)), which counts requested memory, used or not.
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
    """A limit in bytes, ready to enter; `group` is the folder of its control group, empty without one."""

    bytes: int
    group: str = ""


def limited_by() -> str:
    """Describe this machine's type of limit, for people."""
    probe = make(1 << 30)
    remove(probe)
    return "control group" if probe.group else "RLIMIT_DATA"


def make(limit: int) -> MemoryLimit:
    """Prepare a limit; `remove` it when all processes in it have ended."""
    try:
        group, memory, swap = _group(f"lab-{os.getpid()}-{time.monotonic_ns()}")
    except OSError:
        return MemoryLimit(limit)
    (group / memory).write_text(str(limit))
    with suppress(OSError):  # a kernel that does not count swap lacks this file
        # Version 1 counts memory and swap together, version 2 swap separately.
        (group / swap).write_text(str(limit) if swap.startswith("memory.memsw") else "0")
    return MemoryLimit(limit, str(group))


def enter(limit: MemoryLimit) -> None:
    """Put this process, and all that it starts from now on, under a limit."""
    if limit.group:
        (Path(limit.group) / "cgroup.procs").write_text(str(os.getpid()))
    else:
        resource.setrlimit(resource.RLIMIT_DATA, (limit.bytes, limit.bytes))


def remove(limit: MemoryLimit) -> None:
    """Remove a limit's control group when its processes have ended."""
    group, deadline = Path(limit.group), time.monotonic() + _GONE_SECONDS
    while limit.group and group.is_dir() and time.monotonic() < deadline:
        try:
            group.rmdir()
        except OSError:  # a process in it has not ended yet
            time.sleep(0.05)


def _group(name: str) -> tuple[Path, str, str]:
    """Create a control group; return its folder, and its memory and swap files. Raises OSError."""
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
