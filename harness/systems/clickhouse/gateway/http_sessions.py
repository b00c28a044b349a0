"""HTTP sessions: an engine session that a client names with session_id and reuses in later requests."""

import math
import threading
import time
from dataclasses import dataclass

from .engine import Engine, Session
from .errors import Code, refusal

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


def parse_timeout(text: str) -> int:
    """Return a session_timeout in seconds. Raises ClickHouseError (374) if it is not a number or is over an hour."""
    if not text.isdecimal():
        raise refusal(Code.INVALID_SESSION_TIMEOUT, f"Invalid session timeout: '{text}'")
    if int(text) > MAX_TIMEOUT_SECONDS:
        most = f"Session timeout '{text}' is larger than max_session_timeout: {MAX_TIMEOUT_SECONDS}"
        raise refusal(Code.INVALID_SESSION_TIMEOUT, most)
    return int(text)
