"""What the embedded lab has to know of a service that it starts, or of a database in files that needs none."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.embedded.keeper import ServiceError, Task

_VERSION_SECONDS = 20.0
SHARED = "io"  # the folder of a service's own that it shares with those who use the lab, where it has one


@dataclass(frozen=True)
class Service:
    """What the lab has to know of a service.

    `prepare(folder, ports, password)` fills an empty folder and describes the commands. The service is up when its
    `ready_file` exists and `is_ready(folder)` says so. `release(folder)` gives back what a killed one leaves outside
    its folder. `programs` are the names of its processes where those do not keep the HOME they were given, and
    `reachable(folder)` is the folder itself or, where the account of its processes cannot get there, another one.
    `last_words` stand in the line of its log in which it says why it ends itself. `not_here` are words of an error that
    is this service's alone: another server of its database can do what was asked of it. `said` is what an installed
    program says of its version.
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
    not_here: str = ""
    said: str = ""


@dataclass(frozen=True)
class Files:
    """A database without a server: its clients open files in a folder that the lab makes and removes.

    `endpoints(folder)` are its addresses. There is nothing to start, to watch or to bring back.
    """

    endpoints: Callable[[Path], dict[str, str]]


def version_said(program: Path, words: Sequence[str]) -> str:
    """Return the first line that a program says of its version; empty where it knows no such question.

    Raises ServiceError where it cannot be started at all, or hangs.
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
