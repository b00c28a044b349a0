"""The native protocol's numbers and strings, a reader that never holds more than its limit, and pipes to the engine."""

import array
import contextlib
import fcntl
import io
import os
import select
import socket
import termios
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

# Pipes between clients and the engine: on Linux, splice moves bytes through without a copy.

PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031  # Linux only; fcntl.F_SETPIPE_SZ exists since Python 3.10 but not on every platform
CAN_SPLICE = hasattr(os, "splice")


def open_pipe() -> tuple[int, int]:
    """Open a pipe of a megabyte (64 KiB if refused), so that a small result needs no second thread switch."""
    ends = os.pipe()
    if os.uname().sysname == "Linux":
        with contextlib.suppress(PermissionError):
            fcntl.fcntl(ends[1], _F_SETPIPE_SZ, PIPE_BYTES)
    return ends


def write_all(pipe: int, chunks: Iterable[bytes | memoryview]) -> None:
    """Write chunks into a pipe, until the reader closes it."""
    for chunk in chunks:
        left = memoryview(chunk)
        while left:
            try:
                left = left[os.write(pipe, left) :]
            except BrokenPipeError:
                return


def wait_until_ready(connection: socket.socket, event: int, seconds: float) -> None:
    """Wait until a socket can be read (POLLIN) or written (POLLOUT). Raises TimeoutError."""
    ready = select.poll()
    ready.register(connection, event)
    if not ready.poll(max(0.0, seconds) * 1000):
        raise TimeoutError(f"the peer did nothing for {seconds:g} seconds")


class Piece:
    """Bytes in a pipe, to be taken out once: read, or moved into a socket."""

    def __init__(self, pipe: int, size: int) -> None:
        self._pipe, self._left, self._size = pipe, size, size

    def __len__(self) -> int:
        return self._size

    def read(self) -> bytes:
        """Read the remaining bytes, which are ready."""
        left, self._left = self._left, 0
        return os.read(self._pipe, left)

    def move(self, connection: socket.socket, seconds: float) -> None:
        """Move the remaining bytes into a socket with a timeout. Raises TimeoutError after that many seconds."""
        if not CAN_SPLICE:
            connection.sendall(self.read())
            return
        deadline = time.monotonic() + seconds
        while self._left:
            try:
                self._left -= os.splice(self._pipe, connection.fileno(), self._left)
            except BlockingIOError:
                wait_until_ready(connection, select.POLLOUT, deadline - time.monotonic())


def pieces(pipe: int) -> Generator[Piece, None, None]:
    """Yield a pipe's data until its writer closes it; a piece is invalid once the next one is requested."""
    ready, size = select.poll(), array.array("i", [0])
    ready.register(pipe, select.POLLIN)
    while True:
        ready.poll()
        fcntl.ioctl(pipe, termios.FIONREAD, size)
        if not size[0]:
            return
        piece = Piece(pipe, size[0])
        yield piece
        piece.read()


IDLE_SECONDS = 3600.0  # between requests and between their bytes (idle_connection_timeout of a server)
SEND_SECONDS = 300.0  # for a megabyte (send_timeout of a server)
_RECEIVE_BYTES = _SEND_BYTES = 1 << 20
_MAX_VARINT_BYTES = 9  # 63 bits: the longest a ClickHouse server reads


class ProtocolError(Exception):
    """The peer broke the protocol; the connection cannot continue."""


def varint(number: int) -> bytes:
    """Encode an unsigned number in seven bits per byte, the lowest first."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def string(text: str | bytes) -> bytes:
    """Encode a string as its length and its bytes."""
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return varint(len(data)) + data


def send(connection: socket.socket, data: bytes | memoryview, flags: int = 0) -> None:
    """Send data, a megabyte at a time. Raises TimeoutError."""
    connection.settimeout(SEND_SECONDS)
    view = memoryview(data)
    for start in range(0, len(data), _SEND_BYTES):
        connection.sendall(view[start : start + _SEND_BYTES], flags)


class TimedSocket(io.RawIOBase):
    """A socket whose every receive ends by a deadline (monotonic seconds) or an idle limit (seconds)."""

    def __init__(self, connection: socket.socket, idle_seconds: float = IDLE_SECONDS) -> None:
        self.connection = connection
        self.idle_seconds = idle_seconds
        self.deadline: float | None = None

    def receive(self) -> bytes:
        """Return the next bytes. Raises EOFError at the end of the stream, TimeoutError at the deadline."""
        self._limit_time()
        data = self.connection.recv(_RECEIVE_BYTES)
        if not data:
            raise EOFError("the peer closed the connection")
        return data

    def readable(self) -> bool:
        """Say that ``io.BufferedReader`` may read from here."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive into a buffer; returns the number of bytes, 0 at the end. Raises TimeoutError."""
        self._limit_time()
        return self.connection.recv_into(buffer)

    def move(self, pipe: int, most: int) -> int:
        """Move bytes into a pipe without a copy (Linux); returns their number, 0 at the end. Raises TimeoutError."""
        while True:
            limit = self._limit_time()
            try:
                return os.splice(self.connection.fileno(), pipe, most)
            except BlockingIOError:
                wait_until_ready(self.connection, select.POLLIN, limit)

    def _limit_time(self) -> float:
        limit = self.idle_seconds
        if self.deadline is not None:
            limit = min(limit, self.deadline - time.monotonic())
            if limit <= 0:
                raise TimeoutError("the peer did not finish its request in time")
        self.connection.settimeout(limit)
        return limit


def receiver(pieces: Iterable[bytes]) -> Callable[[], bytes]:
    """Return a receive function over pieces of bytes; it raises EOFError after the last."""
    rest = iter(pieces)

    def receive() -> bytes:
        for piece in rest:
            if piece:
                return piece
        raise EOFError("the data ends in the middle of a value")

    return receive


def chunk_size(size: int) -> bytes:
    """Return the head of a chunk; a chunk of size 0 ends a packet."""
    return size.to_bytes(4, "little")


class Reader:
    """Read a stream of bytes; the bytes read since ``mark`` can be taken in one piece."""

    def __init__(self, receive: Callable[[], bytes], limit: int = 4 << 30) -> None:
        """Read from a function that returns some bytes; never hold more than ``limit`` bytes."""
        self._receive = receive
        self._limit = limit
        self._data = bytearray()
        self._position = 0
        self._keep = False

    @property
    def position(self) -> int:
        """The number of bytes read since ``mark``."""
        return self._position

    def need(self, size: int) -> None:
        """Receive until ``size`` bytes are available after the position."""
        if self._position + size <= len(self._data):
            return
        if not self._keep and self._position:
            del self._data[: self._position]
            self._position = 0
        self._fill(self._position + size)

    def _fill(self, end: int) -> None:
        if end > self._limit:
            raise ProtocolError(f"a block is longer than {self._limit} bytes")
        while len(self._data) < end:
            self._data += self._receive()

    def more(self) -> bool:
        """Return whether there is at least one more byte, receiving it if necessary."""
        try:
            self.need(1)
        except EOFError:
            return False
        return True

    def exact(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        self.need(size)
        start = self._position
        self._position = start + size
        return bytes(memoryview(self._data)[start : self._position])

    def skip(self, size: int) -> None:
        """Skip the next ``size`` bytes."""
        self.need(size)
        self._position += size

    def byte(self) -> int:
        """Return the next byte as a number."""
        self.need(1)
        self._position += 1
        return self._data[self._position - 1]

    def varint(self) -> int:
        """Return the next variable-length number. Raises ProtocolError if it has more than nine bytes."""
        number = 0
        for place in range(_MAX_VARINT_BYTES):
            byte = self.byte()
            number |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return number
        raise ProtocolError(f"a number is longer than {_MAX_VARINT_BYTES} bytes")

    def data(self, limit: int) -> bytes:
        """Return the next length-prefixed bytes. Raises ProtocolError if there are more than ``limit``."""
        size = self.varint()
        if size > limit:
            raise ProtocolError(f"a string of {size} bytes is longer than {limit} bytes")
        return self.exact(size)

    def text(self, limit: int) -> str:
        """Return the next length-prefixed string; bytes that are not UTF-8 become surrogates."""
        return self.data(limit).decode("utf-8", "surrogateescape")

    def uint(self, size: int = 8) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.exact(size), "little")

    def skip_strings(self, count: int) -> None:
        """Skip ``count`` length-prefixed strings; use it only between ``mark`` and ``taken``.

        This is the hot loop of a native INSERT: one iteration per value, without creating an object.
        """
        data, position = self._data, self._position
        while count:
            try:
                while count:
                    size = data[position]
                    if size >= 0x80:
                        self._position = position
                        size = self.varint()
                        position = self._position + size
                    else:
                        position += size + 1
                    count -= 1
            except IndexError:
                self._fill(position + 1)
        self._fill(position)
        self._position = position

    def mark(self) -> None:
        """Keep the bytes read from now on, for ``taken``."""
        del self._data[: self._position]
        self._position = 0
        self._keep = True

    def taken(self) -> bytes:
        """Return the bytes read since ``mark``, and stop keeping them."""
        self._keep = False
        return bytes(memoryview(self._data)[: self._position])


def without_chunks(reader: Reader) -> Iterator[bytes]:
    """Yield the bytes of packets that come in chunks; a packet's end is read with its last byte."""
    left = 0
    while left := left or reader.uint(4):
        data = reader.exact(min(left, _RECEIVE_BYTES))
        left = left - len(data) or reader.uint(4)
        yield data
    raise ProtocolError("a packet has no bytes")
