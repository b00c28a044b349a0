"""Whoever ends the lab ends it in order: no worker, no table, no row made by an interrupt, and a word how to go on."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Status
from harness.results import runs_csv
from harness.run.execution import execute
from harness.systems.clickhouse import client as clickhouse
from harness.worker.contracts.databases import Addresses, DatabaseJob
from tests.commands import wait_for_rows
from tests.run.test_faults import busy_worker

pytestmark = [pytest.mark.alone, pytest.mark.long]
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
    """Send a signal to a run that has some rows; return its exit code, what it said, and what is left of it."""
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
    assert begun.endswith("lab: stopped; go on with: lab ")
    if number == signal.SIGINT:  # a person waits for an answer
        assert WAYS.partition(",")[0] in known[0]
        assert known[0].endswith("stopped: these answers are of the runs so far; go on with: lab ")
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
    """The reference client cancels its query on SIGINT and reports an error of it, when it is let to."""

    def as_a_background_job() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    chosen = ("--experiment", "matrix", "--rows", "50000", "--only", "postgres.psycopg.write_polars_copy_text")
    for attempt in range(4):
        place = environment | {"LAB_RESULTS_DIR": f"{environment['LAB_RESULTS_DIR']}/{attempt}"}
        code, _, left = ended_by(signal.SIGINT, chosen, place, 1 + attempt, preexec_fn=as_a_background_job)
        assert (code, left) == (130, [])
        (folder,) = Path(place["LAB_RESULTS_DIR"]).iterdir()
        assert {row.status for row in runs_csv.load(folder / "runs.csv")} == {Status.OK}


def test_an_interrupt_that_reaches_a_worker_changes_nothing(
    embedded_lab: EmbeddedLab, tmp_path: Path, interrupting: Callable[[], None]
) -> None:
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
        interrupting()
        answer = execute(job, 60, tmp_path / "log").answer
        direct.execute(f"DROP TABLE {table}")
    assert answer.status is Status.OK, answer


@pytest.fixture
def interrupting() -> Callable[[], None]:
    """Send the next busy worker some interrupts, in the background."""

    def interrupt() -> None:
        worker = busy_worker(time.monotonic() + 60)
        for _ in range(10):
            worker.send_signal(signal.SIGINT)
            time.sleep(0.02)

    return lambda: threading.Thread(target=interrupt, daemon=True).start()
