"""Programs that come as Go modules: compiled once with this machine's Go, kept outside the checkout.

Go's checksum database vouches for a module and everything it needs (https://go.dev/ref/mod#checksum-database).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.machine.stopping import on_signals

_COMPILE_SECONDS = 1_200  # two minutes were seen on two cores


class NotThere(Exception):
    """A program is not there and cannot be compiled here; the text says why, in one line."""


@dataclass(frozen=True)
class GoProgram:
    """A main package at one version, and the name that its program is kept under."""

    name: str
    package: str
    version: str


# The public images and binaries of MinIO are gone; the module is the last commit before the repository was archived.
MINIO = GoProgram("minio", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
TOXIPROXY = GoProgram("toxiproxy", "github.com/Shopify/toxiproxy/v2/cmd/server", "v2.12.0")


def place(wanted: GoProgram, cache: Path) -> Path:
    """Return where a program is kept."""
    return cache / f"{wanted.name}-{wanted.version}"


def toolchain() -> str | None:
    """Return the path of the command go, if there is one."""
    return shutil.which("go")


def program(wanted: GoProgram, cache: Path, say: Callable[[str], None]) -> Path:
    """Return the path of a program, compiling it when it is not in the cache. Raises NotThere."""
    path = place(wanted, cache)
    if os.access(path, os.X_OK):
        return path
    go = toolchain()
    if go is None:
        raise NotThere(f"no {wanted.name}: expected a Go toolchain to compile it with, found none")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / f"{wanted.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # who comes second waits for the first one's program
            if path.is_file():
                return path
            for left in cache.glob(f"{wanted.name}-*.compiling"):  # by a compilation that was killed
                shutil.rmtree(left, ignore_errors=True)
            say(f"compiling {wanted.name} {wanted.version} (once; some minutes)")
            with tempfile.TemporaryDirectory(".compiling", f"{wanted.name}-", cache) as folder:
                _compile(go, wanted, Path(folder))
                (compiled,) = Path(folder).iterdir()
                os.replace(compiled, path)
    except OSError as error:
        raise NotThere(f"no {wanted.name}: cannot keep it in {cache}: {error.strerror or error}") from None
    return path


def _compile(go: str, wanted: GoProgram, folder: Path) -> None:
    command = [go, "install", "-trimpath", "-ldflags", "-s -w", f"{wanted.package}@{wanted.version}"]
    own = os.environ | {"GOBIN": str(folder), "CGO_ENABLED": "0"}

    def start() -> subprocess.Popen[bytes]:
        nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(command, env=own, stdout=nothing, stderr=pipe, start_new_session=True)

    with on_signals(), ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start)  # a signal in the middle of it would leave the compilers to nobody
        try:
            process = starting.result()
            _, said = process.communicate(timeout=_COMPILE_SECONDS)
        except subprocess.TimeoutExpired:
            raise NotThere(f"no {wanted.name}: compiling it took more than {_COMPILE_SECONDS} s") from None
        finally:
            with starting.result() as process:
                _end(process)
    if process.returncode:
        reason = (said.decode(errors="replace").strip() or f"status {process.returncode}").splitlines()[-1]
        raise NotThere(f"no {wanted.name}: it could not be compiled: {reason:.200}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command and the compilers it has started, if any are left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
