"""A worker may hang, die, babble or leave things running: every end has a name, comes in time and leaves nothing."""

import os
import select
import signal
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.model import Status
from harness.run import execution
from harness.run.execution import Worker, execute
from harness.worker.measure import Memory, StopwatchReport
from harness.worker.messages import Answer, Failed, Job

pytestmark = pytest.mark.alone


@dataclass(frozen=True, kw_only=True)
class Echo(Answer):
    said: Any


@dataclass(frozen=True, kw_only=True)
class Call(Job[Echo]):
    """A job of these tests alone."""

    contract = "echo"

    uri: str = ""
    sleep: float = 0.0
    kinds: dict[str, str] = field(default_factory=dict)

    def answered_by(self) -> type[Echo]:
        return Echo


MEMORY = {"rss": 1, "anon": None, "file": None, "high_water": None}
REPORT = {"seconds": 0.5, "cpu_user_seconds": 0.25, "cpu_system_seconds": 0, "steal_seconds": None}
REPORT |= {"throttled_seconds": None, "started_ns": 1, "ended_ns": 2, "before": MEMORY, "after": MEMORY}
OK = {"status": "ok", "measured": {"connect_seconds": 0.1, "report": REPORT | {"high_water": 7}, "details": {"a": 1}}}
READ_JOB = "import json, os, signal, subprocess, sys, time; job = json.loads(sys.stdin.readline()); "


def saying(text, answer=OK):
    """A piece of a worker that answers with an expression of Python."""
    return f"print(json.dumps({{**{answer!r}, 'said': {text}}}), flush=True); "


ANSWER = saying("job")


@pytest.fixture
def run(tmp_path):
    """Execute a Python one-liner as the worker."""

    def run(code, time_limit=20.0, job=None, **more):
        command = (sys.executable, "-S", "-E", "-c", code)
        return execute(job or Call(transport="a way"), time_limit, tmp_path / "log", command=command, **more).answer

    return run


class Descendant:
    """A process that a worker starts: it writes its pid to a named pipe, which stays open as long as it lives."""

    def __init__(self, pipe: Path):
        os.mkfifo(pipe)
        self.reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.text = b""
        self.body = f"import os, time; p = open({str(pipe)!r}, 'w'); print(os.getpid(), file=p, flush=True); "
        self.code = f"{self.body} print(flush=True); time.sleep(30)"
        # Started and seen alive before the worker goes on.
        self.start = f"subprocess.Popen([sys.executable, '-S', '-c', {self.code!r}], stdout=-1).stdout.readline(); "

    def has_ended_within(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.reader], [], [], left)[0]:
                chunk = os.read(self.reader, 100)
                if not chunk and self.text:
                    return True
                self.text += chunk
        return False

    def close(self):
        if not self.has_ended_within(0.01) and self.text:
            os.kill(int(self.text.split()[0]), signal.SIGKILL)
        os.close(self.reader)


@pytest.fixture
def descendant(tmp_path):
    it = Descendant(tmp_path / "descendant")
    yield it
    it.close()


def test_the_job_reaches_the_worker_and_its_answer_comes_back(run):
    answer = run(READ_JOB + ANSWER, job=Call(transport="a way", uri="postgresql://u:p@h", kinds={'é\n"': "int64"}))
    said = {"transport": "a way", "module": "", "result": "", "stays": False, "server_pids": None, "mark": ""}
    said |= {"uri": "postgresql://u:p@h", "sleep": 0.0, "kinds": {'é\n"': "int64"}}
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
    code = READ_JOB + "held = b'x' * 50_000_000; time.sleep(0.4); " + ANSWER
    before = time.monotonic_ns()
    samples = execute(Call(transport="a way"), 20, tmp_path / "log", command=(sys.executable, "-S", "-c", code)).samples
    assert before < samples[0].at_ns < samples[-1].at_ns < time.monotonic_ns()
    assert len(samples) >= 4
    assert max(sample.memory.rss for sample in samples) > 50_000_000


def test_a_worker_that_hangs_ends_within_a_second_of_its_limit_with_all_it_started(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "time.sleep(30)", time_limit=0.7)
    assert time.monotonic() - started < 0.7 + 1
    assert answer == Failed(Status.TIMEOUT, "ended after the time limit of 0.7 s")
    assert descendant.has_ended_within(2)


def test_a_worker_that_ignores_sigterm_and_sigint_ends_too(run, descendant):
    ignore = "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]; "
    assert run(READ_JOB + ignore + "time.sleep(30)", time_limit=0.5).status == Status.TIMEOUT


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_worker_that_a_signal_killed_is_named_with_it(run, number):
    answer = run(READ_JOB + f"os.kill(os.getpid(), {int(number)}); time.sleep(5)")
    assert answer == Failed(Status.KILLED, f"the worker was killed by {number.name}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_worker_that_somebody_ended_is_to_be_run_again(run, number):
    answer = run(READ_JOB + f"signal.signal({int(number)}, signal.SIG_DFL); os.kill(os.getpid(), {int(number)})")
    assert answer == Failed(Status.AGAIN, f"somebody ended the worker by {number.name}")


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


def test_a_real_time_signal_has_no_name_and_is_reported_by_number(run):
    answer = run(READ_JOB + "os.kill(os.getpid(), 40); time.sleep(5)")
    assert answer.status == Status.KILLED
    assert "40" in answer.error


@pytest.mark.parametrize(
    "end",
    ["os.kill(os.getpid(), 9)", "sys.exit(3)", "os._exit(0)", ANSWER + "os._exit(0)"],
    ids=["killed", "exit 3", "exit 0", "answered"],
)
def test_what_a_worker_started_ends_with_it_however_it_ends(run, descendant, end):
    run(READ_JOB + descendant.start + end)
    assert descendant.has_ended_within(2)


def test_an_answer_is_taken_at_once_even_where_something_keeps_the_output_open(run):
    keep = "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(3)']); "
    started = time.monotonic()
    assert run(READ_JOB + keep + ANSWER, time_limit=2.0).status is Status.OK
    assert time.monotonic() - started < 1.5


def test_a_worker_that_ends_without_an_answer_is_an_error_with_its_last_words(run):
    answer = run(READ_JOB + "print('first', file=sys.stderr); sys.exit('out of ideas')")
    assert answer == Failed(Status.ERROR, 'the worker ended with exit code 1 and no answer: "out of ideas"')


def test_a_worker_that_ends_silently_is_an_error_with_its_exit_code(run):
    assert run(READ_JOB + "os._exit(0)").error == "the worker ended with exit code 0 and no answer"


def test_the_last_words_may_be_no_text_at_all(run):
    answer = run(READ_JOB + "os.write(2, bytes([255, 254, 10])); os._exit(1)")
    assert answer.status == Status.ERROR


@pytest.mark.parametrize("junk", ["hello", "", "{", "[1]", "7", "null", "{}", "\\xff", '{"status": "ok"}\\nhello'])
def test_junk_on_the_output_is_an_error_and_no_answer(run, junk):
    answer = run(READ_JOB + f"os.write(1, '{junk}'.encode('latin-1') + b'\\n')")
    assert answer.status == Status.ERROR
    assert "answer" in answer.error


def test_half_an_answer_of_a_killed_worker_is_none(run):
    answer = run(READ_JOB + 'os.write(1, b\'{"status": "ok"\'); os.kill(os.getpid(), 9)')
    assert answer == Failed(Status.KILLED, "the worker was killed by SIGKILL")


def test_a_worker_that_closes_its_output_and_lives_on_is_ended_and_not_called_killed(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "os.close(1); time.sleep(30)")
    assert time.monotonic() - started < 5
    assert answer.status == Status.ERROR
    assert descendant.has_ended_within(2)


def test_a_worker_that_dies_before_it_reads_its_job_is_an_error(run):
    for code in ("import os; os._exit(4)", "import os; os.close(0); os._exit(4)"):
        assert run(code).error == "the worker ended with exit code 4 and no answer"


def test_a_job_for_a_very_wide_table_that_is_never_read_does_not_block_beyond_the_time_limit(run):
    kinds = {f"a_rather_long_column_name_{number}": "float64" for number in range(1_000)}
    job = Call(transport="a way", kinds=kinds)
    started = time.monotonic()
    answer = run("import time; time.sleep(3)", time_limit=0.5, job=job)
    assert time.monotonic() - started < 0.5 + 1
    assert answer.status == Status.TIMEOUT


def test_a_worker_whose_server_died_has_a_grace_to_say_so_itself(run, monkeypatch):
    monkeypatch.setattr(execution, "GRACE_SECONDS", 5.0)
    said = "print(json.dumps({'status': 'error', 'error': 'connection lost'}), flush=True)"
    answer = run(READ_JOB + "time.sleep(0.2); " + said, server_died=lambda: True)
    assert answer == Failed(Status.ERROR, "connection lost")


def test_a_worker_that_does_not_notice_its_dead_server_is_ended_after_the_grace(run, monkeypatch):
    monkeypatch.setattr(execution, "GRACE_SECONDS", 0.3)
    started = time.monotonic()
    answer = run(READ_JOB + "time.sleep(30)", server_died=lambda: time.monotonic() > started + 0.2)
    assert time.monotonic() - started < 2
    assert answer.status == Status.ERROR
    assert "server died" in answer.error


def test_a_grace_does_not_lengthen_the_time_limit(run):
    started = time.monotonic()
    run(READ_JOB + "time.sleep(30)", time_limit=0.5, server_died=lambda: True)
    assert time.monotonic() - started < 0.5 + 1


def test_ctrl_c_in_the_parent_ends_the_worker_and_all_it_started(run, descendant):
    def interrupt():
        if select.select([descendant.reader], [], [], 0)[0]:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(READ_JOB + descendant.start + "time.sleep(30)", server_died=interrupt)
    assert descendant.has_ended_within(2)


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


@pytest.mark.parametrize("together", [True, False])
def test_that_the_clock_has_stopped_is_told_before_the_answer_comes(run, together):
    pause = "" if together else "time.sleep(0.3); "
    told = []
    answer = run(
        "import time; " + READ_JOB + f"print('called', flush=True); {pause}" + ANSWER,
        called=lambda: told.append(time.monotonic()),
    )
    assert answer.status is Status.OK
    assert len(told) == 1
    assert together or time.monotonic() - told[0] > 0.2
