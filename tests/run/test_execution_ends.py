"""A worker may hang, die or leave things running: every end has a name, comes in time and leaves nothing."""

import select
import signal
import subprocess
import sys
import time

import pytest

from harness.model import Status
from harness.run import execution
from harness.worker.messages import Failed
from tests.run.one_liners import ANSWER, LONG_BEFORE, READ_JOB
from tests.waiting import until

pytestmark = pytest.mark.process


def test_a_worker_that_hangs_ends_at_its_limit_with_all_it_started(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "time.sleep(60)", time_limit=2.0)  # by when both are up
    assert time.monotonic() - started < LONG_BEFORE
    assert answer == Failed(Status.TIMEOUT, "ended after the time limit of 2 s")
    assert descendant.has_ended()


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
    assert descendant.has_ended()


def test_a_worker_that_ends_without_an_answer_is_an_error_with_its_last_words(run):
    answer = run(READ_JOB + "print('first', file=sys.stderr); sys.exit('out of ideas')")
    assert answer == Failed(Status.ERROR, 'the worker ended with exit code 1 and no answer: "out of ideas"')


def test_a_worker_that_ends_silently_is_an_error_with_its_exit_code(run):
    assert run(READ_JOB + "os._exit(0)").error == "the worker ended with exit code 0 and no answer"


def test_the_last_words_may_be_no_text_at_all(run):
    answer = run(READ_JOB + "os.write(2, bytes([255, 254, 10])); os._exit(1)")
    assert answer.status == Status.ERROR


@pytest.mark.long
def test_a_worker_that_closes_its_output_and_lives_on_is_ended_and_not_called_killed(run, descendant):
    started = time.monotonic()
    answer = run(READ_JOB + descendant.start + "os.close(1); time.sleep(60)", time_limit=60.0)
    assert time.monotonic() - started < LONG_BEFORE
    assert answer.status == Status.ERROR
    assert descendant.has_ended()


def test_a_worker_that_dies_before_it_reads_its_job_is_an_error(run):
    for code in ("import os; os._exit(4)", "import os; os.close(0); os._exit(4)"):
        assert run(code).error == "the worker ended with exit code 4 and no answer"


def test_a_worker_whose_server_died_has_a_grace_to_say_so_itself(run, monkeypatch):
    monkeypatch.setattr(execution, "GRACE_SECONDS", 20.0)
    said = "print(json.dumps({'event': 'answered', 'answer': {'status': 'error', 'error': 'connection lost'}}))"
    answer = run(READ_JOB + "time.sleep(0.2); " + said, server_died=lambda: True)
    assert answer == Failed(Status.ERROR, "connection lost")


def test_a_worker_that_does_not_notice_its_dead_server_is_ended_after_the_grace(run, monkeypatch):
    monkeypatch.setattr(execution, "GRACE_SECONDS", 0.3)
    started = time.monotonic()
    answer = run(READ_JOB + "time.sleep(60)", time_limit=60.0, server_died=lambda: time.monotonic() > started + 0.2)
    assert time.monotonic() - started < LONG_BEFORE
    assert answer.status == Status.ERROR
    assert "server died" in answer.error


def test_a_grace_does_not_lengthen_the_time_limit(run, monkeypatch):
    monkeypatch.setattr(execution, "GRACE_SECONDS", 60.0)
    started = time.monotonic()
    run(READ_JOB + "time.sleep(60)", time_limit=0.5, server_died=lambda: True)
    assert time.monotonic() - started < LONG_BEFORE


def test_ctrl_c_in_the_parent_ends_the_worker_and_all_it_started(run, descendant):
    def interrupt():
        if select.select([descendant.reader], [], [], 0)[0]:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        run(READ_JOB + descendant.start + "time.sleep(30)", server_died=interrupt)
    assert descendant.has_ended()


PARENT = """
import pathlib, sys
from harness.run import execution
from tests.run.one_liners import Call
print("asking", flush=True)
command = (sys.executable, "-S", "-E", "-c", sys.argv[1])
found = execution.execute(Call(transport="a way"), 3.0, pathlib.Path(sys.argv[2]), command=command)
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
        assert parent.stdout is not None
        assert parent.stdout.readline() == "asking\n"
        until((tmp_path / "asked").exists)
        parent.send_signal(signal.SIGSTOP)
        time.sleep(3.5)
        parent.send_signal(signal.SIGCONT)
        assert parent.stdout.readline().startswith(said)
