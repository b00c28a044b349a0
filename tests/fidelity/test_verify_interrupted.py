"""`lab verify` goes on if a server hangs or dies, and ends after a signal."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.fidelity import batch, examination, select, select_kinds, trials, witness
from harness.model import Fate, Finding
from harness.settings import Settings
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.long]
WAYS = {"postgres": "postgres.psycopg.write_polars_copy_text", "clickhouse": "clickhouse.httpx.write_polars_parquet"}
KINDS = "one_row,zero_rows,comma,empty_text,decimals"


PATIENCE = 10.0  # seconds: without a hang, a process has ended by then, even on a busy machine


def suspended(server: psutil.Process) -> None:
    for process in (server, *server.children(recursive=True)):
        process.suspend()


def killed(server: psutil.Process) -> None:
    server.kill()


@pytest.mark.parametrize("system", WAYS)
@pytest.mark.parametrize(("injure", "said"), [(suspended, "did not answer"), (killed, "died")])
def test_a_server_that_hangs_or_dies_costs_one_pair(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    system: str,
    injure: Callable[[psutil.Process], None],
    said: str,
) -> None:
    monkeypatch.setattr(witness, "PATIENCE_SECONDS", PATIENCE)
    limit = PATIENCE if injure is suspended else 60.0  # of a hang all of it is waited for
    settings, found = Settings(results_dir=tmp_path / "results", state_dir=tmp_path / "state"), []

    def on_finding(finding: Finding) -> None:
        found.append(finding)
        if len(found) == 1:
            injure(psutil.Process(exam.lab.pids()[system]))

    with examination.opened(settings, "embedded", select(WAYS[system]), select_kinds(KINDS), print) as exam:
        trials.examine(replace(exam, time_limit=limit), on_finding)
    fates = {finding.kind: finding.fate for finding in found}
    assert len(fates) == len(found) == 5
    (hurt,) = [finding for finding in found if finding.fate in (Fate.HANGS, Fate.CRASHES)]
    assert hurt.detail.startswith(f"the {system} server {said} and was restarted")
    assert not hurt.as_wanted


@pytest.mark.parametrize("injure", [suspended, killed])
def test_a_server_that_is_lost_in_a_batch_costs_no_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, injure: Callable[[psutil.Process], None]
) -> None:
    monkeypatch.setattr(witness, "PATIENCE_SECONDS", PATIENCE)
    settings, lost = Settings(results_dir=tmp_path / "results", state_dir=tmp_path / "state"), []
    together = batch.findings

    def findings(*arguments: Any) -> list[Finding]:
        if not lost:
            lost.append(exam.lab.pids()["postgres"])
            injure(psutil.Process(lost[0]))
        return together(*arguments)

    monkeypatch.setattr(batch, "findings", findings)
    with examination.opened(settings, "embedded", select(WAYS["postgres"]), select_kinds(KINDS), print) as exam:
        found = trials.examine(replace(exam, time_limit=PATIENCE, in_batches=True))
        assert exam.lab.pids()["postgres"] not in lost
    assert len(found) == 5
    assert [finding for finding in found if not finding.as_wanted] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_within_ten_seconds_and_what_was_found_is_kept(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    command = (sys.executable, "-m", "harness.cli", "verify", "*", "--to", str(tmp_path / "matrix"))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True) as running:
        table = tmp_path / "matrix" / "fidelity.csv"
        until(lambda: table.exists() and table.read_text().count("\n") > 60)
        everything = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(number)
        started = time.monotonic()
        said, _ = running.communicate(timeout=60)
        assert time.monotonic() - started < 10
    assert running.returncode == 128 + number
    assert f"{table}\n".encode() in said
    _, left = psutil.wait_procs(everything, timeout=8)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]
    assert table.read_text().count("\n") > 60
    assert not [path for path in (tmp_path / "state").iterdir() if path.is_dir()]
