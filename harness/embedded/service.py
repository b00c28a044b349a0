"""The description of a service that the embedded lab starts, or of a database in files that needs none."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.embedded.keeper import ServiceError, Task

_VERSION_SECONDS = 20.0
SHARED = "io"  # the subfolder that a service shares with the lab's users, if it has one


@dataclass(frozen=True)
class Service:
    """The description of a service.

    `prepare(folder, ports, password)` fills an empty folder and describes the commands. The service is ready when its
    `ready_file` exists and `is_ready(folder)` is true. `release(folder)` frees the resources that a killed service
    leaves outside its folder. `programs` are the names of its processes if those do not keep the HOME they got.
    `reachable(folder)` is the folder itself, or another one if the account of its processes cannot reach it.
    `last_words` occur in the log line that gives the reason when it exits by itself. `said` is an installed program's
    version string.
    """

    ports: int
    prepare: Callable[[Path, Sequence[int], str], Task]
    ready_file: str
    is_ready: Callable[[Path], bool]
    endpoints: Callable[[Sequence[int], str], dict[str, str]]
    release: Callable[[Path], None]
    programs: tuple[str, ...] = ()
    reachable: Callable[[Path], Path] = lambda folder: folder
    last_words: str = ""
    said: str = ""


@dataclass(frozen=True)
class Files:
    """A database without a server: its clients open files in a folder that the lab creates and removes.

    `endpoints(folder)` are its addresses. There is nothing to start, to watch or to restart.
    """

    endpoints: Callable[[Path], dict[str, str]]


def version_said(program: Path, words: Sequence[str]) -> str:
    """Return the first line of a program's version output; empty if it does not support the query.

    Raises ServiceError if it cannot be started at all, or hangs.
    """
    try:
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceError(f"{program}: cannot be started on this machine: {error}") from None
    return "" if done.returncode else done.stdout.strip().partition("\n")[0]
