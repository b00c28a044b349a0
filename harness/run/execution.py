"""Workers: give a process its job, watch it, end it if it hangs; start the next one early; run several at once."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, cast

from pydantic import TypeAdapter, ValidationError

from harness.lab import interpreters
from harness.machine import scratch, stopping
from harness.machine.shortage import missing
from harness.machine.stopping import Patience
from harness.machine.variables import clean_environment
from harness.model import Measurement, Run, Status
from harness.worker import messages
from harness.worker.lines import line
from harness.worker.measure import (
    SAMPLE_SECONDS,
    Memory,
    Sample,
    StopwatchReport,
    peaks_above_start,
    read_cpu_seconds,
    read_memory,
)
from harness.worker.messages import Answer, AnswerT, AnyJob, Failed, Job, Measured, Numbers
from harness.worker.meters import servers_cpu_seconds, spent_by_servers

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


# The worker of the next run, started and its clients imported while the last result is verified.
#
# Starting and importing take half a second, in which the parent would only wait. Nothing runs during a timed call. The
# worker starts when the previous one's timing has ended, imports the modules of its transport, and then waits for its
# job. A failed import is not reported here, because the job fails on it again.


@dataclass
class Ahead:
    """At most one worker that waits for its run, if `on`. `next` is the run that follows the current one, if any."""

    on: bool = False
    next: Run | None = None
    _waiting: tuple[Run, Worker, Path] | None = None

    def start(self, contract: str, log_of: Callable[[Run], Path]) -> None:
        """Start the next run's worker with its own log. If none can be started, the run starts one.

        A worker that is already started stays.
        """
        if self.next is None or (self._waiting and self._waiting[0] is self.next):
            return
        self.close()
        entry, environment = self.next.case.transport, self.next.case.environment
        with suppress(OSError):  # a full disk or missing folder: the run meets it again and reports it
            log, command = log_of(self.next), interpreters.command_of(entry, environment)
            self._waiting = self.next, Worker(log, (*command, contract, entry.id, entry.module)), log

    def take(self, run: Run) -> Worker | None:
        """Return the worker that waits for this run, if any; end one that waits for another run."""
        if self._waiting is None or self._waiting[0] is not run:
            self.close()
            return None
        (_, worker, _), self._waiting = self._waiting, None
        return worker

    def close(self) -> None:
        """End the waiting worker and remove its empty log."""
        if self._waiting is None:
            return
        (_, worker, log), self._waiting = self._waiting, None
        worker.end()
        log.unlink(missing_ok=True)


# Several workers at once, each with its own job: they connect, warm up, wait for one another, and start.
#
# Their results are combined into one, from the first clock's start to the last one's stop.

_LOOK_SECONDS = 0.05  # between checks whether a person has asked to stop
_OTHER = "another client failed before all had begun"


def execute_together(
    jobs: Sequence[AnyJob],
    time_limit: float,
    log: Path,
    server_died: Callable[[], bool] = lambda: False,
    command: tuple[str, ...] = COMMAND,
) -> Execution[Answer]:
    """Run jobs at once in fresh processes and return one combined result; `log` receives all their output.

    Seconds count from the first start to the last end. CPU time and memory peaks are the sums over all. The result's
    details are the first one's. If one fails, all fail, with the first failure as the answer.
    """
    logs = [log.with_name(f"{log.name}.{place}") for place in range(1, len(jobs) + 1)]
    server_pids, before = jobs[0].server_pids or [], list[float | None]()
    # Where the workers wait for one another; the last one to arrive has the servers' CPU time read.
    barrier = threading.Barrier(len(jobs), lambda: before.append(servers_cpu_seconds(server_pids)))
    with ThreadPoolExecutor(len(jobs)) as threads:
        asked = [
            threads.submit(partial(_ask, job, time_limit, one, server_died, command, barrier))
            for job, one in zip(jobs, logs, strict=True)
        ]
        found = _waited_for(asked, barrier)
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(one.read_bytes() for one in logs if one.exists()))
    for one in logs:
        one.unlink(missing_ok=True)
    return _as_one(found, spent_by_servers(before[0] if before else None, servers_cpu_seconds(server_pids)))


def _waited_for(asked: Sequence[Future[Execution[Answer]]], barrier: threading.Barrier) -> list[Execution[Answer]]:
    left = set(asked)
    try:
        while left:
            _, left = wait(left, timeout=_LOOK_SECONDS)
            stopping.check()
    except BaseException:
        barrier.abort()
        raise
    return [one.result() for one in asked]


def _ask(
    job: AnyJob,
    time_limit: float,
    log: Path,
    server_died: Callable[[], bool],
    command: tuple[str, ...],
    barrier: threading.Barrier,
) -> Execution[Answer]:
    begun = False
    try:
        found = Worker(log, command).ask(job, time_limit, server_died, paused=lambda: barrier.wait(time_limit))
        begun = not isinstance(found.answer, Failed)
        return found
    except threading.BrokenBarrierError:
        return Execution(Failed(Status.ERROR, _OTHER), [])
    finally:
        if not begun:
            barrier.abort()


def _as_one(found: Sequence[Execution[Answer]], spent: Numbers) -> Execution[Answer]:
    failed = [(place, one.answer) for place, one in enumerate(found, start=1) if isinstance(one.answer, Failed)]
    if failed:
        place, answer = next((each for each in failed if each[1].error != _OTHER), failed[0])
        return Execution(replace(answer, error=f"client {place} of {len(found)}: {answer.error}"), [])
    answers = [cast(Answer, one.answer) for one in found]
    seconds = [answer.measured.report.seconds for answer in answers]
    started = [answer.measured.report.started_ns for answer in answers]
    details = spent | {"fastest_client_seconds": min(seconds), "slowest_client_seconds": max(seconds)}
    details["begun_within_seconds"] = (max(started) - min(started)) / 1e9
    for name in ("sent_bytes", "received_bytes"):
        counted = [answer.measured.details.get(name) for answer in answers]
        if None not in counted:
            details[name] = sum(number or 0 for number in counted)
    connected = max(answer.measured.connect_seconds for answer in answers)
    return Execution(replace(answers[0], measured=Measured(connected, _report(found), details)), [])


def _report(found: Sequence[Execution[Answer]]) -> StopwatchReport:
    """Return the report of all, with no memory before the call and the sum of the peaks after it."""
    measured = [cast(Answer, one.answer).measured for one in found]
    reports = [one.report for one in measured]
    peaks = [measurement(of, one.samples) for of, one in zip(measured, found, strict=True)]
    started, ended = min(one.started_ns for one in reports), max(one.ended_ns for one in reports)
    anon, file = (_sum([getattr(one, name) for one in peaks]) for name in ("peak_anon_bytes", "peak_file_bytes"))
    return StopwatchReport(
        seconds=(ended - started) / 1e9,
        cpu_user_seconds=sum(one.cpu_user_seconds for one in reports),
        cpu_system_seconds=sum(one.cpu_system_seconds for one in reports),
        steal_seconds=_most([one.steal_seconds for one in reports]),
        throttled_seconds=_most([one.throttled_seconds for one in reports]),
        started_ns=started,
        ended_ns=ended,
        before=Memory(0, None if anon is None else 0, None if file is None else 0),
        after=Memory(sum(one.peak_rss_bytes or 0 for one in peaks), anon, file),
        high_water=None,
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _most(numbers: Sequence[float | None]) -> float | None:
    """Return the maximum: each worker measured the machine's lost time during its own call."""
    return max((number for number in numbers if number is not None), default=None)
