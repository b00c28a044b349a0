"""Workers that begin together: none before all are ready, one outcome of all, and one failure that ends the others."""

import sys
import time
from pathlib import Path

import pytest

from harness.model import Status
from harness.run.execution import Execution
from harness.run.together import execute_together
from harness.worker.messages import Failed
from tests.run.one_liners import LONG_BEFORE, OK, READ_JOB, Call, saying

pytestmark = pytest.mark.process

PAUSE = "print(json.dumps({'event': 'paused'}), flush=True); sys.stdin.readline(); "
LATE = READ_JOB + "time.sleep(job['job']['sleep']); print(time.monotonic(), file=sys.stderr); "
LATE += PAUSE + saying("time.monotonic()")
FAILS = READ_JOB + "sys.exit('no such server') if job['job']['sleep'] else None; " + PAUSE + saying("1")


def together(code: str, folder: Path, *sleeps: float, time_limit: float = 20.0) -> Execution:
    jobs = [Call(transport="a way", sleep=sleep) for sleep in sleeps]
    command = (sys.executable, "-S", "-E", "-c", code)
    return execute_together(jobs, time_limit, folder / "log", command=command)


def test_nobody_begins_before_the_last_one_is_ready(tmp_path: Path) -> None:
    begun = together(LATE, tmp_path, 0.0, 0.5).answer.said  # of the first, which is ready at once
    ready = [float(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(ready) == 2
    assert max(ready) <= begun


def test_what_came_out_is_told_as_of_one_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
    report = OK["measured"]["report"]
    several = [
        OK | {"measured": OK["measured"] | {"report": report | {"started_ns": start, "ended_ns": end, "seconds": 1.5}}}
        for start, end in ((2 * 10**9, 3 * 10**9), (10**9, 2 * 10**9))
    ]
    code = (
        READ_JOB
        + PAUSE
        + f"answer = {several!r}[int(job['job']['sleep'])]; "
        + "print(json.dumps({'event': 'answered', 'answer': {**answer, 'said': 1}}))"
    )
    found = together(code, tmp_path, 0.0, 1.0)
    measured = found.answer.measured
    assert (measured.report.started_ns, measured.report.ended_ns) == (10**9, 3 * 10**9)
    assert (measured.report.seconds, measured.report.cpu_user_seconds) == (2.0, 0.5)
    assert measured.report.after.rss == 2 * 6  # of each a high-water mark of 7 above the 1 it had before
    details = {"fastest_client_seconds": 1.5, "slowest_client_seconds": 1.5, "begun_within_seconds": 1.0}
    assert measured.details == details


def test_where_one_fails_before_the_start_the_others_end_and_its_reason_is_told(tmp_path: Path) -> None:
    began = time.monotonic()
    answer = together(FAILS, tmp_path, 0.0, 1.0, 0.0, time_limit=60.0).answer
    assert answer == Failed(
        Status.ERROR, 'client 2 of 3: the worker ended with exit code 1 and no answer: "no such server"'
    )
    assert time.monotonic() < began + LONG_BEFORE
    assert "no such server" in (tmp_path / "log").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_who_does_not_come_to_the_start_in_time_is_a_timeout(tmp_path: Path) -> None:
    answer = together(LATE, tmp_path, 0.0, 30.0, time_limit=2.0).answer
    assert isinstance(answer, Failed)
    assert answer.status in (Status.TIMEOUT, Status.ERROR)
    assert "client 2 of 2: ended after the time limit of 2 s" in answer.error
