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


def require_disk(folder: Path, needed: int, then: str) -> None:
    """Raise LabError when the disk of a folder (made or not) has fewer than `needed` bytes free."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise LabError(f"expected {_size(needed)} of free disk in {folder}, found {_size(free)}; make room, {then}")


def require_memory(needed: int, what: str, then: str) -> None:
    """Raise LabError when fewer than `needed` bytes of memory are available; `what` needs them."""
    available = psutil.virtual_memory().available
    if available < needed:
        raise LabError(f"{what}: expected {_size(needed)} of available memory, found {_size(available)}; {then}")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
