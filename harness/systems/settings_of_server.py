"""The interface of the module `settings` of a database's package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from harness.datasets.specification import Specification
from harness.model import Connection, Value


class SettingsOfServer(Protocol):
    """Settings that are parameters of a case, never set by default: the module `settings` of a database package.

    `NAMES` are these parameters. `OF_WHOLE_SERVER` are those that affect every connection; the lab sets them only on
    its own servers.
    """

    NAMES: frozenset[str]
    OF_WHOLE_SERVER: frozenset[str]

    def configure(self, connection: Connection, parameters: Mapping[str, Value]) -> bool:
        """Set the whole server as these parameters require, and reset the rest of OF_WHOLE_SERVER.

        Returns whether the server must restart for that. Raises LabError for an invalid value.
        """

    def address(self, uri: str, parameters: Mapping[str, Value]) -> str:
        """Return the address of sessions with these settings. Raises LabError for an invalid value."""

    def statements(self, spec: Specification, table: str, parameters: Mapping[str, Value]) -> list[str]:
        """Return the statements to run after an empty table is created."""

    def left(self, connection: Connection, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return facts about a table after a write, with units in their names."""


@runtime_checkable
class FilledTables(Protocol):
    """Further members of a database's module `settings`, if its tables can have rows before a write."""

    def filled(self, spec: Specification, table: str, source: str, rows: int) -> list[str]:
        """Return the statements that put this many rows of another table into an empty one, with other keys."""

    def remove_rows_before(self, connection: Connection, table: str) -> int:
        """Remove the rows that `filled` put into a table; return how many were still there."""
