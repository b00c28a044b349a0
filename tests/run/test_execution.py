"""A worker reads its job and answers, hangs, dies or leaves things running: every end has a name and leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from harness.model import Status
from harness.run import execution
from harness.run.execution import Execution, Worker
from harness.run.fault_attribution import watch
from harness.run.together import execute_together
from harness.worker.measure import Memory, StopwatchReport
from harness.worker.messages import Failed
from tests.run.one_liners import ANSWER, LONG_BEFORE, OK, READ_JOB, Call, saying
from tests.waiting import until

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


def test_the_job_is_in_no_process_list(run):
    job = Call(transport="a way", uri="postgresql://u:secret@h")
    said = run(READ_JOB + saying("open('/proc/self/cmdline').read()"), job=job).said
    assert ("readline" in said, "secret" in said) == (True, False)


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


def test_memory_is_sampled_while_the_worker_runs(tmp_path):
    code = READ_JOB + "held = b'x' * 50_000_000; time.sleep(1); " + ANSWER
    before = time.monotonic_ns()
    samples = Worker(tmp_path / "log", (sys.executable, "-S", "-c", code)).ask(Call(transport="a way"), 20).samples
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


def test_the_worker_tells_before_its_answer_that_the_clock_has_stopped(run, tmp_path):
    heard = tmp_path / "heard"
    wait = f"[time.sleep(0.01) for _ in iter(lambda: os.path.exists({str(heard)!r}), True)]; "
    answer = run(READ_JOB + CALLED + wait + ANSWER, called=heard.touch)
    assert answer.status is Status.OK


def test_that_the_clock_has_stopped_is_reported_once_where_the_answer_comes_at_the_same_time(run):
    told = []
    answer = run(READ_JOB + CALLED.replace(", flush=True", "") + ANSWER, called=lambda: told.append(1))
    assert (answer.status, told) == (Status.OK, [1])


def test_a_worker_that_hangs_ends_at_its_limit_with_all_it_started(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "time.sleep(60)", time_limit=2.0)  # by when both are up
    assert time.monotonic() - started < LONG_BEFORE
    assert answer == Failed(Status.TIMEOUT, "ended after the time limit of 2 s")
    assert descendant.has_ended()


IGNORE = "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]; "
SAYS_WHY = "print(json.dumps({'event': 'answered', 'answer': {'status': 'error', 'error': 'connection lost'}}))"


def kill_itself(number):
    default = f"signal.signal({int(number)}, signal.SIG_DFL); " if number in (1, 2, 15) else ""
    return f"{default}os.kill(os.getpid(), {int(number)}); time.sleep(5)"


NUMBERS = {9: "SIGKILL", signal.SIGSEGV: "SIGSEGV", signal.SIGABRT: "SIGABRT", 40: "signal 40"}
ENDS = [
    *((Status.KILLED, f"the worker was killed by {NUMBERS[number]}", kill_itself(number)) for number in NUMBERS),
    *(
        (Status.AGAIN, f"the worker was ended by {number.name}", kill_itself(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ),
    (Status.KILLED, "the worker was killed by SIGKILL", 'os.write(1, b\'{"status": "ok"\'); ' + kill_itself(9)),
    (Status.TIMEOUT, "ended after the time limit of 2 s", IGNORE + "time.sleep(30)"),
    (Status.ERROR, "the worker ended with exit code 0 and no answer", "os._exit(0)"),
    (Status.ERROR, "the worker ended with exit code 4 and no answer", "os.close(0); os._exit(4)"),
    (Status.ERROR, 'the worker ended with exit code 1 and no answer: "out of ideas"', "sys.exit('out of ideas')"),
    (
        Status.ERROR,
        'the worker ended with exit code 1 and no answer: "\ufffd\ufffd"',
        "os.write(2, bytes([255, 254, 10])); os._exit(1)",
    ),
]


@pytest.mark.parametrize(("status", "error", "code"), ENDS)
def test_each_end_of_a_worker_has_its_name(run, status, error, code):
    limit = 2.0 if IGNORE in code else 60.0
    assert run(READ_JOB + code, time_limit=limit) == Failed(status, error)
    if "os._exit(4)" in code:  # also before it reads its job
        assert run("import os; os._exit(4)") == Failed(status, error)


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), 9)", "sys.exit(3)", "os._exit(0)", ANSWER + "os._exit(0)"],
    ids=["killed", "exit 3", "exit 0", "answered"],
)
def test_what_a_worker_started_ends_with_it_however_it_ends(run, descendant, end):
    run(READ_JOB + descendant.start + end)
    assert descendant.has_ended()


@pytest.mark.parametrize(
    ("then", "short"),
    [
        (SAYS_WHY, False),
        (SAYS_WHY.replace("connection lost", "PanicException: unwrap"), True),
        (kill_itself(signal.SIGABRT), True),
    ],
)
def test_a_library_that_starts_no_thread_and_says_so_in_the_log_alone_is_excused(run, then, short):
    """polars panics so at its import, and other libraries abort; other errors have their own reasons."""
    said = "print('Os { code: 11, message: \"Resource temporarily unavailable\" }', file=sys.stderr, flush=True); "
    answer = run(READ_JOB + said + then)
    assert watch([]).judged(answer).status is (Status.AGAIN if short else Status.ERROR)


@pytest.mark.long
def test_a_worker_that_closes_its_output_and_lives_on_is_ended_and_not_called_killed(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "os.close(1); time.sleep(60)", time_limit=60.0)
    assert time.monotonic() - started < LONG_BEFORE
    assert answer.status == Status.ERROR
    assert descendant.has_ended()


@pytest.mark.parametrize(
    ("grace", "limit", "then", "said"),
    [
        (20.0, 60.0, "time.sleep(0.2); " + SAYS_WHY, "connection lost"),
        (0.3, 60.0, "time.sleep(60)", "the worker did not notice that its server died; it was ended"),
        (60.0, 0.5, "time.sleep(60)", "the worker did not notice that its server died; it was ended"),
    ],
    ids=["it says so itself", "it is ended after the grace", "a grace does not lengthen the time limit"],
)
def test_a_worker_whose_server_died_has_a_grace(run, monkeypatch, grace, limit, then, said):
    monkeypatch.setattr(execution, "GRACE_SECONDS", grace)
    started = time.monotonic()
    answer = run(READ_JOB + then, limit, server_died=lambda: time.monotonic() > started + 0.2)
    assert answer == Failed(Status.ERROR, said)
    assert time.monotonic() - started < LONG_BEFORE


def test_ctrl_c_in_the_parent_ends_the_worker_and_all_it_started(run, descendant):
    def interrupt():
        if wait([descendant.reader], 0):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(READ_JOB + descendant.start + "time.sleep(30)", server_died=interrupt)
    assert descendant.has_ended()


PARENT = """
import pathlib, sys
from harness.run.execution import Worker
from tests.run.one_liners import Call
print("asking", flush=True)
command = (sys.executable, "-S", "-E", "-c", sys.argv[1])
found = Worker(pathlib.Path(sys.argv[2]), command).ask(Call(transport="a way"), 3.0)
print(found.answer.error, flush=True)
"""


LONG_ANSWER = "{'event': 'answered', 'answer': {'status': 'error', 'error': 'x' * 300_000}}"


@pytest.mark.long
@pytest.mark.parametrize(
    ("then", "said"),
    [
        (f"import json; print(json.dumps({LONG_ANSWER}), flush=True); ", "x" * 300_000),
        ("", "ended after"),
    ],
)
def test_what_a_worker_answered_while_its_parent_was_stopped_beyond_the_limit_counts(tmp_path, then, said):
    code = READ_JOB + f"open({str(tmp_path / 'asked')!r}, 'w').close(); time.sleep(0.5); {then}time.sleep(30)"
    command = (sys.executable, "-c", PARENT, code, str(tmp_path / "log"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "asking\n"
        until((tmp_path / "asked").exists)
        parent.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        parent.send_signal(signal.SIGCONT)
        assert parent.stdout.readline().startswith(said)


PAUSE = "print(json.dumps({'event': 'paused'}), flush=True); sys.stdin.readline(); "
LATE = READ_JOB + "time.sleep(job['job']['sleep']); print(time.monotonic(), file=sys.stderr); "
LATE += PAUSE + saying("time.monotonic()")
FAILS = READ_JOB + "sys.exit('no such server') if job['job']['sleep'] else None; " + PAUSE + saying("1")


def together(code: str, folder: Path, *sleeps: float, time_limit: float = 20.0) -> Execution:
    jobs = [Call(transport="a way", sleep=sleep) for sleep in sleeps]
    command = (sys.executable, "-S", "-E", "-c", code)
    return execute_together(jobs, time_limit, folder / "log", command=command)


def test_none_begins_before_the_last_one_is_ready(tmp_path: Path) -> None:
    begun = together(LATE, tmp_path, 0.0, 0.5).answer.said  # of the first, which is ready at once
    ready = [float(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(ready) == 2
    assert max(ready) <= begun


def test_what_came_out_is_reported_as_of_one_from_the_first_start_to_the_last_end(tmp_path: Path) -> None:
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


def test_where_one_fails_before_the_start_the_others_end_and_its_reason_is_reported(tmp_path: Path) -> None:
    began = time.monotonic()
    answer = together(FAILS, tmp_path, 0.0, 1.0, 0.0, time_limit=60.0).answer
    assert answer == Failed(
        Status.ERROR, 'client 2 of 3: the worker ended with exit code 1 and no answer: "no such server"'
    )
    assert time.monotonic() < began + LONG_BEFORE
    assert "no such server" in (tmp_path / "log").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_worker_that_does_not_reach_the_start_in_time_is_a_timeout(tmp_path: Path) -> None:
    answer = together(LATE, tmp_path, 0.0, 30.0, time_limit=2.0).answer
    assert answer.status in (Status.TIMEOUT, Status.ERROR)
    assert "client 2 of 2: ended after the time limit of 2 s" in answer.error
