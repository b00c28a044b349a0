"""Workers that are one line of Python: the job that they read, their answer, and a process that they may start."""

import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from harness.worker.messages import Answer, Job


@dataclass(frozen=True, kw_only=True)
class Echo(Answer):
    said: Any


@dataclass(frozen=True, kw_only=True)
class Call(Job[Echo]):
    """A job of these tests alone."""

    contract = "echo"

    uri: str = ""
    sleep: float = 0.0
    logical_types: dict[str, str] = field(default_factory=dict)


LONG_BEFORE = 30.0  # seconds within which the lab ends a process of a minute, even on a busy machine
MEMORY = {"rss": 1, "anon": None, "file": None, "high_water": None}
REPORT = {"seconds": 0.5, "cpu_user_seconds": 0.25, "cpu_system_seconds": 0, "steal_seconds": None}
REPORT |= {"throttled_seconds": None, "started_ns": 1, "ended_ns": 2, "before": MEMORY, "after": MEMORY}
OK = {"status": "ok", "measured": {"connect_seconds": 0.1, "report": REPORT | {"high_water": 7}, "details": {"a": 1}}}
READ_JOB = "import json, os, signal, subprocess, sys, time; job = json.loads(sys.stdin.readline()); "


def saying(text, answer=OK):
    """A piece of a worker that answers with an expression of Python."""
    return f"print(json.dumps({{'event': 'answered', 'answer': {{**{answer!r}, 'said': {text}}}}}), flush=True); "


ANSWER = saying("job")


class Descendant:
    """A process that a worker starts: it writes its pid to a named pipe, which stays open as long as it lives."""

    def __init__(self, pipe: Path):
        os.mkfifo(pipe)
        self.reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.text = b""
        self.body = f"import os, time; p = open({str(pipe)!r}, 'w'); print(os.getpid(), file=p, flush=True); "
        self.code = f"{self.body} print(flush=True); time.sleep(60)"
        # Started and seen alive before the worker goes on.
        self.start = f"subprocess.Popen([sys.executable, '-S', '-c', {self.code!r}], stdout=-1).stdout.readline(); "

    def has_ended(self, seconds=LONG_BEFORE):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if wait([self.reader], left):
                chunk = os.read(self.reader, 100)
                if not chunk and self.text:
                    return True
                self.text += chunk
        return False

    def close(self):
        if not self.has_ended(0.01) and self.text:
            os.kill(int(self.text.split()[0]), signal.SIGKILL)
        os.close(self.reader)
