"""This machine: its description, and its free resources."""

import os
import platform
import shutil
from pathlib import Path

import psutil

from harness.model import LabError


def describe_machine() -> dict[str, object]:
    """Return the description of this machine as plain values."""
    return {
        "host": platform.node(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        **_maker(),
    }


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_model() -> str:
    names = (line.partition(":")[2].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name"))
    return next(names, platform.processor())


def _maker() -> dict[str, object]:
    """Return the machine's maker from the firmware (clouds name themselves there), and whether it is virtual."""
    folder = Path("/sys/class/dmi/id")
    names = [_line(folder / name) for name in ("sys_vendor", "product_name")]
    flags = next((line for line in _lines(Path("/proc/cpuinfo")) if line.startswith(("flags", "Features"))), "")
    return {"maker": " ".join(filter(None, names)), "virtual": "hypervisor" in flags.split()}


def disk(path: Path, devices: Path = Path("/sys/dev/block")) -> str:
    """Return the disk of a folder (even if not created), with its model; empty if not reported (macOS)."""
    existing = next(found for found in (path, *path.parents) if found.exists())
    number = os.stat(existing).st_dev
    device = (devices / f"{os.major(number)}:{os.minor(number)}").resolve()
    if not (device / "queue").is_dir():
        device = device.parent  # the partition's disk
    if not (device / "queue").is_dir():
        return ""  # overlay, tmpfs and similar file systems have no device
    name, turns = device.name, _line(device / "queue" / "rotational") == "1"
    drivers = {"nvme": "NVMe SSD", "vd": "virtual disk", "xvd": "virtual disk", "dm-": "mapped device", "md": "RAID"}
    sort = next((sort for start, sort in drivers.items() if name.startswith(start)), "hard disk" if turns else "SSD")
    return " ".join(filter(None, (sort, _line(device / "device" / "model"))))


def _line(path: Path) -> str:
    return next(iter(_lines(path)), "").strip()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []


def filesystem(path: Path, ext4: Path = Path("/proc/fs/ext4")) -> str:
    """Return the type of a folder's filesystem; empty if the system does not report it.

    It marks an ext4 without a journal. Each time a file is created, such an ext4 skips the inodes of recently removed
    files (`recently_deleted` in the kernel's fs/ext4/ialloc.c). A program that creates many files, such as ClickHouse,
    therefore becomes slower with every dropped table. `ext4` is where the kernel lists its options.
    """
    mounts = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    if not mounts:
        return ""
    mount = max(mounts, key=lambda part: len(part.mountpoint))
    options = _lines(ext4 / os.path.basename(os.path.realpath(mount.device)) / "options")
    without = mount.fstype == "ext4" and options and not any(line.startswith("data=") for line in options)
    return "ext4 without a journal" if without else mount.fstype


def available_memory(group: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory that a process can still get: the machine's, or a container's if that is less.

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


def free_bytes(folder: Path) -> int:
    """Return the free bytes for this user on the disk of a folder (even if not created)."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def require_disk(folder: Path, needed: int, then: str) -> None:
    """Raise LabError if the disk of a folder (even if not created) has fewer than `needed` free bytes."""
    free = free_bytes(folder)
    if free < needed:
        raise LabError(f"{folder}: {_size(needed)} of disk needed, {_size(free)} free; make room, {then}")


def require_memory(needed: int, what: str, then: str) -> None:
    """Raise LabError if fewer than `needed` bytes of memory are available; `what` needs them."""
    available = available_memory()
    if available < needed:
        raise LabError(f"{what}: {_size(needed)} of memory needed, {_size(available)} available; {then}")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
