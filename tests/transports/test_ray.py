"""Loads and unloads by Ray Data, on its own workers and on real servers: rows arrive, and nothing is left."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.check import sums, unloaded
from harness.check.sums import Sums
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.model import Operation, Transport, Workers
from harness.registry import connect_of, one, select
from harness.systems import SYSTEMS, System
from harness.transports.clickhouse import partitions as clickhouse
from harness.transports.parts import row_groups
from harness.transports.postgres import partitions as postgres
from harness.transports.ray import on_workers, ray_of

pytestmark = [pytest.mark.long, pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")]
NEEDS_CLIENT = pytest.mark.skipif(find_spec("grpc") is None, reason="Ray's client needs grpcio, which is not installed")
ROWS, PARTS, TABLE = 2_000, 4, 'made "by" ray'
SPEC = store.specification("analytics_metrics")
WITHOUT_KEY = {"postgres": "heap", "clickhouse": PLAIN}  # of ClickHouse a key refuses nothing
# System -> the functions that write a part of rows, plainly and once, and their setup.
PLAIN_AND_ONCE = {
    "postgres": (postgres.copy_part, postgres.copy_part_once, postgres.ledger_of),
    "clickhouse": (clickhouse.insert_part, clickhouse.insert_part_once, clickhouse.remembering),
}
MARK = "LAB_JOB"


@dataclass
class Database:
    """A database, its address, the reference client, and the first arguments of Ray's transports."""

    system: System
    uri: str
    client: Any = field(repr=False)
    connection: Any = field(repr=False)

    def create(self, profile: str) -> None:
        definition = self.system.tables.definition(SPEC, profile)
        assert definition
        self.system.client.create(self.client, TABLE, definition)

    def sums(self) -> Sums:
        return self.system.sums.sums(self.client, TABLE, SPEC.logical_types)

    def moved(self, entry: Transport, source: str, folder: Path) -> Sums:
        """Call a transport on the table and return the sums of the rows it loaded or unloaded."""
        if entry.operation is Operation.LOAD:
            entry.function(self.connection, source, TABLE)
            return self.sums()
        for group in row_groups(source):
            PLAIN_AND_ONCE[self.system.name][0](self.uri, TABLE, source, group)
        folder.mkdir()
        entry.function(self.connection, TABLE, str(folder))
        return unloaded.summed(folder, SPEC.logical_types)[0]


def below() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


def address(system: System, lab: EmbeddedLab) -> str:
    endpoint = select(f"{system.name}.ray.*")[0].endpoint
    return system.client.transport_uri(endpoint, lab.endpoints[endpoint])


# These two come first: a process has one Ray, and that of the later tests stays until they are done.


def test_workers_of_another_version_are_refused_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", {"ray": "1.0"}.get)
    before = {process.pid for process in below()}
    with (
        pytest.raises(RuntimeError, match=r"a worker runs .*ray 2.*, and the driver .*ray 1\.0"),
        ray_of(Workers(1, ""), []),
    ):
        pass
    assert [process for process in below() if process.pid not in before] == []


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Ray that is there already and asks for the token that is in the environment."""
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # for good: Ray keeps the first one of a process
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "0")  # by default it takes 30 seconds to end
    # Else the first server that the head forks for a client dies at once, now and then (grpcio 1.85).
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "0")
    port = free_port()
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=2"]
        command += [f"--port={free_port()}", f"--ray-client-server-port={port}", "--include-dashboard=false"]
        command += ["--object-store-memory=100000000", "--disable-usage-stats", f"--temp-dir={folder}"]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not answers(port):
            assert started.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.5)
        yield f"ray://127.0.0.1:{port}"
        of_it = psutil.Process(started.pid).children(recursive=True)
        started.terminate()
        started.wait(60)
        assert psutil.wait_procs(of_it, 10)[1] == []


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@NEEDS_CLIENT
def test_a_ray_that_is_there_already_does_the_same(
    head: str, embedded_lab: EmbeddedLab, source: str, tmp_path: Path
) -> None:
    system = SYSTEMS["postgres"]
    uri = address(system, embedded_lab)
    client = system.client.open_connection(embedded_lab.endpoints)
    system.client.ensure_namespace(client)
    load, unload = one("postgres.ray.load_write_sql"), one("postgres.ray.unload_one_moment")
    with connect_of(load)(uri, Workers(2, uri, head)) as connection:
        database = Database(system, uri, client, connection)
        database.create(PLAIN)
        try:
            expected = sums.of_parquet(source, SPEC.logical_types)
            assert sums.differences(expected, database.moved(load, source, tmp_path)) == []
            unload.function(connection, TABLE, str(tmp_path))
            assert sums.differences(expected, unloaded.summed(tmp_path, SPEC.logical_types)[0]) == []
        finally:
            system.client.drop(client, TABLE)


@pytest.fixture(scope="module")
def ray(request: pytest.FixtureRequest, embedded_lab: EmbeddedLab) -> Iterator[Database]:
    """Two workers, for all tests of a database; no process of Ray's is left afterwards."""
    system = SYSTEMS[request.param]
    uri = address(system, embedded_lab)
    client = system.client.open_connection(embedded_lab.endpoints)
    system.client.ensure_namespace(client)
    before = {process.pid for process in below()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, "by a test of Ray")
        with connect_of(select(f"{system.name}.ray.*")[0])(uri, Workers(2, uri)) as connection:
            yield Database(system, uri, client, connection)
            started = [process for process in below() if process.pid not in before]
    client.close()
    assert psutil.wait_procs(started, 10)[1] == []


@pytest.fixture
def made(ray: Database) -> Iterator[Callable[[str], Database]]:
    """Make the table of a profile; it is dropped at the end."""

    def make(profile: str) -> Database:
        ray.create(profile)
        return ray

    yield make
    ray.system.client.drop(ray.client, TABLE)


EVERY = pytest.mark.parametrize(
    ("ray", "entry"), [pytest.param(e.system, e, id=e.id) for e in select("*.ray.*")], indirect=["ray"]
)
BOTH = pytest.mark.parametrize("ray", PLAIN_AND_ONCE, indirect=True)
POSTGRES = pytest.mark.parametrize("ray", ["postgres"], indirect=True)


@EVERY
def test_what_ray_moves_arrives_exact(
    entry: Transport, made: Callable[[str], Database], source: str, tmp_path: Path
) -> None:
    found = made(PLAIN).moved(entry, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


@POSTGRES
def test_rows_without_a_key_are_sharded_as_a_whole(
    made: Callable[[str], Database], source: str, tmp_path: Path
) -> None:
    entry = one("postgres.ray.unload_read_sql_shards")
    found = made(WITHOUT_KEY["postgres"]).moved(entry, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


@POSTGRES
def test_all_processes_of_ray_show_the_environment_of_the_one_that_started_them(ray: Database) -> None:
    on_workers(os.getpid, [()])
    titles = {process: " ".join(process.cmdline()) for process in below()}
    of_ray = [process for process, title in titles.items() if title.startswith("ray::") or "/session_" in title]
    assert len(of_ray) >= 6
    assert {process.environ().get(MARK) for process in of_ray} == {"by a test of Ray"}


def once_killed(flag: str, call: Callable[..., int], group: int) -> None:
    """Do it, and for the second part die of it the first time, when it is done."""
    call(group)
    if group == 1 and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)


@BOTH
def test_a_part_whose_worker_is_killed_after_it_is_there_twice_but_not_where_that_is_seen_to(
    ray: Database, made: Callable[[str], Database], source: str, tmp_path: Path
) -> None:
    plain, once, keeping = PLAIN_AND_ONCE[ray.system.name]
    made(WITHOUT_KEY[ray.system.name])
    of_plain, of_once = str(tmp_path / "plain"), str(tmp_path / "once")
    copied = partial(plain, ray.uri, TABLE, source)
    on_workers(once_killed, [(of_plain, copied, group) for group in row_groups(source)])
    assert os.path.exists(of_plain)
    rows = ray.sums().rows
    assert rows > ROWS
    with keeping(ray.uri, TABLE) as kept:
        more = (kept,) if ray.system.name == "postgres" else ()
        copied = partial(once, ray.uri, TABLE, *more, source)
        on_workers(once_killed, [(of_once, copied, group) for group in row_groups(source)])
    assert os.path.exists(of_once)
    assert ray.sums().rows == rows + ROWS


@BOTH
def test_a_part_that_fails_leaves_nothing_of_a_staged_load(
    ray: Database, made: Callable[[str], Database], source: str, spoilt: str, tmp_path: Path
) -> None:
    [entry] = select(f"{ray.system.name}.ray.load_*_staged")
    made(PLAIN)
    with pytest.raises(Exception, match=r"(?i)uuid"):
        ray.moved(entry, spoilt, tmp_path)
    assert ray.sums().rows == 0
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), ray.moved(entry, source, tmp_path)) == []
