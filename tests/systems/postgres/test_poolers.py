"""PgBouncer in front of Postgres: a query works through it, a run is refused with the reason in one line."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import LabError
from harness.systems.postgres import client, session

pytestmark = pytest.mark.skipif(
    shutil.which("pgbouncer") is None, reason="needs PgBouncer: apt-get install pgbouncer (Debian)"
)
Pooled = Callable[..., dict[str, str]]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"PgBouncer does not listen; it ended with {process.poll()}")


@pytest.fixture
def pooled(embedded_lab: EmbeddedLab) -> Iterator[Pooled]:
    """Yield a function that starts PgBouncer, with settings, before the lab's Postgres and returns its endpoints."""
    to, started = urlsplit(embedded_lab.endpoints["postgres"]), []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # it refuses to be root

        def start(*settings: str, of_database: str = "") -> dict[str, str]:
            port, file = free_port(), Path(folder) / "pgbouncer.ini"
            server = f"host=127.0.0.1 port={to.port} dbname=lab user={to.username} password={to.password} {of_database}"
            pool = (f"listen_addr = 127.0.0.1\nlisten_port = {port}", "unix_socket_dir =", "auth_type = any", *settings)
            file.write_text(f"[databases]\nlab = {server}\n[pgbouncer]\n" + "\n".join(pool) + "\n")
            of_user = ("-u", "nobody") if os.geteuid() == 0 else ()
            log = (Path(folder) / "log").open("wb")
            process = subprocess.Popen(("pgbouncer", *of_user, str(file)), stdout=log, stderr=log)
            started.append(process)
            wait_for(port, process)
            return {"postgres": to._replace(netloc=f"{to.username}@127.0.0.1:{port}").geturl()}

        yield start
        for process in started:
            process.terminate()
            process.wait(20)


def test_a_query_goes_through_a_pooler_that_gives_each_transaction_another_session(pooled: Pooled) -> None:
    found, _ = session.answer(pooled("pool_mode = transaction"), "SELECT 1 AS n, ARRAY['a'] AS b; -- these")
    assert found.to_pylist() == [{"n": 1, "b": ["a"]}]


def refused(endpoints: dict[str, str]) -> str:
    with pytest.raises(LabError) as raised:
        client.check(endpoints)
    return str(raised.value)


def test_a_pooler_that_takes_no_options_is_recognised(pooled: Pooled) -> None:
    said = refused(pooled("pool_mode = transaction"))
    assert "a pooler in front of the server, such as PgBouncer in transaction mode" in said
    assert said.endswith("(unsupported startup parameter: options); give the address of the server itself")
    assert "\n" not in said


@pytest.mark.parametrize(
    "of_database", ["", f"connect_query='SET search_path = {namespace()}'"], ids=["", "connect_query"]
)
def test_a_pooler_that_drops_what_a_session_sets_is_recognised(pooled: Pooled, of_database: str) -> None:
    """The lab detects it by the missing path, or else by a setting that another connection sees."""
    settings = ("pool_mode = transaction", "ignore_startup_parameters = options")
    assert "does not keep what a session sets; give the address" in refused(pooled(*settings, of_database=of_database))


def test_a_pooler_in_session_mode_that_keeps_what_a_session_sets_is_taken(
    pooled: Pooled, embedded_lab: EmbeddedLab
) -> None:
    """This holds after another session, too, because the pooler discards its settings."""
    path = f"connect_query='SET search_path = {namespace()}'"
    endpoints = pooled(
        *("pool_mode = session", "ignore_startup_parameters = options", "server_reset_query ="), of_database=path
    )
    assert client.check(endpoints).version == client.check(embedded_lab.endpoints).version


def test_the_lab_leaves_nothing_in_a_session_of_the_pool(pooled: Pooled) -> None:
    endpoints = pooled("pool_mode = transaction", "ignore_startup_parameters = options")
    refused(endpoints)
    with psycopg.connect(endpoints["postgres"], autocommit=True) as connection:
        left = connection.execute("SELECT current_setting('dataframe_io_lab.session', true)").fetchone()
    assert left in ((None,), ("",))
