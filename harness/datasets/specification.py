"""What a dataset is: its columns, its tables in each database and the function that makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = "keyed"  # the profile of `tables`


@dataclass(frozen=True)
class Specification:
    """One dataset.

    `kinds` maps column to kind (uuid, date, int32, text, float64), in table order. `row_key` are columns that together
    are unique: rows are matched by them. `tables` maps a database to its CREATE TABLE with `{table}` for the name, and
    `profiles` does so for other forms of the table, by their names. `order` are the columns of the table's key.
    `build(rows, seed)` yields Arrow record batches whose content depends on nothing else.
    `bytes_a_row` is an upper bound of what a row takes on disk, to refuse before a disk is filled.
    `version` is raised whenever the same (rows, seed) would give other content.
    """

    name: str
    version: int
    kinds: dict[str, str]
    row_key: tuple[str, ...]
    tables: dict[str, str]
    bytes_a_row: int
    build: Callable[[int, int], Iterator[pa.RecordBatch]] = field(compare=False)
    profiles: dict[str, dict[str, str]] = field(default_factory=dict)
    order: tuple[str, ...] = ()

    def definition(self, system: str, profile: str = PLAIN) -> str | None:
        """Return the CREATE TABLE of a database in a profile; None where the database has none of this name."""
        return (self.tables if profile == PLAIN else self.profiles.get(profile, {})).get(system)
