"""One thread that watches the clients of running queries and stops the query of a client that has gone."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

_RETRY_SECONDS = 0.05  # retry a stop that came before the engine knew the query


@dataclass(eq=False)
class _Watched:
    """A client with a running query."""

    connection: socket.socket
    must_stop: Callable[[bytes], bool]
    stop: Callable[[], object]
    lock: threading.Lock = field(default_factory=threading.Lock)
    active: bool = True
    stopping: bool = False


class ClientWatch:
    """Watches sockets while queries run; start it once per process."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._stopping: set[_Watched] = set()
        threading.Thread(target=self._run, name="clickhouse-watch", daemon=True).start()

    @contextlib.contextmanager
    def watching(
        self, connection: socket.socket, must_stop: Callable[[bytes], bool], stop: Callable[[], object]
    ) -> Iterator[None]:
        """Call ``stop`` if ``must_stop`` is true for the client's next byte; b"" means that the client left.

        The byte stays in the socket. ``stop`` is called repeatedly until the query has ended, never afterwards.
        """
        watched = _Watched(connection, must_stop, stop)
        self._selector.register(connection, selectors.EVENT_READ, watched)
        try:
            yield
        finally:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(connection)
            with watched.lock:
                watched.active = False

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select(_RETRY_SECONDS if self._stopping else None):
                self._look(key.data)
            for watched in list(self._stopping):
                self._stop(watched)

    def _look(self, watched: _Watched) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(watched.connection)
        try:
            first = watched.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            first = b""
        if watched.must_stop(first):
            self._stopping.add(watched)

    def _stop(self, watched: _Watched) -> None:
        with watched.lock:
            if watched.active:
                watched.stop()
            else:
                self._stopping.discard(watched)


def client_left(first: bytes) -> bool:
    """Return whether a client has left: it sends nothing more."""
    return first == b""
