"""A server that hangs holds up nothing: every call to it ends, the run is a row, the server is there again."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import NoAnswer, Reference
from harness.model import Status
from harness.run import runner
from harness.run.rigs.databases import DatabaseRig
from harness.run.suite_run import open_run
from harness.settings import Settings
from harness.systems import SYSTEMS
from tests.commands import wait_for_rows
from tests.run.test_faults import busy_worker, two_runs

pytestmark = [pytest.mark.alone, pytest.mark.long]
TIME_LIMIT, PATIENCE = 12.0, 6.0
REACTION_SECONDS = TIME_LIMIT + PATIENCE + 35.0  # for the restart on a machine that others use too


def family(pid: int) -> list[psutil.Process]:
    """A server with all its processes."""
    server = psutil.Process(pid)
    return [server, *server.children(recursive=True)]


def suspend(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # one that served a connection just closed ends meanwhile
            process.suspend()


def still_there(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(scope="module")
def embedded_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLab]:
    """A lab of these tests' own, whose servers they suspend."""
    with EmbeddedLab(tmp_path_factory.mktemp("hanging")) as lab:
        yield lab


@pytest.fixture
def hanging(embedded_lab: EmbeddedLab) -> Iterator[Callable[[str], None]]:
    """Let a server hang until the test ends."""
    stopped: list[psutil.Process] = []

    def hang(system: str) -> None:
        stopped.extend(family(embedded_lab.pids[system]))
        suspend(stopped)

    yield hang
    for process in still_there(stopped):
        process.resume()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("when", ["before a connection", "before a call"])
def test_a_call_to_a_hung_server_ends_when_its_patience_does(
    embedded_lab: EmbeddedLab, hanging: Callable[[str], None], system: str, when: str
) -> None:
    Reference(SYSTEMS[system], embedded_lab.endpoints, 1.0).greet()  # its connections are not for the other to use
    reference = Reference(SYSTEMS[system], embedded_lab.endpoints, 1.0)
    if when == "before a call":
        reference.greet()
    hanging(system)
    started = time.monotonic()
    with pytest.raises(Exception, match=r"did not answer within 1 s|timeout|timed out") as raised:
        reference.ask(SYSTEMS[system].client.settle)
    assert time.monotonic() - started < 8
    assert isinstance(raised.value, NoAnswer) == (when == "before a call")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(system)]


def test_a_connection_that_was_cut_between_two_runs_is_opened_again(embedded_lab: EmbeddedLab) -> None:
    reference = Reference(SYSTEMS["postgres"], embedded_lab.endpoints, 20.0)
    reference.greet()
    with psycopg.connect(embedded_lab.endpoints["postgres"]) as direct:
        direct.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    reference.greet()
    reference.ask(SYSTEMS["postgres"].client.settle)
    reference.close()


@pytest.mark.parametrize(
    "select", ["postgres.asyncpg.write_pandas_copy_text", "clickhouse.clickhouse_driver.read_pandas_columnar"]
)
def test_a_server_that_hangs_leaves_a_row_is_restarted_and_the_run_goes_on(
    tmp_path: Path, dataset_folder: Path, monkeypatch: pytest.MonkeyPatch, select: str
) -> None:
    monkeypatch.setattr("harness.lab.reference.GREETING_SECONDS", PATIENCE)
    settings = Settings(datasets_dir=dataset_folder, results_dir=tmp_path / "results", state_dir=tmp_path / "state")
    system, hung, took = select.partition(".")[0], [], []
    with open_run(two_runs(settings, select, TIME_LIMIT, 50_000)) as suite_run:
        rig = suite_run.rig
        assert isinstance(rig, DatabaseRig)

        def hang() -> None:
            busy_worker(time.monotonic() + 60)
            hung.extend(family(rig.lab.pids()[system]))
            suspend(hung)
            took.append(time.monotonic())

        rows = []

        def on_row(row: dict) -> None:
            rows.append(row)
            took.append(time.monotonic())

        thread = threading.Thread(target=hang)
        thread.start()
        runner.perform(suite_run, suite_run.todo, on_row)
        thread.join()
    assert rows[0].status is Status.TIMEOUT
    assert rows[0].error.startswith(f"after the run the {system} server did not answer within 6 s (greet) and was ")
    assert took[1] - took[0] < REACTION_SECONDS
    assert rows[1].status is Status.OK, rows[1].error
    assert not still_there(hung)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_lab_within_ten_seconds_while_its_servers_hang(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    select = "postgres.psycopg.write_polars_copy_text"
    arguments = ("--experiment", "matrix", "--rows", "500", "--passes", "100", "--only", select)
    command = (sys.executable, "-m", "harness.cli", "run", *arguments)
    with subprocess.Popen(
        command, env=environment | {"LAB_TIME_LIMIT": "3"}, stdout=subprocess.PIPE, start_new_session=True
    ) as running:
        wait_for_rows(tmp_path / "results", 2)
        everything = psutil.Process(running.pid).children(recursive=True)
        hung = [process for process in everything if process.name() == "postgres"]
        assert len(hung) > 3
        suspend(hung)
        time.sleep(6)  # by now the worker is at its time limit, and the parent calls a server that hangs
        running.send_signal(number)
        started = time.monotonic()
        output, _ = running.communicate(timeout=60)
        assert time.monotonic() - started < 10
    assert running.returncode == 128 + number
    assert b"run --resume" in output
    psutil.wait_procs(everything, timeout=8)
    assert not still_there(everything)
    assert not [path for path in (tmp_path / "state").iterdir() if path.is_dir()]
