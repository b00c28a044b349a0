"""One run at a time on one machine: a locked file that says which run has it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.model import LabError


@contextmanager
def only_run(folder: Path, run_id: str) -> Iterator[None]:
    """Hold the machine's lock for this run. Raises LabError with the id of the run that holds it.

    The kernel lets go of the lock when the process ends, however it ends; the file itself may stay.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "run.lock").open("a+")
    except OSError as error:
        raise LabError(f"cannot write in {folder}: {error.strerror}; set LAB_STATE_DIR to a writable folder") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise LabError(busy(file.read().strip())) from None
        file.truncate(0)
        file.write(run_id)
        file.flush()
        yield


def busy(holder: str) -> str:
    """Say that another run is under way."""
    return f"run {holder or 'unknown'} is using this lab; two runs at once would measure each other: wait for it to end"
