"""The folders of the embedded labs: one fresh folder per lab, locked while somebody uses it, removed when left over.

The lock is a flock on a file in the folder, held by the lab's process and by its keepers: when all of them are gone,
even by `kill -9`, the kernel has released it, and the next lab can tell a left-over from a neighbour. A file that is
open for writing, not the folder: NFS makes a lock of a file's bytes out of flock, and locks nothing else.
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
    """Remove left-overs below `root` and make a lab folder; returns it with the descriptor that holds its lock.

    `release(folder)` is called for each left-over before it is removed; `programs`: see `end_processes_in`. Raises
    OSError if `root` cannot be used.
    """
    root.mkdir(parents=True, exist_ok=True)
    with _locked(root, fcntl.LOCK_EX):  # a folder that its maker has not locked yet would look like a left-over
        for folder in filter(_ours, root.glob(f"{PREFIX}*")):
            with suppress(BlockingIOError, FileNotFoundError), _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB):
                end_processes_in(folder, programs)
                release(folder)
                remove_folder(str(folder))
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        folder.chmod(0o755)  # the account that a service runs as has to pass through
        lock = _opened(folder)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def _opened(folder: Path) -> int:
    """Open the file of a folder's lock, which may not be there yet."""
    return os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _ours(folder: Path) -> bool:
    """Say whether this user made a folder: what others left says nothing to be trusted of what it holds elsewhere."""
    with suppress(FileNotFoundError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return False


def end_processes_in(folder: Path, programs: Collection[str], at_once: bool = False) -> None:
    """End the services that still work inside a folder: a keeper or a server that was killed leaves some.

    A busy process of a server may outlive its killed parent until its query ends, and a new server refuse to start
    beside it. SIGTERM, then after GRACE_SECONDS SIGKILL; or only that, `at_once`, for services that hang.

    Services are known by their HOME, which lies in the folder; `programs`, whose titles overwrite what they were given,
    by their names and working folder. A shell that somebody left standing there is not touched.
    """
    import psutil

    place = folder.resolve()

    def works_there(process: psutil.Process) -> bool:  # a zombie has neither: it counts as ended
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
    """Hold a lock on a folder; raises BlockingIOError under LOCK_NB when another process holds it."""
    descriptor = _opened(folder)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)
