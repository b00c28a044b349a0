"""What a dataset is: its columns, its tables in each database and the function that makes its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Specification:
    """One dataset.

    `kinds` maps column to kind (uuid, date, int32, text, float64), in table order. `row_key` are columns that together
    are unique: rows are matched by them. `tables` maps a database to its CREATE TABLE with `{table}` for the name.
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
