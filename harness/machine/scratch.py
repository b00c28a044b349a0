"""Temporary folders of the lab: gone at the end, and where a `kill -9` was the end, with the next start."""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

_NAME = re.compile(r"lab-[a-z]+-(?P<pid>\d+)-\w+")


def folder(what: str) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder `lab-<what>-<pid>-...`; it belongs to this process."""
    return tempfile.TemporaryDirectory(prefix=f"lab-{what}-{os.getpid()}-", ignore_cleanup_errors=True)


def remove_left() -> None:
    """Remove the folders of processes of this user that are no more."""
    for path in Path(tempfile.gettempdir()).glob("lab-*"):
        named = _NAME.fullmatch(path.name)
        with suppress(FileNotFoundError):  # another start was quicker
            found = path.lstat()
            if named and found.st_uid == os.geteuid() and not _lives(int(named["pid"]), found.st_mtime):
                shutil.rmtree(path, ignore_errors=True)


def _lives(pid: int, then: float) -> bool:
    """Say whether the process of a number is the one that had it when something was last changed."""
    try:
        return psutil.Process(pid).create_time() <= then + 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
