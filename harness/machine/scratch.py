"""Temporary folders of the lab: removed at the end, or after a `kill -9` at the next start."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

_NAME = re.compile(r"lab-[a-z]+-(?P<pid>\d+)-\w+")


def folder(what: str) -> tempfile.TemporaryDirectory[str]:
    """Create a temporary folder `lab-<what>-<pid>-...`, which belongs to this process."""
    return tempfile.TemporaryDirectory(prefix=f"lab-{what}-{os.getpid()}-", ignore_cleanup_errors=True)


def remove_left() -> None:
    """Remove the folders of this user's processes that no longer exist."""
    for path in Path(tempfile.gettempdir()).glob("lab-*"):
        named = _NAME.fullmatch(path.name)
        with suppress(FileNotFoundError):  # another start was faster
            found = path.lstat()
            if named and found.st_uid == os.geteuid() and not _lives(int(named["pid"]), found.st_mtime):
                shutil.rmtree(path, ignore_errors=True)


def _lives(pid: int, then: float) -> bool:
    """Return whether the process with a pid is the one that had it at the last modification."""
    try:
        return psutil.Process(pid).create_time() <= then + 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
