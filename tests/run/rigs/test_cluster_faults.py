"""A program, a scheduler or a server dies while workers load: the row says so, and nothing is left."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from harness.lab.labs import Lab
from harness.machine.marked import VARIABLE
from harness.machine.variables import namespace
from harness.model import Experiment, Status
from harness.results.row import Row
from harness.run import runner
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run
from harness.settings import Settings
from harness.systems.postgres import client as postgres
from tests.run.test_faults import descendants, injuring

pytestmark = [pytest.mark.alone, pytest.mark.long, pytest.mark.timeout(1_200)]

ROWS = 1_000_000  # enough to load for seconds
WAY, LIMIT_SECONDS = "postgres.dask.load_copy", 90.0
PLAN = Plan(
    "cluster",
    "a size",
    WAY,
    (Experiment("engines", WAY, "analytics_metrics", {"rows": [ROWS], "workers": [2]}),),
    2,
    1,
    LIMIT_SECONDS,
)


def marked() -> set[tuple[int, str]]:
    """All processes with a mark of any run of the lab: their ids and commands."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.ppid() and process.environ().get(VARIABLE) and process.status() != psutil.STATUS_ZOMBIE:
                found.add((process.pid, " ".join(process.cmdline())))
        except psutil.Error:
            continue
    return found


def two_loads(settings: Settings, words: tuple[str, ...], victim: Callable[[Lab], psutil.Process]) -> list[Row]:
    """Load twice; while the workers of the first load are connected, kill a process of the lab or of the run."""
    rows: list[Row] = []
    of_others = marked()
    with open_run(RunRequest(settings=settings, plan=PLAN, rig="cluster", lab="embedded", say=print)) as suite_run:
        rig = suite_run.rig
        uri = rig.lab.endpoints["postgres"]
        with injuring(lambda _: victim(rig.lab).kill(), words, urlsplit(uri).port) as killed:
            runner.perform(suite_run, suite_run.todo, rows.append)
        assert len(killed) == 1
        connection = postgres.open_connection(rig.lab.endpoints)
        tables = postgres.query(
            connection, f"SELECT relname FROM pg_class WHERE relnamespace = '{namespace()}'::regnamespace"
        )
        connection.close()
        assert not [name for (name,) in tables if "once" in name or "ledger" in name or "staging" in name]
    assert marked() - of_others == set()
    return rows


def test_a_program_that_dies_with_its_scheduler_leaves_a_row_and_no_worker(settings: Settings) -> None:
    first, second = two_loads(settings, ("spawn_main",), lambda _: descendants(("harness.worker",))[0])
    assert (first.status, first.error, first.seconds) == (Status.KILLED, "the worker was killed by SIGKILL", None)
    assert second.status is Status.OK, second.error


def test_a_server_that_dies_leaves_a_row_and_no_worker(settings: Settings) -> None:
    first, second = two_loads(settings, ("spawn_main",), lambda lab: psutil.Process(lab.pids()["postgres"]))
    assert first.status is Status.ERROR
    assert first.error.startswith("the postgres server died during this run and was restarted")
    assert second.status is Status.OK, second.error


@contextmanager
def cluster_of_a_person(folder: Path) -> Iterator[str]:
    """The address of a Dask scheduler with two workers, which are not started again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    python = [sys.executable, "-m"]
    scheduler = [*python, "distributed.cli.dask_scheduler", "--host", address, "--no-dashboard"]
    worker = [*python, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    with ExitStack() as stack:
        for command in (scheduler, worker, worker):
            started = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
            stack.callback(started.wait)
            stack.callback(started.kill)
            time.sleep(2)
        yield address


def test_a_scheduler_of_a_cluster_that_dies_leaves_a_row(settings: Settings, tmp_path: Path) -> None:
    with cluster_of_a_person(tmp_path) as address:
        named = settings.model_copy(update={"cluster_address": address})
        first, second = two_loads(named, ("dask_worker",), lambda _: descendants(("dask_scheduler",))[0])
    for row in (first, second):
        assert (row.status, row.seconds) == (Status.ERROR, None), row
