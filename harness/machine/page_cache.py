"""The kernel's page cache: load files into it, evict them, and measure how much of a file it holds."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.model import LabError

_CHUNK_BYTES = 8 << 20
_WINDOW_BYTES = 256 << 20  # bytes mapped at a time: a multiple of every page size


def warm(paths: Iterable[Path]) -> None:
    """Read every file once from start to end. Files larger than free memory evict their own pages."""
    buffer = bytearray(_CHUNK_BYTES)
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def drop(paths: Iterable[Path]) -> None:
    """Ask the kernel to evict the pages of files; needs no special rights.

    It cannot evict pages that a process has mapped, and none on tmpfs: see `resident_share`. Changed pages are first
    written to disk. Raises LabError on other systems than Linux.
    """
    _require_linux("drop files from the page cache")
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())  # changed pages are kept
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def resident_share(path: Path) -> float:
    """Return the share of a file's pages that is in the page cache, from 0 to 1; 1 for an empty file.

    Asks mincore(2), which reads and changes nothing. Since Linux 5.2 the kernel answers correctly only for a file that
    the user owns or may write, and reports 1 for every other file. Raises LabError on other systems than Linux.
    """
    _require_linux("see what is in the page cache")
    size = path.stat().st_size
    with path.open("rb") as file:
        windows = range(0, size, _WINDOW_BYTES)
        resident = sum(_resident_pages(file.fileno(), at, min(_WINDOW_BYTES, size - at)) for at in windows)
    return resident / _pages(size) if size else 1.0


def _resident_pages(file: int, offset: int, length: int) -> int:
    answers = (ctypes.c_ubyte * _pages(length))()
    # ctypes returns an address only of writable memory, so map a private, writable copy; nothing is written.
    with mmap.mmap(file, length, access=mmap.ACCESS_COPY, offset=offset) as mapped:
        start = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(length), answers
        )
        del start  # the map cannot be closed while its memory is referenced
    if failed:
        raise OSError(ctypes.get_errno(), f"mincore: {os.strerror(ctypes.get_errno())}")
    return sum(answer & 1 for answer in answers)


def _pages(length: int) -> int:
    return -(-length // mmap.PAGESIZE)


def _require_linux(what: str) -> None:
    if sys.platform != "linux":
        raise LabError(
            f"only Linux can {what}, and this is {sys.platform}; choose a suite that leaves the page cache as it is"
        )
