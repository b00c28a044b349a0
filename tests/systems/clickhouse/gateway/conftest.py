"""One gateway process for all tests of this folder, and functions to query it over HTTP without a client library."""

import contextlib
import ctypes
import http.client
import json
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import clickhouse_driver
import psutil
import pytest

USER, PASSWORD = "tester", "test-password"
COLUMNS = """
    entity_key UUID, day Date, number_1 Int32, number_2 Int32, kind LowCardinality(String),
    text_1 String, text_2 String, text_3 String,
    value_1 Float64, value_2 Float64, value_3 Float64, value_4 Float64, value_5 Float64
"""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer that was read to its end."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def code(self) -> str | None:
        return self.headers.get("X-ClickHouse-Exception-Code")


@dataclass(frozen=True)
class Gateway:
    """A running gateway process."""

    process: subprocess.Popen
    http_port: int
    native_port: int
    version: str
    user: str = USER
    password: str = PASSWORD

    def ask(self, query="", body=b"", method="POST", headers=None, path="/", user=USER, password=PASSWORD, **params):
        """Send one request over a new connection; the credentials go in headers."""
        credentials = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password} if user is not None else {}
        params = {"query": query, **params} if query else params
        target = path + ("?" + urllib.parse.urlencode(params) if params else "")
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)) as connection:
            connection.request(method, target, body=body, headers={**credentials, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())

    def query(self, query, **params):
        """Run a statement and return its body, which must be an answer without error."""
        answer = self.ask(body=query.encode(), **params)
        assert answer.status == 200, answer.body
        return answer.body

    def native(self, **options):
        """Return a clickhouse-driver client."""
        options = {"user": USER, "password": PASSWORD, **options}
        return clickhouse_driver.Client("127.0.0.1", port=self.native_port, **options)

    def raw(self, port):
        """Return a plain socket to one of the ports."""
        return socket.create_connection(("127.0.0.1", port), timeout=60)

    def said(self, port, data, ends=True):
        """Send bytes over a new connection, end the sending side or not, and return all bytes until it is closed."""
        answer = b""
        with self.raw(port) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(data)
            if ends:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                answer += piece
        return answer

    def running(self, marker):
        """Return the number of running queries with a marker in their text."""
        others = "query LIKE {p:String} AND query NOT LIKE '%system.processes%'"
        count = f"SELECT count() FROM system.processes WHERE {others}"
        return int(self.query(count, param_p=f"%{marker}%"))

    @property
    def threads(self):
        return len(psutil.Process(self.process.pid).threads())

    def stop(self):
        """End the process as a user would."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


def users_file(folder: Path) -> Path:
    path = folder / "users.json"
    path.write_text(json.dumps({USER: PASSWORD, "default": ""}), encoding="utf-8")
    return path


def start_process(folder: Path, *options: str, users: Path | None = None) -> subprocess.Popen:
    command = [sys.executable, "-m", "harness.systems.clickhouse.gateway", "--path", str(folder / "data")]
    command += ["--users-file", str(users or users_file(folder)), *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, preexec_fn=end_with_its_parent, **pipes)


def end_with_its_parent() -> None:
    """Ask the kernel to kill this process when its parent ends, even by a signal; only on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def start(folder: Path, *options: str, users: Path | None = None) -> Gateway:
    process = start_process(folder, *options, users=users)
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return Gateway(process, **json.loads(line))


@pytest.fixture(scope="session")
def gateway(tmp_path_factory) -> Iterator[Gateway]:
    running = start(tmp_path_factory.mktemp("clickhouse"))
    yield running
    running.stop()


@pytest.fixture
def open_native(gateway) -> Iterator[Callable[..., clickhouse_driver.Client]]:
    """Open clients of clickhouse-driver, which leave after the test."""
    with contextlib.ExitStack() as stack:

        def open_one(**options) -> clickhouse_driver.Client:
            client = gateway.native(**options)
            stack.callback(client.disconnect)
            return client

        yield open_one


@pytest.fixture
def client(open_native) -> clickhouse_driver.Client:
    """A client of clickhouse-driver with its defaults."""
    return open_native()


@pytest.fixture
def launch(tmp_path) -> Iterator[Callable[..., Gateway]]:
    """Start separate gateways for one test; they end with it."""
    with contextlib.ExitStack() as stack:

        def start_one(*options: str, folder: Path = tmp_path, users: Path | None = None) -> Gateway:
            gateway = start(folder, *options, users=users)
            stack.callback(gateway.stop)
            return gateway

        yield start_one


@pytest.fixture
def launch_process(tmp_path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Start processes that are expected to fail."""
    with contextlib.ExitStack() as stack:

        def start_one(*options: str, users: Path | None = None) -> subprocess.Popen:
            process = start_process(tmp_path, *options, users=users)
            stack.callback(process.wait, 60)
            stack.callback(process.kill)
            return process

        yield start_one


@pytest.fixture
def table(gateway, request) -> Iterator[str]:
    """An empty table with thirteen columns."""
    name = "t_" + "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:80]
    gateway.query(f"DROP TABLE IF EXISTS {name}")
    gateway.query(f"CREATE TABLE {name} ({COLUMNS}) ENGINE = MergeTree ORDER BY entity_key")
    yield name
    gateway.query(f"DROP TABLE {name}")
