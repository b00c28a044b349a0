"""A process that dies, hangs or is interrupted in the middle of a run leaves a row or no trace; the lab is repaired."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from benchmarks.faults import Campaign
from benchmarks.injected_faults import TESTED, Case, cases
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import NoAnswer, Reference
from harness.machine.variables import namespace
from harness.model import Status
from harness.results import runs_csv
from harness.run.execution import Worker
from harness.settings import ROOT
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from harness.worker.contracts.databases import Addresses, DatabaseJob
from tests.commands import wait_for_rows
from tests.disks import small_disk

pytestmark = [pytest.mark.alone, pytest.mark.long]


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


def busy(words: tuple[str, ...] = ("harness.worker",), port: int = 0) -> psutil.Process:
    """Wait for a process with these words that has been talking to a server, or a port, for a short time."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for found in descendants(words):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                opened = [c for c in found.net_connections("tcp") if c.status == psutil.CONN_ESTABLISHED]
                if any(not port or c.raddr.port == port for c in opened):
                    time.sleep(0.2)
                    return found
        time.sleep(0.01)
    raise AssertionError("no worker connected to a server in time")


@contextmanager
def injuring(injure: Callable[[psutil.Process], object], *of: Any) -> Iterator[list[int]]:
    """In the background, act once as soon as a process `of` the run is busy; yield the list that gets its pid."""
    injured: list[int] = []

    def wait() -> None:
        found = busy(*of)
        injure(found)
        injured.append(found.pid)

    thread = threading.Thread(target=wait)
    thread.start()
    yield injured
    thread.join()


def family(pid: int) -> list[psutil.Process]:
    """A server with all its processes."""
    server = psutil.Process(pid)
    return [server, *server.children(recursive=True)]


def suspend(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a process that served a just closed connection ends meanwhile
            process.suspend()


def still_there(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(scope="module")
def embedded_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedLab]:
    """A separate lab for these tests, which suspend its servers."""
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


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
WAYS = "postgres.psycopg.write_polars_copy_text,clickhouse.httpx.write_polars_parquet"


def tables_of_runs(lab: EmbeddedLab) -> list[str]:
    """Tables of measured data that are in the lab's databases."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE 'analytics%%'"
    with psycopg.connect(lab.endpoints["postgres"]) as direct:
        found = [name for (name,) in direct.execute(query, (namespace(),))]
    client = clickhouse.open_connection(lab.endpoints)
    listed = f"SELECT name FROM system.tables WHERE database = '{namespace()}' AND name LIKE 'analytics%'"
    return found + [name for (name,) in client.query(listed).result_rows]


def ended_by(
    number: signal.Signals, arguments: tuple[str, ...], environment: dict[str, str], rows: int = 4, **more: object
) -> tuple[int, str, list[psutil.Process]]:
    """Send a signal to a run that has some rows; return its exit code, its output, and its remains."""
    command = (sys.executable, "-m", "harness.cli", "run", "--passes", "300", *arguments)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True, **more
    ) as running:
        wait_for_rows(Path(environment["LAB_RESULTS_DIR"]), rows)
        everything = psutil.Process(running.pid).children(recursive=True)
        os.kill(running.pid, number)
        started = time.monotonic()
        output, _ = running.communicate(timeout=60)
        assert time.monotonic() - started < 10
    _, left = psutil.wait_procs(everything, timeout=5)
    return running.returncode, output, left


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_on_servers_of_others_ends_in_order_by_every_signal(
    on_embedded_lab: dict[str, str], embedded_lab: EmbeddedLab, number: signal.Signals
) -> None:
    chosen = ("--external", "--experiment", "matrix", "--rows", "20000", "--only", WAYS)
    code, output, left = ended_by(number, chosen, on_embedded_lab)
    assert code == 128 + number
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    begun, *known = output.split(f"run --resume {folder.name}\n")
    assert begun.endswith("lab: stopped; continue with: lab ")
    if number == signal.SIGINT:  # a person waits for an answer
        assert WAYS.partition(",")[0] in known[0]
        assert known[0].endswith("stopped: these answers are of the runs so far; continue with: lab ")
    else:
        assert known == [""]
    assert not left
    assert tables_of_runs(embedded_lab) == []
    assert {row.status for row in runs_csv.load(folder / "runs.csv")} == {Status.OK}


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_without_servers_ends_in_order_too(environment: dict[str, str], number: signal.Signals) -> None:
    chosen = ("stores", "--size", "smoke", "--only", "stores_equal.pyarrow.*")
    code, output, left = ended_by(number, chosen, environment, 2)
    assert code == 128 + number
    assert output.count("run --resume") == 1 + (number == signal.SIGINT)
    assert not left
    assert not (Path(environment["LAB_STATE_DIR"]) / "stores").exists()


def test_ctrl_c_is_never_a_row_even_where_a_client_takes_it_for_itself(environment: dict[str, str]) -> None:
    """If allowed, the reference client cancels its query on SIGINT and reports an error of it."""

    def as_a_background_job() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    chosen = ("--experiment", "matrix", "--rows", "50000", "--only", "postgres.psycopg.write_polars_copy_text")
    for attempt in range(4):
        place = environment | {"LAB_RESULTS_DIR": f"{environment['LAB_RESULTS_DIR']}/{attempt}"}
        code, _, left = ended_by(signal.SIGINT, chosen, place, 1 + attempt, preexec_fn=as_a_background_job)
        assert (code, left) == (130, [])
        (folder,) = Path(place["LAB_RESULTS_DIR"]).iterdir()
        assert {row.status for row in runs_csv.load(folder / "runs.csv")} == {Status.OK}


def interrupt(worker: psutil.Process) -> None:
    for _ in range(10):
        worker.send_signal(signal.SIGINT)
        time.sleep(0.02)


def test_an_interrupt_that_reaches_a_worker_changes_nothing(embedded_lab: EmbeddedLab, tmp_path: Path) -> None:
    uri, table = embedded_lab.endpoints["postgres"], "read_while_interrupted"
    job = DatabaseJob(
        transport="postgres.adbc.read_polars_fetch",
        result=str(tmp_path / "result.arrow"),
        dataset="",
        logical_types={"n": "int64"},
        addresses=Addresses(uri),
        table=table,
    )
    with psycopg.connect(uri, autocommit=True) as direct:
        direct.execute(f"CREATE TABLE {table} AS SELECT n::int8 FROM generate_series(1, 5000000) n")
        with injuring(interrupt):
            answer = Worker(tmp_path / "log").ask(job, 60).answer
        direct.execute(f"DROP TABLE {table}")
    assert answer.status is Status.OK, answer


# Of a worker, a server, another program, a disk that fills, and the parent.
CHOSEN = [
    "kill parent in call (postgres, embedded)",
    "kill keeper in prepare (clickhouse, embedded)",
    "cut link in verify (postgres, external)",
    "remove logs in call (postgres, embedded)",
    *(f"{fault} worker in call (postgres, embedded)" for fault in ("kill", "stop", "starve")),
    *(f"{fault} {name} in call ({name}, embedded)" for fault in ("kill", "stop") for name in SYSTEMS),
    *(f"kill {part} in call (postgres, embedded)" for part in ("backend", "checkpointer")),
    *(f"fill {part} in call (postgres, embedded)" for part in ("results", "state")),
]


KNOWN = {str(case): case for case in cases()}


@pytest.mark.parametrize("case", [KNOWN[name] for name in CHOSEN], ids=str)
def test_a_fault_costs_no_row_and_leaves_nothing(embedded_lab: EmbeddedLab, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="lab-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # Postgres' account has to pass
        if case.fault == "fill":
            with small_disk(Path(folder), "1m"):  # or this user may mount none
                pass
        found = Campaign(Path(folder), embedded_lab, 30.0).tried(case, 0)
        assert found.well, f"{found}\n{(Path(folder) / 'case-0' / 'log').read_text()[-2000:]}"


def test_the_files_of_tests_that_the_campaign_runs_are_there() -> None:
    assert [file for files in TESTED.values() for file in files if not (ROOT / file).is_file()] == []
