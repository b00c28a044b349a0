"""The keeper with small commands instead of a database, and folders of embedded labs: their end and removal."""

import fcntl
import os
import shlex
import signal
import sys
from pathlib import Path

import psutil
import pytest

from harness.embedded.keeper import LOCK, Command, Task, ask_to_stop, close, launch
from harness.lab import embedded
from harness.systems.clickhouse.gateway import engine
from harness.systems.clickhouse.gateway.errors import ClickHouseError
from tests.disks import FLOCK, as_on_nfs
from tests.waiting import DEADLINE_SECONDS, until

FOREVER = "while :; do sleep 0.05; done"


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def shell(script: str, text: str = "") -> Command:
    return Command(["/bin/sh", "-c", script], text=text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder of a service, inside a separate lab folder."""
    folder = tmp_path / "lab" / "service"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def keep(folder: Path):
    """Start a keeper for a shell script; its processes end with the test."""
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


@pytest.mark.process
def test_a_service_that_ends_by_itself_ends_its_keeper_with_its_status_and_keeps_its_folder(keep, folder):
    assert keep("echo last words >&2; exit 7").wait(DEADLINE_SECONDS) == 7
    assert (folder / "log").read_text() == "last words\n"


@pytest.mark.process
@pytest.mark.parametrize(
    ("end", "status", "stays"),
    [
        (lambda keeper, pid: os.kill(pid, signal.SIGKILL), 128 + signal.SIGKILL, True),
        (lambda keeper, pid: keeper.stdin.close(), 0, False),  # an orderly stop
        (lambda keeper, pid: keeper.terminate(), 0, False),
    ],
)
def test_a_service_ends_with_its_keeper_and_leaves_its_folder_only_where_it_was_killed(
    keep, folder, end, status, stays
):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    end(keeper, pid)
    assert keeper.wait(DEADLINE_SECONDS) == status
    assert (runs(pid), folder.exists(), folder.parent.exists()) == (False, stays, stays)


@pytest.mark.process
def test_preparing_commands_run_in_order_and_read_their_text(keep, folder):
    prepare = (shell("cat", text="first\n"), shell("cat", text="second\n"))
    assert keep("echo service", prepare).wait(DEADLINE_SECONDS) == 0
    assert (folder / "log").read_text().split() == ["first", "second", "service"]


@pytest.mark.process
def test_after_a_failed_preparation_the_service_is_not_started(keep, folder):
    keeper = keep("echo service", (shell("echo disk full; exit 3"), shell("echo next")))
    assert keeper.wait(DEADLINE_SECONDS) == 3
    assert (folder / "log").read_text() == "disk full\n"
    assert keeper.stdout.read() == b""


@pytest.mark.process
def test_a_command_that_cannot_be_started_is_named_in_the_log(keep, folder):
    assert keep("", (Command(["/nowhere/initdb"]),)).wait(DEADLINE_SECONDS) != 0
    assert "No such file or directory: '/nowhere/initdb'" in (folder / "log").read_text()


@pytest.mark.process
def test_the_labs_folder_stays_while_another_service_has_its_folder_there(keep, folder):
    (folder.parent / "other").mkdir()
    ask_to_stop(keep(FOREVER))
    until(lambda: not folder.exists())
    assert (folder.parent / "other").exists()


@pytest.mark.process
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


@pytest.mark.process
def test_a_stop_during_preparation_ends_the_command_and_its_children(keep, folder, tmp_path):
    log = tmp_path / "log"
    keeper = keep("echo service", (shell("sleep 300 & echo $!; wait"),), log=log)
    until(lambda: log.exists() and log.read_text().endswith("\n"))
    keeper.stdin.close()
    assert keeper.wait(DEADLINE_SECONDS) == 0
    until(lambda: not runs(int(log.read_text())))
    assert not folder.exists()


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG is a Linux call")
def test_a_killed_keeper_takes_its_service_along(keep):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    keeper.kill()
    keeper.wait()
    until(lambda: not runs(pid))


@pytest.mark.process
def test_the_service_leads_its_own_session_so_that_ctrl_c_does_not_reach_it(keep):
    keeper = keep(FOREVER)
    pid = pid_of_service(keeper)
    assert os.getsid(keeper.pid) == keeper.pid != os.getsid(0)
    assert os.getsid(pid) == pid


@pytest.mark.process
def test_the_service_does_not_hold_the_labs_lock(folder):
    lock = os.open(folder.parent / LOCK, os.O_RDWR | os.O_CREAT)
    look = shlex.join([sys.executable, "-c", f"import os; os.fstat({lock})"])
    keeper = launch(Task(str(folder), str(folder / "log"), [], shell(look), [("SIGTERM", 5.0)]), keep_open=lock)
    assert keeper.wait(DEADLINE_SECONDS) == 1
    assert "Bad file descriptor" in (folder / "log").read_text()
    close(keeper)
    os.close(lock)


@pytest.mark.process
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="setsid is Linux'")
def test_a_stopped_service_ends_with_its_children_in_other_sessions(keep, folder):
    """Postgres' backends have their own groups: ending the service's group does not reach them."""
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


def made(root: Path, released: list[Path] | None = None) -> tuple[Path, int]:
    return embedded.new_lab_folder(root, (released if released is not None else []).append, ())


def test_a_home_on_nfs_keeps_neighbours_and_removes_left_overs(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    released: list[Path] = []
    living, lock = made(tmp_path)
    left, other = made(tmp_path)
    os.close(other)  # as the kernel does when its lab is gone
    newest, third = made(tmp_path, released)
    assert released == [left]
    assert {path.name for path in tmp_path.glob("lab-*")} == {living.name, newest.name}
    for file in (lock, third):
        os.close(file)


def test_the_lock_is_the_labs_own(tmp_path):
    folder, lock = made(tmp_path)
    assert (folder / LOCK).stat().st_mode & 0o777 == 0o600
    os.close(lock)


def test_data_of_clickhouse_on_nfs_are_seen_to_be_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", as_on_nfs)
    (tmp_path / "status").write_text("PID: 1")
    engine._check_unused(tmp_path)
    with (tmp_path / "status").open("r+b") as held:
        FLOCK(held, fcntl.LOCK_EX)
        with pytest.raises(ClickHouseError, match="in use by another process"):
            engine._check_unused(tmp_path)


def left_after(root: Path) -> tuple[list[Path], list[str]]:
    """Make a lab's folder in a root; return the resources released before, and the names of the folders left."""
    released: list[Path] = []
    folder, lock = made(root, released)
    os.close(lock)
    return released, sorted(path.name for path in root.iterdir() if path not in (folder, root / LOCK))


@pytest.mark.parametrize(("other", "released", "left"), [(0, ["lab-left"], []), (1, [], ["lab-left"])])
def test_what_this_user_left_is_released_and_removed_and_what_another_left_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: int, released: list[str], left: list[str]
) -> None:
    (tmp_path / "lab-left").mkdir()
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + other)
    assert left_after(tmp_path) == ([tmp_path / name for name in released], left)


def test_a_link_is_no_folder_of_a_lab(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lab-link").symlink_to(tmp_path / "elsewhere")
    assert left_after(tmp_path) == ([], ["elsewhere", "lab-link"])
