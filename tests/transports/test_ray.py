"""Loads and unloads by Ray Data, on its own workers and on real servers: rows arrive, and nothing is left."""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.check import sums, unloaded
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.model import Transport, Workers
from harness.registry import connect_of, one, select
from harness.transports.parts import row_groups
from harness.transports.ray import on_workers, ray_of
from tests.calls import uri_of
from tests.streams import SPEC, Server, Table

pytestmark = [pytest.mark.long, pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")]
NEEDS_CLIENT = pytest.mark.skipif(find_spec("grpc") is None, reason="Ray's client needs grpcio, which is not installed")
ROWS, PARTS, TABLE = 2_000, 4, 'made "by" ray'
WITHOUT_KEY = {"postgres": "heap", "clickhouse": PLAIN}  # of ClickHouse a key refuses nothing
MARK = "LAB_JOB"


def below() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


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
    load, unload = one("postgres.ray.load_write_sql"), one("postgres.ray.unload_one_moment")
    table = Table("postgres", load.endpoint, embedded_lab, PLAIN, TABLE)
    with connect_of(load)(table.uri, Workers(2, table.uri, head)) as connection:
        try:
            expected = sums.of_parquet(source, SPEC.logical_types)
            assert sums.differences(expected, table.moved(load, connection, source, tmp_path)) == []
            unload.function(connection, TABLE, str(tmp_path))
            assert sums.differences(expected, unloaded.summed(tmp_path, SPEC.logical_types)[0]) == []
        finally:
            table.discard()


@pytest.fixture(scope="module")
def ray(request: pytest.FixtureRequest, embedded_lab: EmbeddedLab) -> Iterator[Any]:
    """A connection of a database, with two workers for all its tests; no process of Ray's is left afterwards."""
    entry = select(f"{request.param}.ray.*")[0]
    uri = uri_of(entry, embedded_lab)
    Server(entry.system, embedded_lab).discard()  # which has made the namespace
    before = {process.pid for process in below()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MARK, "by a test of Ray")
        with connect_of(entry)(uri, Workers(2, uri)) as connection:
            yield connection
            started = [process for process in below() if process.pid not in before]
    assert psutil.wait_procs(started, 10)[1] == []


@pytest.fixture
def made(request: pytest.FixtureRequest, ray: Any, embedded_lab: EmbeddedLab) -> Iterator[Callable[[str], Table]]:
    """Make the table of a profile; it is dropped at the end."""
    system, tables = request.node.callspec.params["ray"], list[Table]()

    def make(profile: str) -> Table:
        tables.append(Table(system, select(f"{system}.ray.*")[0].endpoint, embedded_lab, profile, TABLE))
        return tables[-1]

    yield make
    for table in tables:
        table.discard()


EVERY = pytest.mark.parametrize(
    ("ray", "entry"), [pytest.param(e.system, e, id=e.id) for e in select("*.ray.*")], indirect=["ray"]
)
BOTH = pytest.mark.parametrize("ray", WITHOUT_KEY, indirect=True)
POSTGRES = pytest.mark.parametrize("ray", ["postgres"], indirect=True)


@EVERY
def test_what_ray_moves_arrives_exact(
    entry: Transport, ray: Any, made: Callable[[str], Table], source: str, tmp_path: Path
) -> None:
    found = made(PLAIN).moved(entry, ray, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


@POSTGRES
def test_rows_without_a_key_are_sharded_as_a_whole(
    ray: Any, made: Callable[[str], Table], source: str, tmp_path: Path
) -> None:
    entry = one("postgres.ray.unload_read_sql_shards")
    found = made(WITHOUT_KEY["postgres"]).moved(entry, ray, source, tmp_path / "unloaded")
    assert sums.differences(sums.of_parquet(source, SPEC.logical_types), found) == []


@POSTGRES
def test_all_processes_of_ray_show_the_environment_of_the_one_that_started_them(ray: Any) -> None:
    on_workers(os.getpid, [()])
    titles = {process: " ".join(process.cmdline()) for process in below()}
    of_ray = [process for process, title in titles.items() if title.startswith("ray::") or "/session_" in title]
    assert len(of_ray) >= 6
    assert {process.environ().get(MARK) for process in of_ray} == {"by a test of Ray"}


@BOTH
def test_a_part_whose_worker_is_killed_after_it_is_there_twice_but_not_where_that_is_seen_to(
    made: Callable[[str], Table], request: pytest.FixtureRequest, source: str, tmp_path: Path
) -> None:
    table = made(WITHOUT_KEY[request.node.callspec.params["ray"]])
    groups = [(group,) for group in row_groups(source)]
    table.killed_in_a_part(source, tmp_path, lambda dying: on_workers(dying, groups))


@BOTH
def test_a_part_that_fails_leaves_nothing_of_a_staged_load(
    ray: Any, made: Callable[[str], Table], source: str, spoilt: str, tmp_path: Path
) -> None:
    table = made(PLAIN)
    [entry] = select(f"{table.system}.ray.load_*_staged")
    with pytest.raises(Exception, match=r"(?i)uuid"):
        table.moved(entry, ray, spoilt, tmp_path)
    assert table.sums().rows == 0
    assert (
        sums.differences(sums.of_parquet(source, SPEC.logical_types), table.moved(entry, ray, source, tmp_path)) == []
    )
