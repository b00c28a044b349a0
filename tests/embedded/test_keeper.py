"""The keeper with small commands in place of a database: every way in which a service or its lab can end."""

import os
import shlex
import signal
import sys
from pathlib import Path

import psutil
import pytest

from harness.embedded.keeper import LOCK, Command, Task
from harness.embedded.launch import ask_to_stop, close, launch
from tests.waiting import DEADLINE_SECONDS, until

pytestmark = pytest.mark.process

FOREVER = "while :; do sleep 0.05; done"


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and was not collected by its parent does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shell(script: str, text: str = "") -> Command:
    return Command(["/bin/sh", "-c", script], text=text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a service, inside a lab's folder of its own."""
    folder = tmp_path / "lab" / "service"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def keep(folder: Path):
    """Start a keeper for a shell script; whatever is left of it ends with the test."""
    keepers = []
    lock = os.open(folder.parent / LOCK, os.O_RDWR | os.O_CREAT)

    def start(service: str, prepare: tuple[Command, ...] = (), stop=(("SIGTERM", 5.0),), log: Path | None = None):
        task = Task(str(folder), str(log or folder / "log"), prepare, shell(service), stop)
        keepers.append(launch(task, keep_open=lock))
        return keepers[-1]

    yield start
    for keeper in keepers:
        ask_to_stop(keeper)
        keeper.wait(DEADLINE_SECONDS)
        close(keeper)
    os.close(lock)


def pid_of_service(keeper) -> int:
    return int(keeper.stdout.readline())


def test_a_service_that_ends_by_itself_ends_its_keeper_with_its_status_and_keeps_its_folder(keep, folder):
    assert keep("echo last words >&2; exit 7").wait(DEADLINE_SECONDS) == 7
    assert (folder / "log").read_text() == "last words\n"


def test_a_killed_service_ends_its_keeper_with_128_plus_the_signal(keep, folder):
    keeper = keep(FOREVER)
    os.kill(pid_of_service(keeper), signal.SIGKILL)
    assert keeper.wait(DEADLINE_SECONDS) == 128 + signal.SIGKILL
    assert folder.exists()


def test_preparing_commands_run_in_order_and_read_their_text(keep, folder):
    prepare = (shell("cat", text="first\n"), shell("cat", text="second\n"))
    assert keep("echo service", prepare).wait(DEADLINE_SECONDS) == 0
    assert (folder / "log").read_text().split() == ["first", "second", "service"]


def test_after_a_failed_preparation_the_service_is_not_started(keep, folder):
    keeper = keep("echo service", (shell("echo disk full; exit 3"), shell("echo next")))
    assert keeper.wait(DEADLINE_SECONDS) == 3
    assert (folder / "log").read_text() == "disk full\n"
    assert keeper.stdout.read() == b""


def test_a_command_that_cannot_be_started_is_named_in_the_log(keep, folder):
    assert keep("", (Command(["/nowhere/initdb"]),)).wait(DEADLINE_SECONDS) != 0
    assert "No such file or directory: '/nowhere/initdb'" in (folder / "log").read_text()


def test_the_end_of_standard_input_stops_the_service_and_removes_the_folders(keep, folder):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    keeper.stdin.close()
    assert keeper.wait(DEADLINE_SECONDS) == 0
    assert not runs(pid)
    assert not folder.parent.exists()


def test_the_labs_folder_stays_while_another_service_has_its_folder_there(keep, folder):
    (folder.parent / "other").mkdir()
    ask_to_stop(keep(FOREVER))
    until(lambda: not folder.exists())
    assert (folder.parent / "other").exists()


def test_a_polite_kill_of_the_keeper_is_an_orderly_stop(keep, folder):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    keeper.terminate()
    assert keeper.wait(DEADLINE_SECONDS) == 0
    assert not runs(pid)
    assert not folder.exists()


@pytest.mark.long
def test_signals_are_sent_in_order_and_sigkill_ends_a_service_that_ignores_them(keep, tmp_path):
    service = f"trap 'echo INT' INT; trap 'echo QUIT' QUIT; echo ready; {FOREVER}"
    log = tmp_path / "log"
    keeper = keep(service, stop=(("SIGINT", 3.0), ("SIGQUIT", 3.0)), log=log)
    pid = pid_of_service(keeper)
    until(lambda: "ready" in log.read_text())
    ask_to_stop(keeper)
    assert keeper.wait(DEADLINE_SECONDS) == 0
    assert log.read_text().split() == ["ready", "INT", "QUIT"]
    assert not runs(pid)


def test_a_stop_during_preparation_ends_the_command_and_its_children(keep, folder, tmp_path):
    log = tmp_path / "log"
    keeper = keep("echo service", (shell("sleep 300 & echo $!; wait"),), log=log)
    until(lambda: log.exists() and log.read_text().endswith("\n"))
    keeper.stdin.close()
    assert keeper.wait(DEADLINE_SECONDS) == 0
    until(lambda: not runs(int(log.read_text())))
    assert not folder.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG is a Linux call")
def test_a_killed_keeper_takes_its_service_along(keep):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    keeper.kill()
    keeper.wait()
    until(lambda: not runs(pid))


def test_the_service_leads_a_session_of_its_own_so_that_ctrl_c_does_not_reach_it(keep):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    assert os.getsid(keeper.pid) == keeper.pid != os.getsid(0)
    assert os.getsid(pid) == pid


def test_the_service_does_not_hold_the_labs_lock(folder):
    lock = os.open(folder.parent / LOCK, os.O_RDWR | os.O_CREAT)
    look = shlex.join([sys.executable, "-c", f"import os; os.fstat({lock})"])
    keeper = launch(Task(str(folder), str(folder / "log"), [], shell(look), [("SIGTERM", 5.0)]), keep_open=lock)
    assert keeper.wait(DEADLINE_SECONDS) == 1
    assert "Bad file descriptor" in (folder / "log").read_text()
    close(keeper)
    os.close(lock)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="setsid is Linux'")
def test_a_service_that_somebody_stopped_ends_with_children_that_have_sessions_of_their_own(keep, folder):
    """As Postgres' backends have: ending the service's own group does not reach them."""
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(300)"
    script = f"setsid {shlex.quote(sys.executable)} -S -c {shlex.quote(child)} > child & wait"
    keeper = keep(script, stop=(("SIGTERM", 2.0),))
    pid = pid_of_service(keeper)
    until(lambda: (folder / "child").exists() and (folder / "child").read_text().endswith("\n"))
    family = [pid, int((folder / "child").read_text())]
    for each in (*family, keeper.pid):
        os.kill(each, signal.SIGSTOP)
    ask_to_stop(keeper)
    assert keeper.wait(DEADLINE_SECONDS) == 0
    until(lambda: not any(map(runs, family)))
