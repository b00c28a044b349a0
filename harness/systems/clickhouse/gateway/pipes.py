"""Pipes between clients and the engine: on Linux, splice moves bytes through without a copy."""

import array
import contextlib
import fcntl
import os
import select
import socket
import termios
import time
from collections.abc import Generator, Iterable

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
