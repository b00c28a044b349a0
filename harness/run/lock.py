"""One run at a time on a machine, from any user or checkout: a locked file that names the run.

Servers that several machines use also allow one run at a time.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from harness.lab.labs import Lab
from harness.lab.reference import answered
from harness.model import LabError, printable
from harness.systems import SYSTEMS

NAME = "dataframe-io-lab.lock"
_OTHER_FOLDER = "set LAB_LOCK_DIR to another folder"
_FILE_TYPES = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@contextmanager
def only_run(folder: Path, run_id: str) -> Iterator[None]:
    """Hold the machine's lock, a file in this folder, for this run. Raises LabError that names the run holding it.

    The kernel releases the lock when the process ends, however it ends; the file itself may stay.
    """
    with _locked(folder, fcntl.LOCK_EX) as file:
        with suppress(OSError):  # another user's file may be locked but not written
            os.ftruncate(file, 0)
            os.pwrite(file, run_id.encode(), 0)
        yield


def require_free(folder: Path) -> None:
    """Raise LabError if a run is in progress, before a second run reads, estimates or starts anything.

    Several processes may check at once, because they share the lock meanwhile.
    """
    with _locked(folder, fcntl.LOCK_SH):
        pass


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[int]:
    """Yield the locked file. Raises LabError if another run holds it, or it cannot be created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = _opened(folder / NAME)
    except OSError as error:
        raise LabError(f"cannot lock {folder / NAME}: {error.strerror}; {_OTHER_FOLDER}") from None
    try:
        _require_ours(file, folder / NAME)
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(busy(os.pread(file, 200, 0).decode(errors="replace").strip())) from None
        except OSError as error:
            raise LabError(f"cannot lock {folder / NAME}: {_why_not(error, file)}; {_OTHER_FOLDER}") from None
        yield file
    finally:
        os.close(file)


def _why_not(error: OSError, file: int) -> str | None:
    """Return the reason why an open file cannot be locked. NFS turns flock into a lock of a file's bytes."""
    if error.errno == errno.EBADF:
        owner = os.fstat(file).st_uid
        return f"it is on a network's file system, which locks what you may write, and only uid {owner} may"
    if error.errno == errno.ENOLCK:
        return "it is on a network's file system, whose server locks nothing"
    return error.strerror


def _opened(path: Path) -> int:
    """Open the file, which may be another user's in a world-writable folder: Linux refuses to create it there.

    A link is refused, because its owner would choose the target. A pipe is opened without waiting for its other end.
    """
    always = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    for flags in (os.O_RDWR, os.O_RDWR | os.O_CREAT | os.O_EXCL, os.O_RDWR):
        with suppress(FileNotFoundError, FileExistsError, PermissionError):
            found = os.open(path, flags | always, 0o666)
            if flags & os.O_CREAT:
                os.fchmod(found, 0o666)  # regardless of the umask: other users lock it
            return found
    return os.open(path, os.O_RDONLY | always)


def _require_ours(file: int, path: Path) -> None:
    """Raise LabError if the lock file was replaced by another object."""
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and found.st_nlink <= 1:
        return
    what = (
        "a file with a second name"
        if stat.S_ISREG(found.st_mode)
        else _FILE_TYPES.get(stat.S_IFMT(found.st_mode), "none")
    )
    raise LabError(
        f"cannot lock {path}: it is {what} of the user with uid {found.st_uid}; remove it, or {_OTHER_FOLDER}"
    )


def busy(holder: str) -> str:
    """Report that another run is in progress."""
    name = printable(holder) or "unknown"
    return f"run {name} is using this machine; two runs at once would measure each other: wait for it to end"


@contextmanager
def only_run_on_server(lab: Lab, run_id: str) -> Iterator[None]:
    """Keep other machines' runs off shared servers that support it; only this machine knows embedded ones."""
    with ExitStack() as stack:
        for name in lab.systems if lab.name != "embedded" else ():
            client = SYSTEMS[name].client
            connection = answered(name, partial(client.open_connection, lab.endpoints))
            stack.callback(connection.close)
            if holder := answered(name, partial(client.hold, connection, run_id)):
                raise LabError(busy(holder))
        yield
