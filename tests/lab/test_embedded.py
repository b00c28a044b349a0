"""The embedded lab's life: up in seconds, revived with its rows, and gone without a trace however its process ends."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psutil
import psycopg
import pytest

from harness.embedded.service import Files
from harness.lab import embedded
from harness.lab.embedded import SERVICES, EmbeddedLab, ServiceError
from harness.systems import SYSTEMS
from tests.lab.embedded_labs import clickhouse, labs_in, nothing_is_left_in, postgres, processes_in
from tests.waiting import DEADLINE_SECONDS, until

pytestmark = pytest.mark.process

# A process that holds a lab: argv is the folder, how to end, the services. It prints one line when the lab is up, and
# another when it has used the lab after the signal that ends it.
PARENT = """
import json, os, signal, subprocess, sys
from pathlib import Path
import psycopg
from harness.lab.embedded import EmbeddedLab
from harness.machine.stopping import on_signals

folder, ending, *services = sys.argv[1:]
with on_signals(), EmbeddedLab(Path(folder), services) as lab:
    workers = []
    if ending == "workers":
        workers.append(subprocess.Popen(["sleep", "300"], close_fds=False, stdout=subprocess.DEVNULL).pid)
        workers.append(os.fork())
        if workers[-1] == 0:
            os.close(1)
            signal.pause()
    up = json.dumps({"folder": str(lab.folder), "keepers": lab.keepers, "workers": workers})
    if ending in ("end", "exception"):
        print(up, flush=True)
        if ending == "exception":
            raise ValueError("the caller failed")
    else:
        try:  # the signal may come as soon as this line is out
            print(up, flush=True)
            signal.pause()
        finally:
            with psycopg.connect(lab.endpoints["postgres"]) as connection:
                print(connection.execute("SELECT 'still up'").fetchone()[0], flush=True)
"""


@pytest.fixture
def parent(folder: Path):
    """Start the process PARENT and read its first line; it is killed at the end if it still lives."""
    started = []

    def start(ending: str, *services: str) -> tuple[subprocess.Popen, dict]:
        command = [sys.executable, "-c", PARENT, str(folder), ending, *services]
        # Its own session, so that a Ctrl-C for its whole process group does not reach pytest.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_the_lab_is_up_within_the_with_block_and_gone_after_it(folder):
    with EmbeddedLab(folder) as lab:
        assert lab.endpoints.keys() == {name for system in SYSTEMS.values() for name in system.endpoints}
        assert lab.pids.keys() == SERVICES.keys()
        assert lab.dead() == []
        assert postgres(lab, "SELECT 1") == [(1,)]
        assert clickhouse(lab, "SELECT 1") == "1\n"
    assert nothing_is_left_in(folder)
    lab.stop()  # does nothing the second time


ALL = ("postgres", "clickhouse")
ENDINGS = [
    ("end", None, 0, ALL),
    ("exception", None, 1, ALL[:1]),
    ("ctrl_c", signal.SIGINT, -signal.SIGINT, ALL[:1]),
    ("sigterm", signal.SIGTERM, 128 + signal.SIGTERM, ALL[:1]),
    ("sighup", signal.SIGHUP, 128 + signal.SIGHUP, ALL[:1]),
    ("kill_9", signal.SIGKILL, -signal.SIGKILL, ALL),
]


@pytest.mark.parametrize(
    ("ending", "number", "status", "services"),
    [
        pytest.param(*of_one, id=of_one[0], marks=[] if of_one[0] == "kill_9" else [pytest.mark.long])
        for of_one in ENDINGS
    ],
)
def test_nothing_is_left_when_the_process_that_holds_the_lab_ends(parent, folder, ending, number, status, services):
    process, _ = parent(ending, *services)
    if number is not None:
        assert len(processes_in(folder)) > 2
        os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == status
    if status != -signal.SIGKILL:
        assert nothing_is_left_in(folder)
    until(lambda: nothing_is_left_in(folder))
    if number not in (None, signal.SIGKILL):
        assert output == b"still up\n"  # the signal reached the parent only


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_that_live_on_do_not_keep_the_services_alive(parent, folder, number):
    process, up = parent("workers", "postgres")
    try:
        os.kill(process.pid, number)
        process.wait(DEADLINE_SECONDS)
        until(lambda: nothing_is_left_in(folder))
        assert all(map(psutil.pid_exists, up["workers"]))
    finally:
        for worker in up["workers"]:
            os.kill(worker, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_lab_that_is_ended_while_it_starts_leaves_nothing(folder, number):
    command = [sys.executable, "-c", PARENT, str(folder), "end", "postgres"]
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        until(lambda: any(each.name() == "initdb" for each in processes_in(folder)))
        process.send_signal(number)
        assert process.stdout.read() == b""  # it did not come up
    until(lambda: nothing_is_left_in(folder))


@pytest.mark.long
def test_no_other_user_reads_the_folder_or_the_log_of_a_server_which_names_values_of_rows(folder):
    with EmbeddedLab(folder) as lab:
        connection = psycopg.connect(lab.endpoints["postgres"], autocommit=True)
        with connection, pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT 'geheim99'::integer")
        assert "geheim99" in (lab.folder / "postgres" / "server.log").read_text()
        for name in SERVICES:
            found = [lab.folder / name, *(lab.folder / name).glob("*.log")]
            assert len(found) > 1
            assert {path.name: path.stat().st_mode & 0o077 for path in found} == {path.name: 0 for path in found}


@pytest.mark.long
def test_a_stop_after_the_postmaster_was_killed_gives_its_shared_memory_back(folder):
    with EmbeddedLab(folder, ["postgres"]) as lab:
        identifier = (lab.folder / "postgres/data/postmaster.pid").read_text().splitlines()[6].split()[1]
        assert identifier in shared_memory_segments()
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
    assert identifier not in shared_memory_segments()
    assert nothing_is_left_in(folder)


def shared_memory_segments() -> list[str]:
    listed = subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=True).stdout
    return [line.split()[1] for line in listed.splitlines() if len(line.split()) > 4]


@pytest.mark.long
def test_left_overs_of_a_dead_lab_are_removed_at_the_next_start_and_those_of_a_living_one_are_not(parent, folder):
    with EmbeddedLab(folder, ["postgres"]) as living:
        process, up = parent("kill_9", "postgres")
        for pid in (up["keepers"]["postgres"], process.pid):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        left_over = Path(up["folder"])
        assert left_over.exists()
        with EmbeddedLab(folder, ["postgres"]) as next_one:
            assert not left_over.exists()
            assert processes_in(left_over) == []
            assert set(labs_in(folder)) == {living.folder, next_one.folder}
            assert postgres(living, "SELECT 1") == postgres(next_one, "SELECT 1") == [(1,)]
            assert living.endpoints["postgres"] != next_one.endpoints["postgres"]
    assert nothing_is_left_in(folder)


def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(folder):
    (folder / "file").touch()
    with pytest.raises(ServiceError, match=r"cannot start in .*/file/lab: .*Not a directory"):
        EmbeddedLab(folder / "file" / "lab").start()


def test_a_database_in_files_has_a_folder_while_the_lab_is_up_and_nothing_to_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(embedded.FILES, "made", Files(lambda folder: {"made": f"file:{folder / 'lab.db'}"}))
    with EmbeddedLab(tmp_path, ["made"]) as lab:
        assert lab.endpoints == {"made": f"file:{lab.folder / 'made' / 'lab.db'}"}
        (lab.folder / "made" / "lab.db").write_text("rows")
        lab.end("made")
        assert (lab.dead(), lab.revive(), lab.pids) == ([], [], {})
        assert (lab.folder / "made" / "lab.db").read_text() == "rows"
    assert lab.endpoints == {}
    assert labs_in(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "ask", "create", "count", "rows"),
    [
        ("postgres", postgres, "AS SELECT generate_series(1, 1000) AS n", "count(*), sum(n)", [(1000, 500500)]),
        (
            "clickhouse",
            clickhouse,
            "ENGINE = MergeTree ORDER BY n AS SELECT number AS n FROM numbers(1000)",
            "count(), sum(n)",
            "1000\t499500\n",
        ),
    ],
)
def test_a_killed_service_or_keeper_is_reported_and_revived_with_its_rows(folder, name, ask, create, count, rows):
    with EmbeddedLab(folder, [name]) as lab:
        ask(lab, f"CREATE TABLE t {create}")
        for of in ("pids", "keepers"):
            endpoints, pids = lab.endpoints, lab.pids
            os.kill(getattr(lab, of)[name], signal.SIGKILL)
            until(lab.dead)
            assert (lab.dead(), lab.revive(), lab.dead(), lab.revive()) == ([name], [name], [], [])
            assert (lab.endpoints, lab.pids == pids) == (endpoints, False)
            assert ask(lab, f"SELECT {count} FROM t") == rows
    assert nothing_is_left_in(folder)


@pytest.mark.long
def test_a_backend_that_outlives_its_killed_postmaster_does_not_hinder_the_revival(folder):
    busy = "DO 'BEGIN LOOP END LOOP; END'"  # never looks whether its postmaster lives
    client_code = f"import sys, psycopg; psycopg.connect(sys.argv[1]).execute({busy!r})"
    with EmbeddedLab(folder, ["postgres"]) as lab:
        client = subprocess.Popen(
            [sys.executable, "-c", client_code, lab.endpoints["postgres"]],
            stderr=subprocess.DEVNULL,
        )
        until(lambda: postgres(lab, "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO%' AND state = 'active'"))
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
        assert lab.revive() == ["postgres"]
        assert postgres(lab, "SELECT 1") == [(1,)]
        assert client.wait(DEADLINE_SECONDS) != 0
    assert nothing_is_left_in(folder)


@pytest.mark.long
def test_a_dead_service_that_two_threads_find_is_brought_back_by_one_of_them(folder):
    both = Barrier(2)
    with EmbeddedLab(folder, ["postgres"]) as lab, ThreadPoolExecutor(2) as pool:
        postgres(lab, "CREATE TABLE t AS SELECT 1 AS n")
        lab.end("postgres")

        def bring_back(_):
            both.wait()
            return lab.revive()

        assert sorted(pool.map(bring_back, range(2))) == [[], ["postgres"]]
        assert lab.dead() == []
        assert postgres(lab, "SELECT n FROM t") == [(1,)]
    assert nothing_is_left_in(folder)


@pytest.mark.long
def test_a_service_that_does_not_come_up_again_is_an_error_with_its_last_log_lines(folder):
    with EmbeddedLab(folder, ["postgres"]) as lab:
        os.kill(lab.pids["postgres"], signal.SIGKILL)
        until(lab.dead)
        (lab.folder / "postgres" / "data" / "global" / "pg_control").unlink()
        with pytest.raises(ServiceError, match=r"(?s)it ended with status 2.*could not .*pg_control"):
            lab.revive()
        assert lab.pids == {}
    assert nothing_is_left_in(folder)
