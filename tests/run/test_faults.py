"""What dies in the middle of a run leaves a row that says so; the lab is repaired and the run goes on."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from harness.model import Experiment, Status
from harness.run import runner
from harness.run.plan import Plan
from harness.run.rigs.databases import DatabaseRig
from harness.run.suite_run import RunRequest, open_run
from harness.settings import Settings
from tests.commands import wait_for_rows

pytestmark = [pytest.mark.alone, pytest.mark.long]

COPY = "postgres.asyncpg.write_pandas_copy_text"
ROWS = 300_000  # enough for the chosen ways to take more than a second


def descendants(words: tuple[str, ...]) -> list[psutil.Process]:
    """Processes below this one whose command line has all the words."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            command = process.cmdline()
        except psutil.NoSuchProcess:
            continue
        if all(any(word in part for part in command) for word in words):
            found.append(process)
    return found


def worker() -> psutil.Process | None:
    return next(iter(descendants(("harness.worker",))), None)


def server_at(uri: str) -> psutil.Process:
    """The process below this one that listens at an address: the first of a family that inherits the socket."""
    port = urlsplit(uri).port
    found = {process.pid: process for process in psutil.Process().children(recursive=True) if _listens(process, port)}
    return next(process for process in found.values() if process.ppid() not in found)


def _listens(process: psutil.Process, port: int | None) -> bool:
    try:
        return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return False


def busy_worker(deadline: float) -> psutil.Process:
    """Wait for a worker that has been talking to its server for a moment."""
    while time.monotonic() < deadline:
        found = worker()
        try:
            if found and any(c.status == psutil.CONN_ESTABLISHED for c in found.net_connections("tcp")):
                time.sleep(0.2)
                return found
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        time.sleep(0.01)
    raise AssertionError("no worker connected to a server in time")


def backend(worker: psutil.Process) -> psutil.Process:
    """The process of Postgres that serves a worker."""
    ports = {c.laddr.port for c in worker.net_connections("tcp") if c.status == psutil.CONN_ESTABLISHED}
    return next(one for one in descendants(("postgres: ",)) if any(f"({port})" in one.cmdline()[0] for port in ports))


def checkpointer(worker: psutil.Process) -> psutil.Process:
    (found,) = descendants(("checkpointer",))
    return found


def kill(process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGKILL)


def leave_no_descriptor(process: psutil.Process) -> None:
    """Let a process open no more files than it has."""
    process.rlimit(psutil.RLIMIT_NOFILE, (3, 3))


@contextmanager
def injuring(injure: Callable[[psutil.Process], None]) -> Iterator[list[int]]:
    """In the background, do something once, as soon as a worker is busy; yields the list the worker's pid goes into."""
    injured: list[int] = []

    def wait() -> None:
        found = busy_worker(time.monotonic() + 60)
        injure(found)
        injured.append(found.pid)

    thread = threading.Thread(target=wait)
    thread.start()
    yield injured
    thread.join()


def two_runs(select: str, time_limit: float, rows: int = ROWS) -> RunRequest:
    experiment = Experiment("matrix", "postgres.*,clickhouse.*", "analytics_metrics", {"rows": [rows]})
    return RunRequest(Plan("matrix", "a size", select, (experiment,), 2, 1, time_limit), "databases", "embedded")


def run_with(
    tmp_path: Path,
    datasets: Path,
    select: str,
    injure: Callable[[psutil.Process, DatabaseRig], None],
    time_limit: float = 60.0,
) -> Any:
    """Run one way twice; in its first run do something to its worker, or to a server of its rig."""
    settings = Settings(datasets_dir=datasets, results_dir=tmp_path / "results", state_dir=tmp_path / "state")
    rows: list[dict[str, Any]] = []
    with open_run(settings, two_runs(select, time_limit), print) as suite_run:
        rig = suite_run.session.rig
        assert isinstance(rig, DatabaseRig)
        with injuring(lambda worker: injure(worker, rig)) as injured:
            runner.perform(suite_run.session, suite_run.todo, rows.append)
    assert len(injured) == 1
    return rows


@pytest.mark.parametrize(
    ("injure", "time_limit", "status", "said"),
    [
        (kill, 60.0, Status.KILLED, "the worker was killed by SIGKILL"),
        (psutil.Process.suspend, 30.0, Status.TIMEOUT, "ended after the time limit of 30 s"),
    ],
)
def test_a_killed_or_hung_worker_leaves_a_row_and_the_run_goes_on(
    tmp_path: Path,
    dataset_folder: Path,
    injure: Callable[[psutil.Process], None],
    time_limit: float,
    status: Status,
    said: str,
) -> None:
    """A worker that is stopped in the middle of a COPY hangs like any other; its lock must not stay."""
    first, second = run_with(tmp_path, dataset_folder, COPY, lambda worker, rig: injure(worker), time_limit)
    assert (first.status, first.error, first.seconds) == (status, said, None)
    assert second.status is Status.OK, second.error


@pytest.mark.parametrize(
    ("select", "victim"),
    [
        (COPY, "postgres"),
        ("postgres.psycopg.read_pandas_rows", "postgres"),
        ("clickhouse.asynch.write_pandas_columnar", "clickhouse_native"),
        ("clickhouse.clickhouse_driver.read_pandas_columnar", "clickhouse_native"),
    ],
)
def test_a_killed_server_leaves_a_row_is_restarted_and_the_run_goes_on(
    tmp_path: Path, dataset_folder: Path, select: str, victim: str
) -> None:
    def injure(worker: psutil.Process, rig: DatabaseRig) -> None:
        kill(server_at(rig.lab.endpoints[victim]))

    first, second = run_with(tmp_path, dataset_folder, select, injure)
    assert first.status is Status.ERROR
    assert first.error.startswith(f"the {select.partition('.')[0]} server died during this run and was restarted")
    assert first.seconds is None
    assert second.status is Status.OK, second.error


@pytest.mark.parametrize(
    ("select", "injure", "said"),
    [
        (COPY, lambda worker: kill(backend(worker)), "somebody interrupted the server during this run"),
        (COPY, lambda worker: kill(checkpointer(worker)), "somebody interrupted the server during this run"),
        (COPY, lambda worker: backend(worker).terminate(), "somebody interrupted the server during this run"),
        ("postgres.psycopg.read_pandas_rows", leave_no_descriptor, "this machine is short of open files"),
    ],
    ids=["killed backend", "killed checkpointer", "terminated backend", "no descriptor"],
)
def test_what_somebody_else_did_is_charged_to_no_transport(
    tmp_path: Path, dataset_folder: Path, select: str, injure: Callable[[psutil.Process], None], said: str
) -> None:
    first, second = run_with(tmp_path, dataset_folder, select, lambda worker, rig: injure(worker))
    assert first.status is Status.AGAIN, first.error
    assert first.error.startswith(said)
    assert (second.status, second.error) == (Status.OK, "")


def test_a_folder_of_logs_that_somebody_removes_costs_no_run(tmp_path: Path, dataset_folder: Path) -> None:
    def remove(worker: psutil.Process, rig: DatabaseRig) -> None:
        (logs,) = (tmp_path / "results").glob("*/logs")
        shutil.rmtree(logs)

    assert [row.status for row in run_with(tmp_path, dataset_folder, COPY, remove)] == [Status.OK, Status.OK]


def test_the_temporary_folder_of_a_killed_run_is_removed_by_the_next_start(
    environment: dict[str, str], tmp_path: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    way = ("--experiment", "matrix", "--only", "postgres.psycopg.write_polars_copy_text", "--rows", "100")
    command = (sys.executable, "-m", "harness.cli", "run", *way)
    environment["TMPDIR"] = str(temporary)
    with subprocess.Popen((*command, "--passes", "300"), env=environment, stdout=subprocess.DEVNULL) as killed:
        wait_for_rows(tmp_path / "results", 1)
        while not list(temporary.glob("lab-worker-*")):
            time.sleep(0.005)
        killed.kill()
    assert list(temporary.glob("lab-worker-*"))
    subprocess.run((*command, "--passes", "1"), env=environment, stdout=subprocess.DEVNULL, check=True, timeout=120)
    assert not list(temporary.iterdir())
