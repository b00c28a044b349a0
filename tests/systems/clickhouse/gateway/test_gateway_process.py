"""The process: how it starts, refuses to start, and ends."""

import contextlib
import signal
import socket
import socketserver
import sys
import threading

import psutil
import pytest

from harness.systems.clickhouse.gateway import __main__ as program
from harness.systems.clickhouse.gateway.server import (
    ClientWatch,
    LoopbackServer,
    NamedSessions,
    Users,
    UsersFileError,
    read_users,
)
from tests.systems.clickhouse.gateway.conftest import start
from tests.waiting import until


@pytest.mark.long
def test_the_ready_line_is_all_that_is_printed(launch):
    gateway = launch()
    assert gateway.version.startswith("26.")
    assert gateway.ask("SELEKT").status == 400
    assert gateway.ask("SELECT 1", user="nobody").status == 403
    gateway.process.send_signal(signal.SIGTERM)
    output, errors = gateway.process.communicate(timeout=60)
    assert (output, errors, gateway.process.returncode) == ("", "", 0)


def test_no_password_is_in_the_process_list(gateway):
    assert "test-password" not in " ".join(psutil.Process(gateway.process.pid).cmdline())


def test_it_listens_on_the_loopback_interface_only(gateway):
    sockets = psutil.Process(gateway.process.pid).net_connections("tcp")
    listening = {(s.laddr.ip, s.laddr.port) for s in sockets if s.status == psutil.CONN_LISTEN}
    assert listening == {("127.0.0.1", gateway.http_port), ("127.0.0.1", gateway.native_port)}


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_with_connections_open_and_a_query_running(launch, number):
    gateway = launch()
    client = gateway.native()
    client.execute("SELECT 1")
    with gateway.raw(gateway.http_port) as idle, gateway.raw(gateway.http_port) as running:
        idle.sendall(b"GET /ping HTTP/1.1\r\n\r\n")
        assert idle.recv(100)
        query = b"SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"
        running.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(query), query))
        until(lambda: gateway.running("sipHash64"))
        gateway.process.send_signal(number)
        assert gateway.process.wait(timeout=60) == 0  # the query alone would take hours
    client.disconnect()


@pytest.mark.long
def test_data_outlives_a_kill(launch):
    first = launch()
    first.query("CREATE DATABASE kept")
    first.query("CREATE TABLE kept.t (a UInt64) ENGINE = MergeTree ORDER BY a COMMENT 'my comment'")
    assert first.ask("INSERT INTO kept.t FORMAT CSV", body=b"1\n2\n").status == 200
    first.process.kill()
    first.process.wait()
    second = launch()
    assert second.query("SELECT sum(a) FROM kept.t") == b"3\n"
    assert second.query("SELECT comment FROM system.tables WHERE database = 'kept'") == b"my comment\n"


def assert_one_line(process, *words):
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, "")
    assert errors.count("\n") == 1, errors
    for word in words:
        assert word in errors


@pytest.mark.long
def test_a_second_process_on_one_path_is_refused(launch, launch_process):
    gateway = launch()
    assert_one_line(launch_process(), "data path", "in use by another process")
    assert gateway.query("SELECT 1") == b"1\n"


@pytest.mark.long
@pytest.mark.parametrize("option", ["--http-port", "--native-port"])
def test_a_taken_port_is_refused(launch_process, option):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        assert_one_line(launch_process(option, port), f"port {port}", "in use")


@pytest.mark.long
def test_a_port_out_of_range_is_refused(launch_process):
    assert_one_line(launch_process("--http-port", "70000"), "port 70000")


@pytest.mark.parametrize(
    "content", [None, "", "not JSON secret-word", "[]", "{}", '{"a": 1}', '["secret-word"]', '{"secret-word": null}']
)
def test_an_unusable_users_file_is_refused_and_not_shown(tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(UsersFileError) as refused:
        read_users(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret-word" not in str(refused.value)


@pytest.mark.long
def test_a_process_with_an_unusable_users_file_does_not_start(launch_process, tmp_path):
    assert_one_line(launch_process(users=tmp_path / "none.json"), "users file", "none.json")


@pytest.mark.long
def test_a_path_that_is_a_file_is_refused(launch_process, tmp_path):
    (tmp_path / "data").write_text("a file", encoding="utf-8")
    assert_one_line(launch_process(), "data")


@pytest.mark.long
def test_connections_over_the_limit_are_closed_and_free_places_are_used_again(launch):
    gateway = launch("--max-connections", "2")

    def has_a_place(connections):
        """Connect, and keep the connection if the gateway answers."""
        connection = gateway.raw(gateway.http_port)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET /ping HTTP/1.1\r\n\r\n")
            if connection.recv(1):
                connections.enter_context(connection)
                return True
        connection.close()
        return False

    for _ in range(2):  # a place is free some time after its connection was closed
        with contextlib.ExitStack() as connections:
            for _ in range(2):
                until(lambda connections=connections: has_a_place(connections))
            assert not has_a_place(connections)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory):
    gateway = start(tmp_path_factory.mktemp("impatient"), "--greeting-seconds", "0.5")
    yield gateway
    gateway.stop()


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    ("protocol", "beginning"),
    [("http", b"GET /ping HT"), ("native", b""), ("native", b"\x00"), ("native", b"\x00\x7f")],
)
def test_a_greeting_that_never_ends_is_closed(impatient, protocol, beginning):
    with impatient.raw(impatient.http_port if protocol == "http" else impatient.native_port) as connection:
        connection.settimeout(0.1)
        connection.sendall(beginning)

        def closed():
            try:
                return connection.recv(1000) == b""
            except TimeoutError:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(b"a")  # one byte after the other
            except ConnectionError:
                return True

        until(closed)
    assert impatient.query("SELECT 1") == b"1\n"


def test_the_options_are_explained(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gateway", "--help"])
    with pytest.raises(SystemExit) as ended:
        program._arguments()
    output = capsys.readouterr().out
    assert ended.value.code == 0
    for option in ("--path", "--http-port", "--native-port", "--users-file", "--max-connections", "--greeting-seconds"):
        assert option in output


@pytest.mark.process
def test_a_fault_of_ours_is_reported_by_its_place_and_not_by_its_words(capfd):
    class Broken(socketserver.BaseRequestHandler):
        def handle(self):
            raise ValueError("a value of somebody's table")

    shared = {"users": Users({}), "watch": ClientWatch(), "sessions": NamedSessions(), "address": "127.0.0.1"}
    with LoopbackServer(Broken, 0, max_connections=8, greeting_seconds=1.0, **shared) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        socket.create_connection(server.server_address).close()
        # Shut down before it had accepted the connection, the server would never handle it.
        said = []
        until(lambda: said.append(capfd.readouterr().err) or "ValueError" in "".join(said))
        server.shutdown()
        thread.join()
    assert "".join(said).startswith("ValueError in test_gateway_process.py, line ")
    assert "somebody" not in "".join(said)
