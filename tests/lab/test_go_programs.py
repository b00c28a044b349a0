"""Programs compiled from Go: once on a machine, even if several processes ask at the same time."""

import contextlib
import fcntl
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import psutil
import pytest

from harness.lab import go_programs
from tests.programs import executable
from tests.waiting import until

GO = """
echo "$@" >>"$(dirname $0)/log"
touch "$GOBIN/minio"
chmod +x "$GOBIN/minio"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make a shell script the compiler."""

    def make(script: str) -> None:
        executable(tmp_path / "go", f"#!/bin/sh\n{script}")
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    return make


def test_two_that_ask_at_once_get_one_program_that_was_compiled_once(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(GO)
    asked, real = [Event(), Event()], fcntl.flock

    def flock(file: object, how: int) -> None:
        next(event for event in asked if not event.is_set()).set()
        assert all(event.wait(60) for event in asked), "the other one did not ask for the lock"
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: go_programs.program(go_programs.MINIO, tmp_path / "cache", print), range(2)))
    assert len(set(paths)) == 1
    (compiled,) = (tmp_path / "log").read_text().splitlines()
    assert f"{go_programs.MINIO.package}@{go_programs.MINIO.version}" in compiled


def test_a_user_who_waits_for_a_compiler_reads_what_is_compiled_and_for_how_long(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go(GO.replace("touch", "sleep 0.5\ntouch"))
    monkeypatch.setattr(go_programs, "_TELL_SECONDS", 0.1)
    said: list[str] = []
    go_programs.program(go_programs.MINIO, tmp_path / "cache", said.append, ["elt.duckdb.transform", "b", "c"])
    first, *others = said
    assert first == "compiling minio (once, some minutes) for elt.duckdb.transform and 2 more"
    assert others
    assert set(others) <= {"compiling minio: 0 s so far", "compiling minio: 1 s so far"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sleep 300", "compiling it took more than 0 s"),
        ("echo first >&2\necho 'the last reason' >&2\nexit 1", "could not be compiled: the last reason$"),
    ],
)
def test_a_compiler_that_takes_too_long_or_fails_is_a_reason_in_one_line(
    go: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    go(script)
    monkeypatch.setattr(go_programs, "_TELL_SECONDS", 0.1)
    if "sleep" in script:
        monkeypatch.setattr(go_programs, "_COMPILE_SECONDS", 0.3)
    with pytest.raises(go_programs.NotThere, match=rf"^no minio: .*{said}"):
        go_programs.program(go_programs.MINIO, tmp_path / "cache", print)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["minio.lock"]  # other processes may wait for it


SLOW_GO = """
sleep 300 &
echo $! >"$(dirname $0)/pids"
wait
"""
COMPILE = """
import pathlib, sys
from harness.lab import go_programs
go_programs.program(go_programs.MINIO, pathlib.Path(sys.argv[1]), print)
"""


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_compilers_too_and_leaves_no_folder(
    go: Callable[[str], None], tmp_path: Path, number: signal.Signals
) -> None:
    go(SLOW_GO)
    pids, cache = tmp_path / "pids", tmp_path / "cache"
    asking = subprocess.Popen((sys.executable, "-c", COMPILE, str(cache)), stderr=subprocess.DEVNULL)
    until(lambda: pids.exists() and pids.read_text().strip())
    asking.send_signal(number)
    assert asking.wait(60) != 0
    with contextlib.suppress(psutil.NoSuchProcess):
        compiler = psutil.Process(int(pids.read_text()))
        until(lambda: compiler.status() == psutil.STATUS_ZOMBIE)  # it may wait long for its parent
    assert [path.name for path in cache.iterdir()] == ["minio.lock"]


def test_what_a_killed_compilation_has_left_is_gone_after_the_next(go: Callable[[str], None], tmp_path: Path) -> None:
    go(GO)
    (tmp_path / "cache" / "minio-abc.compiling").mkdir(parents=True)
    path = go_programs.program(go_programs.MINIO, tmp_path / "cache", print)
    assert {one.name for one in (tmp_path / "cache").iterdir()} == {path.name, "minio.lock"}
