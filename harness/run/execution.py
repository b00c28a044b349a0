"""A worker: give a process its job, watch and sample it, and end it if it hangs."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Generic

from pydantic import TypeAdapter, ValidationError

from harness.lab import interpreters
from harness.machine import scratch, stopping
from harness.machine.shortage import missing
from harness.machine.stopping import Patience
from harness.machine.variables import clean_environment
from harness.model import Measurement, Status
from harness.worker import messages
from harness.worker.lines import line
from harness.worker.measure import SAMPLE_SECONDS, Sample, peaks_above_start, read_cpu_seconds, read_memory
from harness.worker.messages import AnswerT, Failed, Job, Measured

_SIGNALS = {number.value: number.name for number in signal.Signals}
COMMAND = interpreters.WORKER
_STOPPED_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # sent by a person or by a machine that shuts down
GRACE_SECONDS = 5.0  # for a worker to notice and report that its server died
_LAST_SECONDS = 5.0  # for a worker to exit after it closed its output: Python takes a while on a busy machine


@dataclass(frozen=True)
class Execution(Generic[AnswerT]):
    """The result of a worker: its answer or failure, and the samples of memory and CPU."""

    answer: AnswerT | Failed
    samples: list[Sample]


class Worker:
    """A worker process; it ends, with everything it started, after its last job or the first failure.

    `log` receives its standard error.
    """

    def __init__(self, log: Path, command: tuple[str, ...] = COMMAND) -> None:
        self._log = log
        self._scratch = scratch.folder("worker")
        if command[0] != COMMAND[0]:
            interpreters.lend(Path(self._scratch.name))
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # No client may change its defaults, or leave files, by variables.
                env=clean_environment() | {"XDG_CONFIG_HOME": self._scratch.name, "PYTHON_DOTENV_DISABLED": "1"},
                cwd=self._scratch.name,  # for files that clients leave in their working directory, such as logs
                start_new_session=True,
            )
        self.ended = False
        stopping.AT_LAST.add(self._kill)

    def ask(
        self,
        job: Job[AnswerT],
        time_limit: float,
        server_died: Callable[[], bool] = lambda: False,
        called: Callable[[], None] = lambda: None,
        paused: Callable[[], object] = lambda: None,
    ) -> Execution[AnswerT]:
        """Pass it a job and return the result; it stays alive only if its answer says so.

        `called` is called after the worker's timing, while it prepares its result. `paused` is called at each of its
        pauses; when it returns, the worker continues.

        The answer's status is the worker's own, or one of these. `timeout`: after `time_limit` seconds of its life, not
        counting the time in which this process was stopped (an answer given meanwhile is read first). `killed`: a
        signal ended it. `again`: that signal was one with which people end programs. `error`: it ended without an
        answer, gave an invalid one, or its server died.
        """
        answer: AnswerT | Failed | None = None
        listener = _Listener(self._process, Patience(time_limit), server_died)
        try:
            self._send(line({"contract": job.contract, "job": job}))
            while answer is None and (said := listener.line()):
                match _event(said):
                    case {"event": messages.CALLED}:
                        called()
                    case {"event": messages.PAUSED}:
                        paused()
                        self._send(b"\n")
                    case {"event": messages.ANSWERED, "answer": {"status": _} as found}:
                        answer = _read(found, job.answered_by())
                    case _:
                        reason = f"the worker's answer is not a line of JSON: {said[:80]!r}"
                        answer = Failed(Status.ERROR, reason)
        finally:
            patience = _LAST_SECONDS if listener.ended == "closed" else 0.5
            ended_itself = False if answer and answer.stays else self.end(patience)
        if answer is None:
            if listener.ended == "closed" and not ended_itself:
                listener.ended = "closed its output"
            answer = _no_answer(listener.ended, self._process.returncode, time_limit, self._log)
        elif isinstance(answer, Failed) and answer.error.startswith("PanicException") and not missing(answer.error):
            reason = missing(_said(self._log))  # Rust may print it without passing it on
            answer = replace(answer, error="; ".join(filter(None, (answer.error, reason))))
        return Execution(answer, listener.samples)

    def _send(self, text: bytes) -> None:
        """Send a line, unless the process has died: its exit code says why."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(text)
            self._process.stdin.flush()  # and left open: closing it tells the worker that we are gone

    def end(self, patience: float = 0.5) -> bool:
        """End it unless it ends within this many seconds; return whether it ended by itself."""
        if self.ended:
            return True
        self.ended = True
        ended_itself = _end(self._process, patience)
        stopping.AT_LAST.discard(self._kill)
        self._scratch.cleanup()
        return ended_itself

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


def measurement(measured: Measured, samples: list[Sample]) -> Measurement:
    """Return a worker's measurements, with the peaks that were sampled from outside."""
    report = measured.report
    rss, anon, file = peaks_above_start(report, samples)
    return Measurement(
        seconds=report.seconds,
        cpu_user_seconds=report.cpu_user_seconds,
        cpu_system_seconds=report.cpu_system_seconds,
        connect_seconds=measured.connect_seconds,
        steal_seconds=report.steal_seconds,
        throttled_seconds=report.throttled_seconds,
        peak_rss_bytes=rss,
        peak_anon_bytes=anon,
        peak_file_bytes=file,
    )


@dataclass
class _Listener:
    """Reads and samples a worker; `ended` says why watching ended."""

    process: subprocess.Popen[bytes]
    patience: Patience
    server_died: Callable[[], bool]
    ended: str = "timeout"
    samples: list[Sample] = field(default_factory=list)
    _read: bytes = b""

    def line(self) -> bytes:
        """Return its next line; empty if it closes its output or the time is up. Its own processes may keep it open."""
        assert self.process.stdout
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._read:
                if self.patience.left() <= 0:
                    return b""
                if selector.select(SAMPLE_SECONDS):
                    chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                    if not chunk:
                        self.ended = "closed"
                        return b""
                    self._read += chunk
                _sample(self.process.pid, self.samples)
                stopping.check()  # only the main thread gets a signal's exception
                if self.ended == "timeout" and self.server_died():
                    self.patience.shorten(GRACE_SECONDS)
                    self.ended = "server died"
        found, _, self._read = self._read.partition(b"\n")
        return found + b"\n"


def _sample(pid: int, samples: list[Sample]) -> None:
    try:
        samples.append(Sample(time.monotonic_ns(), read_memory(pid), read_cpu_seconds(pid)))
    except ProcessLookupError:
        return  # it has just ended; its closed output shows the rest


def _end(process: subprocess.Popen[bytes], patience: float) -> bool:
    """End the process and everything it started; reap it and close the pipes; return whether it ended by itself."""
    try:
        process.wait(timeout=patience)
        ended_itself = True
    except subprocess.TimeoutExpired:
        ended_itself = False
    with suppress(ProcessLookupError):  # its group is empty
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # an unread job of a dead worker
    return ended_itself


def _no_answer(ended: str, code: int, time_limit: float, log: Path) -> Failed:
    if ended == "closed its output":
        return Failed(Status.ERROR, "the worker closed its output without an answer and was ended")
    if ended == "timeout":
        return Failed(Status.TIMEOUT, f"ended after the time limit of {time_limit:g} s")
    if ended == "server died":
        return Failed(Status.ERROR, "the worker did not notice that its server died; it was ended")
    if code < 0:
        name = _SIGNALS.get(-code, f"signal {-code}")
        if -code in _STOPPED_BY:
            return Failed(Status.AGAIN, f"the worker was ended by {name}")
        reason = missing(_said(log))  # a library that cannot start a thread ends its process
        return Failed(Status.KILLED, f"the worker was killed by {name}{f': {reason}' if reason else ''}")
    lines = _said(log).strip().splitlines()
    said = f': "{lines[-1]}"' if lines else ""
    return Failed(Status.ERROR, f"the worker ended with exit code {code} and no answer{said}")


def _said(log: Path) -> str:
    try:
        return log.read_text(errors="replace")
    except FileNotFoundError:  # the file was removed
        return ""


def _event(said: bytes) -> object:
    """Return an event from its line; None for another line."""
    try:
        return json.loads(said)
    except ValueError:
        return None


def _read(found: dict[str, object], of: type[AnswerT]) -> AnswerT | Failed:
    """Return an answer, or a failure if it has another type."""
    of_it: Any = of if found["status"] == Status.OK else Failed
    try:
        answer: AnswerT | Failed = _reader(of_it).validate_python(found)
        return answer
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return Failed(Status.ERROR, f"the worker's answer is no {error.title}: {wrong}")


@cache
def _reader(of: Any) -> TypeAdapter[Any]:
    return TypeAdapter(of)
