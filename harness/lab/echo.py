"""Measure a link with our own server: the round trip of a message, and the rate of bytes in each direction.

A database would add its own work to the measurement.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PATIENCE_SECONDS = 10.0  # seconds to wait for one answer
_BLOCK = bytes(1 << 18)
_ASKED = struct.Struct("!cQ")  # a message: the request, and its number of bytes
_ECHO, _GIVE, _TAKE = b"e", b"g", b"t"
_ANSWER = b"."


@contextmanager
def server() -> Iterator[str]:
    """Yield the address, host:port on loopback, of a server in threads of this process; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_accept, args=(listening,), name="echo", daemon=True).start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # closing it alone would not end a thread that waits for a connection


def _accept(listening: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_answer, args=(connection,), name="echo", daemon=True).start()


def _answer(connection: socket.socket) -> None:
    with suppress(OSError), connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while len(message := connection.recv(_ASKED.size, socket.MSG_WAITALL)) == _ASKED.size:
            asked, number = _ASKED.unpack(message)
            if asked == _GIVE:
                _send(connection, number)
                continue
            if asked == _TAKE:
                _drop(connection, number)
            connection.sendall(_ANSWER)


class Caller:
    """A connection to the server at an address, over any link. Raises OSError if it breaks."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._connection = socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def round_trip(self) -> float:
        """Return the seconds of a message of nine bytes and its answer of one."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_ECHO, 0))
        self._require(len(_ANSWER))
        return time.perf_counter() - started

    def fetch(self, number: int) -> float:
        """Return the seconds from requesting this many bytes until the last one arrived."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_GIVE, number))
        self._require(number)
        return time.perf_counter() - started

    def send(self, number: int) -> float:
        """Return the seconds from sending the first of this many bytes until the server confirms the last."""
        started = time.perf_counter()
        self._connection.sendall(_ASKED.pack(_TAKE, number))
        _send(self._connection, number)
        self._require(len(_ANSWER))
        return time.perf_counter() - started

    def _require(self, number: int) -> None:
        if not _drop(self._connection, number):
            raise ConnectionError("the connection was closed in the middle of an answer")


def _send(connection: socket.socket, number: int) -> None:
    for sent in range(0, number, len(_BLOCK)):
        connection.sendall(memoryview(_BLOCK)[: number - sent])


def _drop(connection: socket.socket, number: int) -> bool:
    """Receive and discard this many bytes; return whether all arrived."""
    buffer = memoryview(bytearray(min(number, len(_BLOCK))))
    while number:
        received = connection.recv_into(buffer[:number])
        if not received:
            return False
        number -= received
    return True
