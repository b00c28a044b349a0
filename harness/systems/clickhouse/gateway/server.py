"""The listening side, shared by both protocols."""

import socketserver
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from .engine import Engine
from .http_sessions import NamedSessions
from .users import Users
from .watch import ClientWatch


class LoopbackServer(socketserver.ThreadingTCPServer):
    """Listens on one address, with a thread for each connection and a limit on their number."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    engine: Engine  # set before serve_forever

    def __init__(
        self,
        handler: type[socketserver.BaseRequestHandler],
        port: int,
        *,
        users: Users,
        watch: ClientWatch,
        sessions: NamedSessions,
        max_connections: int,
        greeting_seconds: float,
        address: str,
    ) -> None:
        """Bind the port of an address (0: any free one). Raises OSError that names the port if it is not available.

        Both protocols share users, watch and sessions. More than `max_connections` are closed at once. A native
        greeting or the head of an HTTP request may take `greeting_seconds`.
        """
        self.users, self.watch, self.sessions = users, watch, sessions
        self.greeting_seconds = greeting_seconds
        self._free_connections = threading.BoundedSemaphore(max_connections)
        try:
            super().__init__((address, port), handler)
        except (OSError, OverflowError) as error:
            raise OSError(f"port {port} of {address} cannot be used: {error}; choose another or 0") from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a separate thread, or close it if there are too many."""
        if self._free_connections.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free_connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """End the connection; log where a bug of ours is, without its message, which could contain data."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):  # the usual way for clients to leave
            place = traceback.extract_tb(error.__traceback__)[-1]
            sys.stderr.write(f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}\n")
