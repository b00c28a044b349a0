"""A run's reference connections, one per database, shared by the tables of all its datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.lab.reference import PATIENCE_SECONDS, NoAnswer, Reference
from harness.systems import SYSTEMS


class References:
    """Connections that are opened on first use and again after `forget`.

    Every call to a server ends within `patience` seconds, or raises NoAnswer: `hung` names the databases that did.
    `lives` counts how often a database was forgotten: its data from an earlier life may be gone.
    """

    def __init__(self, endpoints: dict[str, str], patience: float = PATIENCE_SECONDS) -> None:
        self._endpoints, self._patience = endpoints, patience
        self._opened: dict[str, Reference] = {}
        self.lives = dict.fromkeys(SYSTEMS, 0)
        self.hung: set[str] = set()

    def ask(self, system: str, call: Callable[..., Any], *arguments: Any, once: bool = False) -> Any:
        """Return the result of `call(connection, *arguments)`; see `Reference.ask`."""
        return self._watched(system, lambda: self._reference(system).ask(call, *arguments, once=once))

    def greet(self, system: str) -> None:
        """Check that a database answers. Raises NoAnswer, or LabError if no connection can be opened."""
        self._watched(system, self._reference(system).greet)

    def forget(self, system: str) -> None:
        """Drop a database's connection after its server has died."""
        self.lives[system] += 1
        if reference := self._opened.pop(system, None):
            reference.close()

    def close(self, tidy: Callable[[str], object]) -> list[str]:
        """Clean up every connected database and close its connection; return which could not be cleaned up."""
        left = []
        for system in list(self._opened):
            try:
                tidy(system)
            except Exception:  # a server that is gone or hangs cannot be cleaned up
                left.append(system)
            self.forget(system)
        return left

    def _watched(self, system: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except NoAnswer:
            self.hung.add(system)
            self.forget(system)
            raise

    def _reference(self, system: str) -> Reference:
        if system not in self._opened:
            self._opened[system] = Reference(SYSTEMS[system], self._endpoints, self._patience)
        return self._opened[system]
