"""The folders of the embedded labs: one fresh folder per lab, locked while in use, removed when left over.

The lock is a flock on a file in the folder, held by the lab's process and by its keepers. When all of them are gone,
even by `kill -9`, the kernel has released it. The next lab can then tell a left-over folder from one in use. The lock
is on a file open for writing, not on the folder. NFS turns flock into a lock of a file's bytes, and locks nothing else.
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.embedded.keeper import LOCK, remove_folder

PREFIX = "lab-"
GRACE_SECONDS = 3.0


def new_lab_folder(root: Path, release: Callable[[Path], None], programs: Collection[str]) -> tuple[Path, int]:
    """Remove left-over folders below `root` and create a lab folder; return it with its lock's descriptor.

    `release(folder)` is called for each left-over folder before it is removed. `programs`: see `end_processes_in`.
    Raises OSError if `root` cannot be used.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root, fcntl.LOCK_EX):  # a folder that its creator has not locked yet would look left over
        for folder in filter(_ours, root.glob(f"{PREFIX}*")):
            with suppress(BlockingIOError, FileNotFoundError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                end_processes_in(folder, programs)
                release(folder)
                remove_folder(str(folder))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        folder.chmod(0o755)  # the account of a service must pass through
        lock = _opened(folder)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _opened(folder: Path) -> int:
    """Open the file of a folder's lock, which may not exist yet."""
    return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _ours(folder: Path) -> bool:
    """Return whether this user created a folder: other users' files are not trusted about resources elsewhere."""
    with suppress(FileNotFoundError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False


def end_processes_in(folder: Path, programs: Collection[str], at_once: bool = False) -> None:
    """End the services that still work inside a folder, left by a killed keeper or server.

    A server's busy process may outlive its killed parent until its query ends, and a new server may refuse to start
    meanwhile. The function sends SIGTERM, then after GRACE_SECONDS SIGKILL; with `at_once` only SIGKILL, for services
    that hang.

    Services are identified by their HOME, which is in the folder. Programs in `programs` overwrite their environment
    with titles, so their names and working folders identify them. A user's shell in the folder is not touched.
    """
    import psutil

    place = folder.resolve()

    def works_there(process: psutil.Process) -> bool:  # a zombie has neither, so it counts as ended
        with suppress(psutil.Error, OSError):
            if process.name() in programs:
                return Path(process.cwd()).is_relative_to(place)
            home = process.environ().get("HOME")
            return home is not None and Path(home).resolve().is_relative_to(place)
        return False

    found = [process for process in psutil.process_iter() if works_there(process)]
    for number in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        deadline = time.monotonic() + GRACE_SECONDS
        while found and time.monotonic() < deadline:
            time.sleep(0.01)
            found = [process for process in found if works_there(process)]


@contextmanager
def _locked(folder: Path, operation: int) -> Iterator[None]:
    """Hold a lock on a folder. Raises BlockingIOError under LOCK_NB if another process holds it."""
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
