"""One embedded lab for all processes of pytest-xdist: the first that asks has the controller start it.

The controller is the parent of its servers, so a killed process of tests does not stop them. When the controller ends,
in any way, the keepers of the servers end them.
"""

import secrets
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from harness.lab.embedded import EmbeddedLab
from harness.systems.postgres import client as postgres
from harness.systems.postgres import settings

Where = tuple[str, int, bytes]


class SharedLab(EmbeddedLab):
    """The lab of another process, for tests that need only its addresses: no test may stop its servers."""

    def __init__(self, folder: Path, endpoints: dict[str, str]) -> None:
        super().__init__(folder)
        self._endpoints = endpoints

    @property
    def endpoints(self) -> dict[str, str]:
        """Addresses by name, passwords included."""
        return self._endpoints

    def start(self) -> None:
        """Refuse to start anything."""
        raise AssertionError("a shared lab is started by its owner alone")


class Owner:
    """In the controller: starts the lab when a process asks for the first time, and tells each where it is."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._folder, self._lab, self._failure = folder, None, None
        self._one_at_a_time = threading.Lock()
        self._key = secrets.token_bytes(16)
        self._listener = Listener(("127.0.0.1", 0), backlog=64, authkey=self._key)
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def where(self) -> Where:
        """The variable by which a process asks."""
        return *self._listener.address, self._key

    def stop(self) -> None:
        """Stop the lab, if it was started, and answer no process any more."""
        with suppress(OSError):
            self._listener.close()
        with self._one_at_a_time:
            self._failure = "the tests are over"
            if self._lab:
                self._lab.stop()

    def _listen(self) -> None:
        while True:
            try:
                asking = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue  # another user's, or a process that was ended meanwhile
            except OSError:
                return  # closed
            self._answer(asking)

    def _answer(self, asking: Connection) -> None:
        with asking, suppress(ConnectionError), self._one_at_a_time:
            if not self._lab and not self._failure:
                try:
                    self._lab = EmbeddedLab(self._folder())
                    self._lab.start()
                    allow_two_phases(self._lab)
                except Exception as error:  # which the process that asks is to raise
                    self._lab, self._failure = None, f"{type(error).__name__}: {error}"
            asking.send((self._lab.folder, self._lab.endpoints) if self._lab else self._failure)


def allow_two_phases(lab: EmbeddedLab) -> None:
    """Have Postgres prepare transactions, for tests of tuned writes; the lab itself leaves it at 0, the default."""
    with closing(postgres.open_connection(lab.endpoints)) as connection:
        assert settings.configure(connection, {"max_prepared_transactions": 16})
    lab.restart("postgres")


def ask(where: Where) -> SharedLab:
    """Return the lab of the controller. Raises RuntimeError when it could not be started."""
    host, port, key = where
    with Client((host, port), authkey=key) as connection:
        found = connection.recv()
    if isinstance(found, str):
        raise RuntimeError(found)
    return SharedLab(*found)
