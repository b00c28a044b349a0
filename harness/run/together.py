"""Several workers at once, each with its own job: they connect, warm up, wait for one another, and start.

Their results are combined into one, from the first clock's start to the last one's stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from harness.machine import stopping
from harness.model import Status
from harness.run.execution import COMMAND, Execution, Worker, measurement
from harness.worker.measure import Memory, StopwatchReport
from harness.worker.messages import Answer, AnyJob, Failed, Measured, Numbers
from harness.worker.meters import servers_cpu_seconds, spent_by_servers

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
