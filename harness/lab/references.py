"""The reference connections of a run, one a database, shared by the tables of all its datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.lab.reference import PATIENCE_SECONDS, NoAnswer, Reference
from harness.systems import SYSTEMS


class References:
    """Connections that are opened on first use and again after `forget`.

    Every call to a server ends within `patience` seconds, or raises NoAnswer: `hung` names the databases that did.
    `lives` counts how often a database was given up: what was loaded into it in an earlier life may be gone.
    """

    def __init__(self, endpoints: dict[str, str], patience: float = PATIENCE_SECONDS) -> None:
        self._endpoints, self._patience = endpoints, patience
        self._opened: dict[str, Reference] = {}
        self.lives = dict.fromkeys(SYSTEMS, 0)
        self.hung: set[str] = set()

    def ask(self, system: str, call: Callable[..., Any], *arguments: Any, once: bool = False) -> Any:
        """Return what `call(connection, *arguments)` does; see `Reference.ask`."""
        return self._watched(system, lambda: self._reference(system).ask(call, *arguments, once=once))

    def greet(self, system: str) -> None:
        """See that a database answers. Raises NoAnswer or, where no connection can be opened, LabError."""
        self._watched(system, self._reference(system).greet)

    def forget(self, system: str) -> None:
        """Give up a database's connection, after its server has died."""
        self.lives[system] += 1
        if reference := self._opened.pop(system, None):
            reference.close()

    def close(self, tidy: Callable[[str], object]) -> list[str]:
        """Tidy every database that there is a connection to and close that; return where tidying was not possible."""
        left = []
        for system in list(self._opened):
            try:
                tidy(system)
            except Exception:  # a server that is gone or hangs cannot be tidied
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
