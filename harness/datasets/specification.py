"""What a dataset is: its columns, its tables in each database and the function that makes its rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = "keyed"  # the usual form of a table in a database


@dataclass(frozen=True)
class Column:
    """A column that is described, as far as its type in a database depends on more than its logical type.

    `name` is what it is called, `logical_type` what it is (see `harness.check.logical_types`), `nullable` whether a
    value is missing. `low` and `high` are the first and last day of dates and moments, None where there are none. `odd`
    are kinds of values in it that a database may not hold (see `harness.datasets.hostile`), `rows` in which rows (from
    0) the first of what it may not hold stands: see `harness.datasets.own.values` and `nested`. `labels` are the
    different texts of a category, where they are known.
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
        """Name the column, and the row of what is refused where it is known."""
        row = self.rows.get(what)
        return f'column "{self.name}"' + ("" if row is None else f", row {row}")


@dataclass(frozen=True)
class Specification:
    """One dataset.

    `logical_types` maps column to logical type (uuid, date, int32, text, float64), in table order. `row_key` are
    columns that together are unique: rows are matched by them, or as wholes where there are none. `in_databases`: there
    are tables of it in databases, whose rooms make them of these facts. `order` are the columns of the table's key,
    `few_texts` those of few different texts, `month` the date column by whose months a large table is parted. `columns`
    are described where the types of the tables are made of that, as of shapes and of somebody's own data; then `order`
    may be empty.
    `private`: no value may be told, for the data are somebody's own.
    `build(rows, seed)` yields Arrow record batches whose content depends on nothing else.
    `bytes_a_row` is an upper bound of what a row takes on disk, to refuse before a disk is filled.
    `version` is raised whenever the same (rows, seed) would give other content.
    """

    name: str
    version: int
    logical_types: dict[str, str]
    row_key: tuple[str, ...]
    bytes_a_row: int
    build: Callable[[int, int], Iterator[pa.RecordBatch]] = field(compare=False)
    in_databases: bool = False
    order: tuple[str, ...] = ()
    few_texts: tuple[str, ...] = ()
    month: str = ""
    columns: tuple[Column, ...] = ()
    private: bool = False
