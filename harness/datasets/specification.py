"""The definition of a dataset: its columns, its tables in each database and the function that generates its rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = "keyed"  # the default profile of a table in a database


@dataclass(frozen=True)
class Column:
    """A described column, as far as its database type depends on more than its logical type.

    `name` is its name, `logical_type` its logical type (see `harness.check.logical_types`), `nullable` whether a value
    is missing. `low` and `high` are the first and last day of dates and timestamps, or None. `odd` are kinds of values
    in it that a database may not hold (see `harness.datasets.hostile`). `rows` are the rows (from 0) of their first
    occurrences: see `harness.datasets.user_data.values` and `nested`. `labels` are a category's distinct strings, if
    known.
    """

    name: str
    logical_type: str
    nullable: bool
    low: dt.date | None = None
    high: dt.date | None = None
    odd: frozenset[str] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)
    labels: tuple[str, ...] = ()

    def place(self, what: str) -> str:
        """Name the column, and the row of the refused value if known."""
        row = self.rows.get(what)
        return f'column "{self.name}"' + ("" if row is None else f", row {row}")


@dataclass(frozen=True)
class Specification:
    """One dataset.

    `logical_types` maps column to logical type (uuid, date, int32, text, float64), in table order. `row_key` are
    columns that together are unique. They match rows; without any, whole rows are matched. `in_databases`: databases
    have tables of it, which their packages define from these facts. `order` are the table's key columns, `few_strings`
    those with few distinct strings, `month` the date column whose months partition a large table. `columns` are
    described if the table types depend on them, for shapes and a user's own data; then `order` may be empty. `private`:
    no value may be shown, because the data are a user's own. `build(rows, seed)` yields Arrow record batches whose
    content depends on nothing else. `bytes_a_row` is an upper bound of a row's disk space, to refuse before a disk is
    full. Increase `version` whenever the same (rows, seed) would give other content.
    """

    name: str
    version: int
    logical_types: dict[str, str]
    row_key: tuple[str, ...]
    bytes_a_row: int
    build: Callable[[int, int], Iterator[pa.RecordBatch]] = field(compare=False)
    in_databases: bool = False
    order: tuple[str, ...] = ()
    few_strings: tuple[str, ...] = ()
    month: str = ""
    columns: tuple[Column, ...] = ()
    private: bool = False
