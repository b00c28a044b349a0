"""Programs from Go modules: compiled once with this machine's Go, stored outside the checkout.

Go's checksum database authenticates a module and its dependencies (https://go.dev/ref/mod#checksum-database).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.machine.stopping import on_signals

_COMPILE_SECONDS = 1_200  # took two to four minutes on two cores
_TELL_SECONDS = 15.0  # interval of progress messages to a waiting user


class NotThere(Exception):
    """A program is missing and cannot be compiled here; the message has the reason in one line."""


@dataclass(frozen=True)
class GoProgram:
    """A main package at one version, and its program's file name."""

    name: str
    package: str
    version: str


VERSITYGW = GoProgram("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
# MinIO's public images and binaries are gone; the module is the last commit before the repository was archived.
MINIO = GoProgram("minio", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
TOXIPROXY = GoProgram("toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server", "v2.12.0")


def place(wanted: GoProgram, cache: Path) -> Path:
    """Return the path of a program."""
    return cache / f"{wanted.name}-{wanted.version}"


def program(wanted: GoProgram, cache: Path, say: Callable[[str], None], users: Sequence[str] = ()) -> Path:
    """Return the path of a program, compiling it if it is not in the cache. Raises NotThere.

    `users` are the names of the transports that need it, for the progress message.
    """
    path = place(wanted, cache)
    if os.access(path, os.X_OK):
        return path
    go = shutil.which("go")
    if go is None:
        raise NotThere(f"no {wanted.name}: no Go to compile it with; install Go")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{wanted.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second process waits for the first one's program
            if path.is_file():
                return path
            for left in cache.glob(f"{wanted.name}-*.compiling"):  # left by a killed compilation
                shutil.rmtree(left, ignore_errors=True)
            say(f"compiling {wanted.name} (once, some minutes){_for(users)}")
            with tempfile.TemporaryDirectory(".compiling", f"{wanted.name}-", cache) as folder:
                _compile(go, wanted, Path(folder), say)
                (compiled,) = Path(folder).iterdir()
                os.replace(compiled, path)
    except OSError as error:
        raise NotThere(f"no {wanted.name}: cannot keep it in {cache}: {error.strerror or error}") from None
    return path


def _for(users: Sequence[str]) -> str:
    """Name the first of some users and the number of further ones."""
    if not users:
        return ""
    return f" for {users[0]}" + (f" and {len(users) - 1} more" if len(users) > 1 else "")


def _compile(go: str, wanted: GoProgram, folder: Path, say: Callable[[str], None]) -> None:
    command = [go, "install", "-trimpath", "-ldflags", "-s -w", f"{wanted.package}@{wanted.version}"]
    own = os.environ | {"GOBIN": str(folder), "CGO_ENABLED": "0"}

    started: list[subprocess.Popen[bytes]] = []
    over = threading.Event()

    def start() -> subprocess.Popen[bytes]:
        nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
        started.append(subprocess.Popen(command, env=own, stdout=nothing, stderr=pipe, start_new_session=True))
        if over.is_set():
            _end(started[0])
        return started[0]

    with on_signals(), ThreadPoolExecutor(1) as pool:
        try:  # a signal during the start, or while passing it to the thread, would orphan the compilers
            process = pool.submit(start).result()
            said = _waited_for(process, wanted, say)
        finally:
            over.set()
            pool.shutdown()
            for each in started:
                with each:
                    _end(each)
    if process.returncode:
        reason = (said.decode(errors="replace").strip() or f"status {process.returncode}").splitlines()[-1]
        raise NotThere(f"no {wanted.name}: it could not be compiled: {reason:.200}")


def _waited_for(process: subprocess.Popen[bytes], wanted: GoProgram, say: Callable[[str], None]) -> bytes:
    """Return the compiler's output once it has ended; report the elapsed time meanwhile. Raises NotThere."""
    started = time.monotonic()
    while (spent := time.monotonic() - started) < _COMPILE_SECONDS:
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_TELL_SECONDS)[1]
        say(f"compiling {wanted.name}: {time.monotonic() - started:.0f} s so far")
    raise NotThere(f"no {wanted.name}: compiling it took more than {spent:.0f} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and the compilers it has started, if any are left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
