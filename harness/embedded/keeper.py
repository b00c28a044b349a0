"""The keeper: a small process that runs one service of the lab and stops it when the lab is gone.

The lab (the parent) holds the other end of the keeper's standard input. Data there, or its end, make the keeper stop
the service in an orderly way and remove its folder. It ends whenever the parent ends, even by `kill -9`.

    lab ──pipe──> keeper (own session) ──> service (own session)

- Standard input: one line, the `Task` as JSON; anything after it, end of file included, requests a stop.
- Standard output: one line, the service's pid, once all preparing commands are done and the service is started.
- Exit status: 0 after a stop; otherwise the status of the command that ended by itself. Its folder is then kept, so
  that the parent can read the log and start the service again on the same data.

Separate sessions keep the terminal's Ctrl-C away from the services until the lab has decided to stop. On Linux the
kernel stops the service of a keeper that was itself killed by `kill -9`. On other systems the lab searches for it
(`harness/lab/embedded.py`).

The file is run by its path in an isolated interpreter (`python -I`), which starts in about 50 ms. Beyond the standard
library it imports only psutil, and nothing of the harness. The lab's side comes last.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

import psutil

PARENT_CHECK_SECONDS = 1.0
REMOVE_SECONDS = 10.0
STDIN, STDOUT = 0, 1
LOCK = ".lock"  # in a lab's folder: see harness/lab/embedded.py


class ServiceError(RuntimeError):
    """A service of the embedded lab cannot be found, started or restarted; the message has the fix."""


@dataclass(frozen=True)
class Command:
    """A command, its standard input, and the file (if not the log) for its standard output."""

    arguments: Sequence[str]
    text: str = ""
    output: str | None = None


@dataclass(frozen=True)
class Task:
    """A keeper's description of its service, sent as one line of JSON.

    `folder` is the working folder of every command. It is removed after a stop, as is its parent once it is empty.
    `stop` lists (signal name, seconds to wait); SIGKILL follows. `account` is the (uid, gid) to run as, None for the
    caller's own. `environment` None inherits the caller's.
    """

    folder: str
    log: str
    prepare: Sequence[Command]
    service: Command
    stop: Sequence[tuple[str, float]]
    account: tuple[int, int] | None = None
    environment: dict[str, str] | None = None

    def stop_seconds(self) -> float:
        """The maximum time in seconds of an orderly stop, including the removal of the folder."""
        return sum(seconds for _, seconds in self.stop) + REMOVE_SECONDS


def remove_folder(folder: str) -> None:
    """Remove a folder whose last writers may be about to end; wait for them at most REMOVE_SECONDS."""
    deadline = time.monotonic() + REMOVE_SECONDS
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder) or time.monotonic() > deadline:
            return
        time.sleep(0.02)


def main() -> int:
    """Prepare and run the service until it ends or a stop is requested; return the exit status."""
    with open(STDIN, "rb", buffering=0, closefd=False) as stdin:
        line = stdin.readline()
    if not line.endswith(b"\n"):
        return 0  # the lab ended before it sent a task
    message = json.loads(line)
    task, lab_pid = _read_task(message["task"]), message["lab_pid"]
    with _bell() as bell, open(task.log, "ab", buffering=0, opener=_private) as log:
        for command in task.prepare:
            process = _start(command, task, log)
            if _stop_asked(process, bell, lab_pid):
                _end(process, [])
                return _clear(task)
            if process.returncode:
                return _status(process)
        process = _start(task.service, task, log)
        with suppress(BrokenPipeError):  # the lab is gone, which is detected below
            os.write(STDOUT, b"%d\n" % process.pid)
        if not _stop_asked(process, bell, lab_pid):
            return _status(process)
        _end(process, task.stop)
    return _clear(task)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner may read, because a server's log may contain values of rows."""
    found = os.open(path, flags, 0o600)
    os.fchmod(found, 0o600)
    return found


def _read_task(fields: dict[str, Any]) -> Task:
    prepare = [Command(**command) for command in fields.pop("prepare")]
    return Task(prepare=prepare, service=Command(**fields.pop("service")), **fields)


@contextmanager
def _bell() -> Iterator[int]:
    """Return a file descriptor with the number of every received signal, so that select() wakes up."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)
    # A shell's background job starts with SIGQUIT ignored, and the service would inherit that.
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    try:
        yield read
    finally:
        signal.set_wakeup_fd(-1)


def _start(command: Command, task: Task, log: BinaryIO) -> subprocess.Popen[bytes]:
    """Start a command in a separate session, under the task's account, with its standard error in the log."""
    uid, gid = task.account or (None, None)
    with open(command.output, "wb", opener=_private) if command.output else nullcontext(log) as output:
        process = subprocess.Popen(
            command.arguments,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=log,
            cwd=task.folder,
            env=task.environment,
            start_new_session=True,
            preexec_fn=_death_signal(signal.Signals[task.stop[0][0]]),
            user=uid,
            group=gid,
            extra_groups=[] if task.account else None,
        )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(command.text.encode())
        process.stdin.close()
    return process


def _death_signal(number: int) -> Callable[[], None] | None:
    """Return a function for the child, between fork and exec, that requests a signal when the keeper dies (Linux only).

    It works because the interpreter calls it after it has changed the user, which would clear the setting. The keeper
    also has only one thread: the kernel watches the thread that forked. See PR_SET_PDEATHSIG(2const).
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl, keeper_pid, pr_set_pdeathsig = ctypes.CDLL(None).prctl, os.getpid(), 1

    def ask() -> None:
        prctl(pr_set_pdeathsig, number)
        if os.getppid() != keeper_pid:  # the keeper died before the call above
            os.kill(os.getpid(), signal.SIGKILL)

    return ask


def _stop_asked(process: subprocess.Popen[bytes], bell: int, lab_pid: int) -> bool:
    """Wait until the process has ended by itself (False), or the lab is gone or requests a stop (True).

    This also checks the parent's pid. A worker that the lab forked holds a copy of the pipe's other end, which would
    hide the lab's death while the worker lives.
    """
    while process.poll() is None:
        if os.getppid() != lab_pid:
            return True
        ready, _, _ = select.select([STDIN, bell], [], [], PARENT_CHECK_SECONDS)
        if STDIN in ready:
            return True
        if bell in ready and set(os.read(bell, 4096)) - {signal.SIGCHLD}:
            return True
    return False


def _end(process: subprocess.Popen[bytes], steps: Sequence[tuple[str, float]]) -> None:
    """Send each signal in turn until the process has ended; SIGKILL is the last, and ends everything that it started.

    A process that a user stopped receives no signal but SIGKILL before it continues. Its children may have separate
    sessions, so they are found by parentage while it lives.
    """
    service = psutil.Process(process.pid)
    family = {*service.children(recursive=True)}
    for name, seconds in steps:
        process.send_signal(signal.Signals[name])
        for each in (service, *family):
            _signal(each, signal.SIGCONT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            break
        family |= {*service.children(recursive=True)}
    with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter when only zombies are left
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for each in family:
        _signal(each, signal.SIGKILL)


def _signal(process: psutil.Process, number: int) -> None:
    """Send a signal, unless the process has ended: its pid may belong to another one by now."""
    with suppress(psutil.Error):
        process.send_signal(number)


def _clear(task: Task) -> int:
    """Remove the service's folder, and the lab's if this was the last one in it; returns 0."""
    remove_folder(task.folder)
    lab = os.path.dirname(task.folder)
    with suppress(OSError):  # another keeper's folder still exists, and that keeper will remove it
        if os.listdir(lab) == [LOCK]:
            os.unlink(os.path.join(lab, LOCK))
        os.rmdir(lab)
    return 0


def _status(process: subprocess.Popen[bytes]) -> int:
    """Exit status of an ended process in a shell's form: 128 + N after signal N."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


# The lab's side of a keeper: start it, request a stop, release it.


def launch(task: Task, keep_open: int) -> subprocess.Popen[bytes]:
    """Start a keeper for the task.

    `keep_open` is a file descriptor that the keeper holds while it lives (the lab's lock), and its service does not.
    """
    with open(task.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", __file__, os.path.basename(task.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            pass_fds=[keep_open],
            bufsize=0,
        )
    assert process.stdin is not None
    message = {"lab_pid": os.getpid(), "task": asdict(task)}
    with suppress(BrokenPipeError):  # it died at once: poll() shows it, and its log says why
        process.stdin.write(json.dumps(message).encode() + b"\n")
    return process


def ask_to_stop(keeper: subprocess.Popen[bytes]) -> None:
    """Request that a keeper stop its service, without waiting.

    It sends a message instead of only closing the pipe, because a forked worker may hold a copy of the pipe's end.
    """
    assert keeper.stdin is not None
    keeper.send_signal(signal.SIGCONT)  # a user may have stopped it
    with suppress(BrokenPipeError, ValueError):  # the keeper has ended, or was asked before
        keeper.stdin.write(b"stop\n")
        keeper.stdin.close()


def close(keeper: subprocess.Popen[bytes]) -> None:
    """Close the lab's ends of a keeper's pipes; an unfinished keeper takes it as a request to stop."""
    for stream in (keeper.stdin, keeper.stdout):
        if stream is not None:
            stream.close()


if __name__ == "__main__":
    sys.exit(main())
