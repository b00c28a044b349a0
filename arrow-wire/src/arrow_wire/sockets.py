"""Wait for a socket whose descriptor may have any number."""

import select
import socket

_LEAST_TOO_LARGE = 1_024  # FD_SETSIZE: select() of Linux and macOS refuses this descriptor and all above


def wait_readable(wire: socket.socket, seconds: float | None) -> bool:
    """Wait until the socket has something to read or was closed, at most this long; return whether it has."""
    if wire.fileno() < _LEAST_TOO_LARGE or not hasattr(select, "poll"):  # Windows has no poll(), and takes any there
        return bool(select.select([wire], [], [], seconds)[0])  # more exact than poll(), which counts in milliseconds
    waiting = select.poll()
    waiting.register(wire, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else seconds * 1_000))
