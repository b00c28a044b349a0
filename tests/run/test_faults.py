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
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import psycopg
import pytest

from benchmarks.faults import Campaign
from benchmarks.injected_faults import PHASES, TESTED, Case, cases
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import NoAnswer, Reference
from harness.machine.variables import namespace
from harness.model import Experiment, Status
from harness.results import runs_csv
from harness.run import runner
from harness.run.execution import Worker
from harness.run.plan import Plan
from harness.run.rigs.databases import DatabaseRig
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run
from harness.settings import ROOT, Settings
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from harness.worker.contracts.databases import Addresses, DatabaseJob
from tests.commands import wait_for_rows

pytestmark = [pytest.mark.alone, pytest.mark.long]

COPY = "postgres.asyncpg.write_pandas_copy_text"
ROWS = 300_000  # enough for the chosen transports to take more than a second


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


def backend(worker: psutil.Process) -> psutil.Process:
    """The process of Postgres that serves a worker."""
    ports = {c.laddr.port for c in worker.net_connections("tcp") if c.status == psutil.CONN_ESTABLISHED}
    return next(one for one in descendants(("postgres: ",)) if any(f"({port})" in one.cmdline()[0] for port in ports))


def kill(process: psutil.Process) -> None:
    os.kill(process.pid, signal.SIGKILL)


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


def run_with(
    tmp_path: Path,
    datasets: Path,
    select: str,
    injure: Callable[[psutil.Process, DatabaseRig], None],
    time_limit: float = 60.0,
    rows_of_a_run: int = ROWS,
) -> Any:
    """Run one transport twice; in its first run act on its worker, or on a server of its rig."""
    settings = Settings(datasets_dir=datasets, results_dir=tmp_path / "results", state_dir=tmp_path / "state")
    experiment = Experiment("matrix", "postgres.*,clickhouse.*", "analytics_metrics", {"rows": [rows_of_a_run]})
    plan, rows = Plan("matrix", "a size", select, (experiment,), 2, 1, time_limit), list[dict[str, Any]]()
    with open_run(RunRequest(settings=settings, plan=plan, rig="databases", lab="embedded", say=print)) as suite_run:
        rig = suite_run.rig
        with injuring(lambda worker: injure(worker, rig)) as injured:
            runner.perform(suite_run, suite_run.todo, rows.append)
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
        (COPY, lambda worker: kill(backend(worker)), "another user interrupted the server during this run"),
        (
            COPY,
            lambda worker: kill(*descendants(("checkpointer",))),
            "another user interrupted the server during this run",
        ),
        (COPY, lambda worker: backend(worker).terminate(), "another user interrupted the server during this run"),
        (
            "postgres.psycopg.read_pandas_rows",
            lambda worker: worker.rlimit(psutil.RLIMIT_NOFILE, (3, 3)),
            "this machine is short of open files",
        ),
    ],
    ids=["killed backend", "killed checkpointer", "terminated backend", "no descriptor"],
)
def test_what_another_program_did_is_charged_to_no_transport(
    tmp_path: Path, dataset_folder: Path, select: str, injure: Callable[[psutil.Process], None], said: str
) -> None:
    first, second = run_with(tmp_path, dataset_folder, select, lambda worker, rig: injure(worker))
    assert first.status is Status.AGAIN, first.error
    assert first.error.startswith(said)
    assert (second.status, second.error) == (Status.OK, "")


TIME_LIMIT, PATIENCE = 12.0, 6.0
REACTION_SECONDS = TIME_LIMIT + PATIENCE + 35.0  # for the restart on a busy machine


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


@pytest.mark.parametrize(
    "select", ["postgres.asyncpg.write_pandas_copy_text", "clickhouse.clickhouse_driver.read_pandas_columnar"]
)
def test_a_server_that_hangs_leaves_a_row_is_restarted_and_the_run_goes_on(
    tmp_path: Path, dataset_folder: Path, monkeypatch: pytest.MonkeyPatch, select: str
) -> None:
    monkeypatch.setattr("harness.lab.reference.GREETING_SECONDS", PATIENCE)
    system, hung = select.partition(".")[0], []

    def hang(worker: psutil.Process, rig: DatabaseRig) -> None:
        hung.extend(family(rig.lab.pids()[system]))
        suspend(hung)

    first, second = run_with(tmp_path, dataset_folder, select, hang, TIME_LIMIT, 50_000)
    assert first.status is Status.TIMEOUT
    assert first.error.startswith(f"after the run the {system} server did not answer within 6 s (say) and was ")
    took = datetime.fromisoformat(second.started_at) - datetime.fromisoformat(first.started_at)
    assert took.total_seconds() < REACTION_SECONDS
    assert second.status is Status.OK, second.error
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


CHOSEN = [
    "kill parent in call (postgres, embedded)",
    "kill keeper in prepare (clickhouse, embedded)",
    "cut link in verify (postgres, external)",
    "remove logs in call (postgres, embedded)",
]


@pytest.mark.parametrize("case", [case for case in cases() if str(case) in CHOSEN], ids=str)
def test_a_fault_costs_no_row_and_leaves_nothing(embedded_lab: EmbeddedLab, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="lab-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # Postgres' account has to pass
        found = Campaign(Path(folder), embedded_lab, 30.0).tried(case, 0)
        assert found.well, f"{found}\n{(Path(folder) / 'case-0' / 'log').read_text()[-2000:]}"


def test_the_campaign_knows_every_part_and_every_phase() -> None:
    assert {str(case) for case in cases()} >= set(CHOSEN)
    assert {case.part for case in cases()} >= {"parent", "worker", "keeper", "postgres", "clickhouse", "link", "state"}
    assert {case.phase for case in cases() if case.fault != "test"} == set(PHASES)


def test_the_files_of_tests_that_the_campaign_runs_are_there() -> None:
    assert [file for files in TESTED.values() for file in files if not (ROOT / file).is_file()] == []
