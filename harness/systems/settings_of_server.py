"""What the module `settings` of a database's room offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from harness.datasets.specification import Specification
from harness.model import Value


class SettingsOfServer(Protocol):
    """Settings that are parameters of a case, never set by default: the module `settings` of a room.

    `NAMES` are these parameters, `OF_WHOLE_SERVER` those of them that hold for everybody who is connected: they are
    set on servers that are ours alone.
    """

    NAMES: frozenset[str]
    OF_WHOLE_SERVER: frozenset[str]

    def configure(self, connection: Any, parameters: Mapping[str, Value]) -> bool:
        """Have the whole server set as these parameters want it, and all others of OF_WHOLE_SERVER as they were.

        Returns whether it has to be started anew for that. Raises LabError for a value that is none.
        """

    def address(self, uri: str, parameters: Mapping[str, Value]) -> str:
        """Return the address of sessions with these settings. Raises LabError for a value that is none."""

    def statements(self, spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
        """Return what is said to the server once an empty table is made."""

    def left(self, connection: Any, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return facts of a table as a write has left it, units in their names."""
