"""One worker process from start to end: pass it a job, sample its memory, end it if it hangs, return its answer."""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic

from pydantic import TypeAdapter, ValidationError

from harness.lab import interpreters
from harness.machine import scratch, stopping
from harness.machine.patience import Patience
from harness.machine.shortage import missing
from harness.machine.variables import clean_environment
from harness.model import Measurement, Status
from harness.worker.lines import line
from harness.worker.measure import SAMPLE_SECONDS, Sample, peaks_above_start, read_cpu_seconds, read_memory
from harness.worker.messages import CALLED, PAUSED, READY, AnswerT, Failed, Job, Measured

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


def execute(
    job: Job[AnswerT],
    time_limit: float,
    log: Path,
    server_died: Callable[[], bool] = lambda: False,
    command: tuple[str, ...] = COMMAND,
    worker: "Worker | None" = None,
    called: Callable[[], None] = lambda: None,
    paused: Callable[[], object] = lambda: None,
) -> Execution[AnswerT]:
    """Run a job in a fresh process; `log` receives its standard error. `worker` is one that already waits for the job.

    `called` is called after the worker's timing, while it prepares its result. `paused` is called at each of its
    pauses; when it returns, the worker continues.

    The answer's status is the worker's own, or one of these. `timeout`: after `time_limit` seconds of its life, not
    counting the time in which this process was stopped (an answer given meanwhile is read first). `killed`: a signal
    ended it. `again`: that signal was one with which people end programs. `error`: it ended without an answer, gave an
    invalid one, or its server died.
    """
    return (worker or Worker(log, command)).ask(job, time_limit, server_died, called, paused)


def getting_ready(
    log: Path, contract: str, transport: str, module: str, command: tuple[str, ...] = COMMAND
) -> "Worker":
    """Start a process for a contract's next job, which imports the transport's modules and then waits."""
    return Worker(log, (*command, contract, transport, module), says_ready=True)


class Worker:
    """A worker process; it ends, with everything it started, after its last job or the first failure."""

    def __init__(self, log: Path, command: tuple[str, ...] = COMMAND, says_ready: bool = False) -> None:
        self._log, self._says_ready = log, says_ready
        self._scratch = scratch.folder("worker")
        if command[0] != COMMAND[0]:
            interpreters.lend(Path(self._scratch.name))
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(self._scratch.name),
                cwd=self._scratch.name,  # for files that clients leave in their working directory, such as logs
                start_new_session=True,
            )
        self.ended = False
        stopping.at_last(self._kill)

    def ask(
        self,
        job: Job[AnswerT],
        time_limit: float,
        server_died: Callable[[], bool] = lambda: False,
        called: Callable[[], None] = lambda: None,
        paused: Callable[[], object] = lambda: None,
    ) -> Execution[AnswerT]:
        """Pass it a job and return the result, see `execute`; it stays alive only if its answer says so."""
        answer: AnswerT | Failed | None = None
        ended = ""
        try:
            asked = line({"contract": job.contract, "job": job})
            if self._is_ready(time_limit):
                samples, output, ended = _watch(
                    self._process, asked, time_limit, server_died, {CALLED: called, PAUSED: paused}
                )
            else:
                samples, output, ended = [], b"", "timeout"
            if output.endswith(b"\n"):
                answer = _read(output, job.answered_by())
        finally:
            patience = _LAST_SECONDS if ended == "closed" and answer is None else 0.5
            ended_itself = False if answer and answer.stays else self.end(patience)
        if answer is None:
            if ended == "closed" and not ended_itself:
                ended = "closed its output"
            answer = _no_answer(ended, self._process.returncode, time_limit, self._log)
        return Execution(answer, samples)

    def _is_ready(self, time_limit: float) -> bool:
        """Wait until it is ready for its job or has ended; return whether that was in time."""
        if not self._says_ready:
            return True
        self._says_ready = False
        assert self._process.stdout is not None
        patience = Patience(time_limit)
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while patience.left() > 0:
                if selector.select(SAMPLE_SECONDS):
                    os.read(self._process.stdout.fileno(), len(READY))
                    return True
                stopping.check()
        return False

    def end(self, patience: float = 0.5) -> bool:
        """End it unless it ends within this many seconds; return whether it ended by itself."""
        if self.ended:
            return True
        self.ended = True
        ended_itself = _end(self._process, patience)
        stopping.not_any_more(self._kill)
        self._scratch.cleanup()
        return ended_itself

    def _kill(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)


def _environment(scratch: str) -> dict[str, str]:
    """Return a worker's environment variables: no client may change its defaults or leave files by them."""
    return clean_environment() | {"XDG_CONFIG_HOME": scratch, "PYTHON_DOTENV_DISABLED": "1"}


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


def _watch(
    process: subprocess.Popen[bytes],
    asked: bytes,
    time_limit: float,
    server_died: Callable[[], bool],
    said: Mapping[bytes, Callable[[], object]],
) -> tuple[list[Sample], bytes, str]:
    """Feed and sample the process until it closes its output; return samples, output and why watching ended.

    `said` handles its messages before the answer.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(asked)
        process.stdin.flush()  # and left open: closing it tells the worker that we are gone
    except BrokenPipeError:
        return [], b"", "closed"  # it died at once; its exit code says why
    samples: list[Sample] = []
    output = b""
    patience, reason = Patience(time_limit), "timeout"
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while patience.left() > 0:
            if selector.select(SAMPLE_SECONDS):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    return samples, output, "closed"
                output = _heard(process, output + chunk, said)
                if output.endswith(b"\n"):  # the answer; a process that the worker started may hold the pipe open
                    return samples, output, "closed"
            _sample(process.pid, samples)
            stopping.check()  # only the main thread gets a signal's exception
            if reason == "timeout" and server_died():
                patience.shorten(GRACE_SECONDS)
                reason = "server died"
    return samples, output, reason


def _heard(process: subprocess.Popen[bytes], output: bytes, said: Mapping[bytes, Callable[[], object]]) -> bytes:
    """Handle a worker's messages before its answer; return its output after them."""
    for words, do in said.items():
        while output.startswith(words):
            output = output.removeprefix(words)
            do()
            if words == PAUSED and process.stdin:
                with suppress(BrokenPipeError):  # it has died meanwhile; its exit code says why
                    process.stdin.write(b"\n")
                    process.stdin.flush()
    return output


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
            return Failed(Status.AGAIN, f"somebody ended the worker by {name}")
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


def _read(output: bytes, of: type[AnswerT]) -> AnswerT | Failed:
    """Return the answer in a line of JSON, or a failure if the line is not one."""
    try:
        found = json.loads(output)
        status = Status(found["status"])
    except (ValueError, TypeError, KeyError):
        return Failed(Status.ERROR, f"expected one line of JSON as the worker's answer, found {output[:80]!r}")
    try:
        of_it = of if status is Status.OK else Failed
        return _reader(of_it).validate_python(found)  # type: ignore[arg-type]  # of mypy no class has a hash
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        return Failed(Status.ERROR, f"the worker's answer is no {error.title}: {wrong}")


@cache
def _reader(of: Any) -> TypeAdapter[Any]:
    return TypeAdapter(of)
