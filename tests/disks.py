"""File systems: one of a given size, where mounting is allowed, and the locks of NFS."""

import errno
import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FLOCK = fcntl.flock


def as_on_nfs(file: int, how: int) -> None:
    """flock(2) on NFS: an exclusive lock needs a descriptor for writing."""
    number = file if isinstance(file, int) else file.fileno()
    if how & fcntl.LOCK_EX and fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    FLOCK(file, how)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Yield a new folder below this one, on tmpfs."""
    place = folder / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a small tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)
