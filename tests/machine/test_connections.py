"""Connections of processes with a mark are found by their own port, those of others are not."""

import socket
import subprocess
import sys

import pytest

from harness.machine.connections import Connection, Connections
from harness.machine.marked import VARIABLE

pytestmark = [pytest.mark.process, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
CONNECTED = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    print(connection.getsockname()[1], flush=True)
    sys.stdin.read()
"""


def test_of_all_who_are_connected_those_with_the_mark_are_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        marked, another = Connections("one", {port}), Connections("one", {port}, ["-c"])
        assert marked.now() == []
        for mark in ("one", "two"):
            started = subprocess.Popen(
                [sys.executable, "-c", CONNECTED, str(port)],
                env={VARIABLE: mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            with started:
                assert started.stdout
                assert started.stdin
                own = int(started.stdout.readline())
                assert marked.now() == ([Connection(own, started.pid, False)] if mark == "one" else [])
                assert another.now() == []
                accepted, _ = server.accept()
                with accepted:
                    accepted.sendall(b"an answer")
                    assert [one.unread for one in marked.now()] == ([True] if mark == "one" else [])
                    started.stdin.close()
        assert marked.now() == []
