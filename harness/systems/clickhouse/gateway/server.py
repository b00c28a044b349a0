"""The listening side, shared by both protocols: its users, sessions of HTTP, and the watch for clients that leave."""

import contextlib
import hmac
import json
import math
import selectors
import socket
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .engine import Engine, Session
from .errors import Code, refusal

# HTTP sessions: those that a client names with session_id, and the unnamed one of a connection's latest request.

DEFAULT_TIMEOUT_SECONDS = 60
MAX_TIMEOUT_SECONDS = 3600


@dataclass
class _Named:
    session: Session
    in_use: bool
    expires: float  # monotonic seconds; unused while in use


class NamedSessions:
    """The named sessions of all users; each user has a separate namespace."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, str], _Named] = {}
        self._wakes = math.inf  # monotonic seconds of the running timer

    def acquire(self, engine: Engine, user: str, name: str, must_exist: bool) -> Session:
        """Acquire a session for one request.

        Raises ClickHouseError with code 373 while another request uses it, and 372 if it must exist and does not.
        """
        with self._lock:
            self._close_expired()
            named = self._sessions.get((user, name))
            if named is None:
                if must_exist:
                    raise refusal(Code.SESSION_NOT_FOUND, f"Session {name} not found")
                named = self._sessions[user, name] = _Named(engine.session(), in_use=False, expires=0.0)
            if named.in_use:
                raise refusal(Code.SESSION_IS_LOCKED, f"Session {name} is locked by a concurrent client")
            named.in_use = True
            return named.session

    def release(self, user: str, name: str, timeout_seconds: int) -> None:
        """Release a session; it closes unless a request acquires it within the timeout."""
        with self._lock:
            named = self._sessions[user, name]
            named.in_use = False
            named.expires = time.monotonic() + timeout_seconds
            self._schedule()

    def _close_expired(self) -> None:
        now = time.monotonic()
        for key, named in list(self._sessions.items()):
            if not named.in_use and named.expires <= now:
                del self._sessions[key]
                named.session.close()

    def _schedule(self) -> None:
        """Make sure that a timer runs until the next session expires, at most one at a time."""
        earliest = min((named.expires for named in self._sessions.values() if not named.in_use), default=math.inf)
        if earliest >= self._wakes:
            return
        self._wakes = earliest
        timer = threading.Timer(max(0.0, earliest - time.monotonic()), self._expire)
        timer.daemon = True
        timer.start()

    def _expire(self) -> None:
        with self._lock:
            self._wakes = math.inf
            self._close_expired()
            self._schedule()


class LatestSession:
    """The session of a connection's latest request.

    The next request gets it if it asks for the same settings and database, and nothing has changed the session since.
    A new session and its settings take 0.6 ms of CPU.
    """

    def __init__(self, engine: Engine) -> None:
        """Begin without a session."""
        self._engine = engine
        self._session: Session | None = None
        self._database, self._settings = "", dict[str, str]()

    @contextlib.contextmanager
    def acquire(self, database: str, settings: Mapping[str, str]) -> Iterator[Session]:
        """Acquire a session for one request. Raises ClickHouseError for an unknown database or setting."""
        if (database, settings) != (self._database, self._settings):
            self.close()
        session, self._session = self._session, None
        is_new = session is None
        session = session or self._engine.session(database)
        with contextlib.ExitStack() as at_end:
            at_end.callback(session.close)
            if is_new:
                session.set(settings)
            else:
                session.begin()
                session.use(database)
            yield session
            if session.is_unchanged:
                at_end.pop_all()
                self._session, self._database, self._settings = session, database, dict(settings)

    def close(self) -> None:
        """End the session."""
        if self._session:
            self._session.close()
        self._session = None


def parse_timeout(text: str) -> int:
    """Return a session_timeout in seconds. Raises ClickHouseError (374) if it is not a number or is over an hour."""
    if not text.isdecimal():
        raise refusal(Code.INVALID_SESSION_TIMEOUT, f"Invalid session timeout: '{text}'")
    if int(text) > MAX_TIMEOUT_SECONDS:
        most = f"Session timeout '{text}' is larger than max_session_timeout: {MAX_TIMEOUT_SECONDS}"
        raise refusal(Code.INVALID_SESSION_TIMEOUT, most)
    return int(text)


# One thread that watches the clients of running queries and stops the query of a client that has gone.

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


# The allowed users, read from a JSON file so that no password appears in the process list.


class UsersFileError(Exception):
    """The users file cannot be used."""


@dataclass(frozen=True, repr=False)
class Users:
    """User names and passwords; has no repr, so that no password is ever printed."""

    passwords: Mapping[str, str]

    def check(self, user: str, password: str) -> None:
        """Raise ClickHouseError with code 516 for a wrong password; takes the same time either way."""
        expected = self.passwords.get(user)
        given = password.encode("utf-8", "surrogateescape")
        matches = hmac.compare_digest((expected or "").encode("utf-8", "surrogateescape"), given)
        if expected is None or not matches:
            raise refusal(
                Code.AUTHENTICATION_FAILED,
                f"{user}: Authentication failed: password is incorrect, or there is no user with such name.",
            )


def read_users(path: Path) -> Users:
    """Read ``{"user": "password", ...}``. Raises UsersFileError with one line that never shows the content."""
    needed = 'write a JSON object like {"user": "password"} with at least one user'
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsersFileError(f"users file {path}: {error.strerror}; {needed}") from error
    except ValueError:
        raise UsersFileError(f"users file {path}: not JSON; {needed}") from None
    if not isinstance(content, dict) or not content or not all(isinstance(value, str) for value in content.values()):
        raise UsersFileError(f"users file {path}: {needed}")
    return Users(content)


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
