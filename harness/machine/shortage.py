"""A machine's missing resources, recognized in error messages: processes and threads, file descriptors."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event

SHORT = "this machine is short of"
_PROCESSES = "processes or threads, of which this user may have no more: end some, or raise its limit (ulimit -u)"
_FILES = "open files, of which a process or this machine may have no more: close some, or raise the limit (ulimit -n)"
# Above the peak of a run on two processors, 80: servers, workers and clients start most of their threads per processor.
_THREADS = 80 + 10 * (os.cpu_count() or 1)
_WORDS = {
    os.strerror(errno.EAGAIN): _PROCESSES,
    "can't start new thread": _PROCESSES,
    "failed to spawn thread": _PROCESSES,
    "pthread_create failed": _PROCESSES,
    os.strerror(errno.EMFILE): _FILES,
    os.strerror(errno.ENFILE): _FILES,
    **{found: found for found in (_PROCESSES, _FILES)},  # as it was once reported
}


def missing(error: BaseException | str) -> str:
    """Return which resource an error, or its message, reports as missing; empty for other errors."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
    found = next((what for words, what in _WORDS.items() if words in text), "")
    return f"{SHORT} {found}" if found else ""


def require_threads() -> None:
    """Start and end as many threads as a run needs. Raises RuntimeError: with fewer, polars waits without end."""
    ended = Event()
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for _ in range(_THREADS):
                pool.submit(ended.wait)
        finally:
            ended.set()
