"""The lab's side of a keeper: start it, request a stop, release it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict

from harness.embedded import keeper as program
from harness.embedded.keeper import Task


def launch(task: Task, keep_open: int) -> subprocess.Popen[bytes]:
    """Start a keeper for the task.

    `keep_open` is a file descriptor that the keeper holds while it lives (the lab's lock), and its service does not.
    """
    with open(task.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", program.__file__, os.path.basename(task.folder)],
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
