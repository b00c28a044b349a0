"""A worker reads its job and answers: what crosses between it and its parent, and that nothing else does."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Status
from harness.run.execution import Worker, execute
from harness.worker.measure import Memory, StopwatchReport
from harness.worker.messages import Failed
from tests.run.one_liners import ANSWER, LONG_BEFORE, OK, READ_JOB, Call, saying

pytestmark = pytest.mark.process


def test_the_job_reaches_the_worker_and_its_answer_comes_back(run):
    answer = run(
        READ_JOB + ANSWER, job=Call(transport="a way", uri="postgresql://u:p@h", logical_types={'é\n"': "int64"})
    )
    said = {"transport": "a way", "module": "", "result": "", "stays": False, "server_pids": None, "mark": ""}
    said |= {"call": 1, "together": False}
    said |= {"uri": "postgresql://u:p@h", "sleep": 0.0, "logical_types": {'é\n"': "int64"}}
    assert answer.said == {"contract": "echo", "job": said}
    assert (answer.status, answer.stays, answer.details) == (Status.OK, False, {})
    assert answer.measured.report == StopwatchReport(
        0.5, 0.25, 0.0, None, None, 1, 2, Memory(1, None, None, None), Memory(1, None, None, None), 7
    )
    assert (answer.measured.connect_seconds, answer.measured.details) == (0.1, {"a": 1})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": "ok"}, "the worker's answer is no Echo: measured: Field required"),
        (OK | {"converted": {}}, "the worker's answer is no Echo: converted: Unexpected keyword argument"),
        (OK | {"measured": {**OK["measured"], "x": 1}}, "no Echo: measured.x: Unexpected keyword argument"),
        (OK | {"stays": "for ever"}, "no Echo: stays: Input should be a valid boolean"),
        ({"status": "error"}, "the worker's answer is no Failed: error: Field required; said: Unexpected"),
    ],
)
def test_an_answer_with_fields_too_many_or_too_few_is_an_error_that_names_them(run, answer, said):
    found = run(READ_JOB + saying("1", answer))
    assert found.status is Status.ERROR
    assert said in found.error


def test_the_job_stands_in_no_process_list(run):
    job = Call(transport="a way", uri="postgresql://u:secret@h")
    said = run(READ_JOB + saying("open('/proc/self/cmdline').read()"), job=job).said
    assert "readline" in said
    assert "secret" not in said


def test_no_variable_that_could_change_a_client_reaches_the_worker(run, monkeypatch):
    of_clients = (
        "POLARS_MAX_THREADS",
        "PGSSLMODE",
        "OMP_NUM_THREADS",
        "PYTHONOPTIMIZE",
        "MALLOC_ARENA_MAX",
        "HTTP_PROXY",
    )
    for name in (*of_clients, "LAB_SEED"):
        monkeypatch.setenv(name, "1")
    seen = run(READ_JOB + saying("list(os.environ)")).said
    assert not set(of_clients) & set(seen)
    assert {"LAB_SEED", "PATH", "HOME", "NO_PROXY"} <= set(seen)


def test_an_answer_of_many_megabytes_comes_back_whole(run):
    assert run(READ_JOB + saying("'x' * 5_000_000")).said == "x" * 5_000_000


def test_memory_is_sampled_while_the_worker_runs(tmp_path):
    code = READ_JOB + "held = b'x' * 50_000_000; time.sleep(1); " + ANSWER
    before = time.monotonic_ns()
    samples = execute(Call(transport="a way"), 20, tmp_path / "log", command=(sys.executable, "-S", "-c", code)).samples
    assert before < samples[0].at_ns < samples[-1].at_ns < time.monotonic_ns()
    assert len(samples) >= 2
    assert max(sample.memory.rss for sample in samples) > 50_000_000


CALLED = "print(json.dumps({'event': 'called'}), flush=True); "
STAYS = "import json, sys, time\nfor line in sys.stdin:\n    time.sleep(json.loads(line)['job']['sleep'])\n    "


def test_a_worker_that_stays_lives_until_it_is_ended_or_a_job_takes_too_long(tmp_path):
    code = STAYS + saying("1", OK | {"stays": True})
    job = Call(transport="a way", stays=True)
    worker = Worker(tmp_path / "log", (sys.executable, "-S", "-E", "-c", code))
    for sleep in (0, 0.01):
        assert worker.ask(replace(job, sleep=sleep), 20).answer.status is Status.OK
    assert not worker.ended
    assert worker.ask(replace(job, sleep=30.0), 0.3).answer.status is Status.TIMEOUT
    assert worker.ended
    assert worker.end()


def test_an_answer_is_taken_at_once_even_where_something_keeps_the_output_open(run):
    keep = "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(90)']); "
    started = time.monotonic()
    assert run(READ_JOB + keep + ANSWER, time_limit=60.0).status is Status.OK
    assert time.monotonic() - started < LONG_BEFORE


@pytest.mark.parametrize(
    "junk",
    [
        "hello",
        "",
        "{",
        "[1]",
        '{"event": "gone"}',
        '{"event": "answered", "answer": 7}',
        "7",
        "null",
        "{}",
        "\\xff",
        '{"status": "ok"}\\nhello',
    ],
)
def test_junk_on_the_output_is_an_error_and_no_answer(run, junk):
    answer = run(READ_JOB + f"os.write(1, '{junk}'.encode('latin-1') + b'\\n')")
    assert answer.status == Status.ERROR
    assert "answer" in answer.error


def test_half_an_answer_of_a_killed_worker_is_none(run):
    answer = run(READ_JOB + 'os.write(1, b\'{"status": "ok"\'); os.kill(os.getpid(), 9)')
    assert answer == Failed(Status.KILLED, "the worker was killed by SIGKILL")


def test_a_job_for_a_very_wide_table_that_is_never_read_does_not_block_beyond_the_time_limit(run):
    logical_types = {f"a_rather_long_column_name_{number}": "float64" for number in range(1_000)}
    job = Call(transport="a way", logical_types=logical_types)
    started = time.monotonic()
    answer = run("import time; time.sleep(60)", time_limit=0.5, job=job)
    assert time.monotonic() - started < LONG_BEFORE
    assert answer.status == Status.TIMEOUT


@pytest.mark.long
def test_many_executions_leave_no_file_open_and_no_child(run):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        run(READ_JOB + ANSWER)
    assert len(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if "os.getpid" in Path(f"/proc/{pid}/cmdline").read_text()]


def test_the_standard_error_of_the_worker_is_in_the_log(run, tmp_path):
    run(READ_JOB + "print('a warning', file=sys.stderr); " + ANSWER)
    assert (tmp_path / "log").read_text() == "a warning\n"


def test_that_the_clock_has_stopped_is_told_before_the_answer_comes(run, tmp_path):
    heard = tmp_path / "heard"
    wait = f"[time.sleep(0.01) for _ in iter(lambda: os.path.exists({str(heard)!r}), True)]; "
    answer = run(READ_JOB + CALLED + wait + ANSWER, called=heard.touch)
    assert answer.status is Status.OK


def test_that_the_clock_has_stopped_is_told_once_where_the_answer_comes_at_the_same_time(run):
    told = []
    answer = run(READ_JOB + CALLED.replace(", flush=True", "") + ANSWER, called=lambda: told.append(1))
    assert (answer.status, told) == (Status.OK, [1])
