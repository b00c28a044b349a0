"""One run at a time on one machine, whoever starts it and from which checkout: a locked file that names the run."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.model import LabError

NAME = "dataframe-io-lab.lock"


@contextmanager
def only_run(folder: Path, run_id: str) -> Iterator[None]:
    """Hold the machine's lock, a file in this folder, for this run. Raises LabError with the run that holds it.

    The kernel lets go of the lock when the process ends, however it ends; the file itself may stay.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _opened(folder / NAME)
    except OSError as error:
        raise LabError(f"cannot lock {folder / NAME}: {error.strerror}; set LAB_LOCK_DIR to another folder") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(busy(os.pread(file, 1000, 0).decode(errors="replace").strip())) from None
        with suppress(OSError):  # of another user's file, which may be locked and not written
            os.ftruncate(file, 0)
            os.pwrite(file, run_id.encode(), 0)
        yield
    finally:
        os.close(file)


def _opened(path: Path) -> int:
    """Open the file, which may be another user's in a folder that all may write in: Linux lets nobody create it there.

    A link is refused: somebody else would say what is written to.
    """
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR):
        with suppress(FileNotFoundError, FileExistsError, PermissionError):
            found = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            if flags & os.O_CREAT:
                os.fchmod(found, 0o666)  # whatever the umask: others are to lock it
            return found
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)


def busy(holder: str) -> str:
    """Say that another run is under way."""
    name = holder or "unknown"
    return f"run {name} is using this machine; two runs at once would measure each other: wait for it to end"
