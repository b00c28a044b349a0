"""This machine: what it is, and what it has left."""

import os
import platform
import shutil
from pathlib import Path
from typing import Any

import psutil

from harness.model import LabError


def describe_machine() -> dict[str, Any]:
    """Return what this machine is, as plain values."""
    return {
        "host": platform.node(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except FileNotFoundError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def filesystem(path: Path) -> str:
    """Return the type of the filesystem that a folder lies on, empty where that is not told."""
    mounts = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint)).fstype if mounts else ""


def available_memory(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory that a process can still have: the machine's, or a container's where that is less.

    `group` is the folder of a container's own control group, version 2. Page cache counts as available in both.
    """
    available = psutil.virtual_memory().available
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
        parts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:
        return available
    if limit == "max":
        return available
    page_cache = sum(int(parts.get(name, 0)) for name in ("inactive_file", "active_file"))
    return min(available, int(limit) - int(used) + page_cache)


def require_disk(folder: Path, needed: int, then: str) -> None:
    """Raise LabError when the disk of a folder (made or not) has fewer than `needed` bytes free."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise LabError(f"expected {_size(needed)} of free disk in {folder}, found {_size(free)}; make room, {then}")


def require_memory(needed: int, what: str, then: str) -> None:
    """Raise LabError when fewer than `needed` bytes of memory are available; `what` needs them."""
    available = available_memory()
    if available < needed:
        raise LabError(f"{what}: expected {_size(needed)} of available memory, found {_size(available)}; {then}")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
