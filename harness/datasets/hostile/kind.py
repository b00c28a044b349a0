"""What a kind of values is: its rows as a frame, and the table they go into where that is not the usual one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# The nullable columns of the table that most kinds share, and what an ordinary row has in them.
PLAIN = {
    "text_value": "text",
    "uuid_value": "uuid",
    "date_value": "date",
    "int_value": "int32",
    "bigint_value": "int64",
    "float_value": "float64",
}
ORDINARY: dict[str, Any] = {
    "text_value": "word",
    "uuid_value": "8b3c1d2e-4f5a-4b6c-9d7e-0123456789ab",
    "date_value": dt.date(2025, 3, 4),
    "int_value": 7,
    "bigint_value": 8,
    "float_value": 0.5,
}

Rows = list[dict[str, Any]]
BOTH = ("postgres", "clickhouse")


@dataclass(frozen=True)
class Stored:
    """The table of a kind in one system, where it is not the usual one of the frame's columns.

    `types` are the SQL types of columns that have not the usual one of their kind; a column that the frame does not
    have is filled by the server. `kinds` and `values` are what stands in a column after a right write, where it is not
    what was in the frame. `hidden` are columns that SELECT * leaves out. `shown` are expressions with which the
    reference client fetches a column that it does not bring as it is. `enum` are the labels of the enum `ENUM`, which
    is to be made before the table.
    """

    types: dict[str, str]
    kinds: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    shown: dict[str, str] = field(default_factory=dict)
    enum: tuple[str, ...] = ()


ENUM = "hostile_labels"


@dataclass(frozen=True)
class Kind:
    """One kind of values.

    `rows` maps a system to the values that differ from an ordinary row, row by row; a system that is not in it has
    no such values. `columns` are the columns of the frame and their kinds. `stored` maps a system to its table
    where that is not the usual one. `forbidden` maps a system to the reason why it can hold none of these values:
    there the right outcome of a write is a refusal. `may_refuse` maps a system to the reason why its server would
    refuse the frame's columns: there a refusal is as right as the values, which a client may have cast itself.
    `no_frame` maps a library to the reason why its canonical frame can hold none of them: there is nothing to
    write. `no_read` maps a system to the reason why nothing is to be learnt from reading its table.
    `tables` are the names of the table that is read and of the one that is written, where the kind is about names.
    """

    name: str
    meaning: str
    rows: dict[str, Rows]
    columns: dict[str, str] = field(default_factory=lambda: PLAIN)
    stored: dict[str, Stored] = field(default_factory=dict)
    forbidden: dict[str, str] = field(default_factory=dict)
    may_refuse: dict[str, str] = field(default_factory=dict)
    no_frame: dict[str, str] = field(default_factory=dict)
    no_read: dict[str, str] = field(default_factory=dict)
    tables: tuple[str, str] | None = None

    @property
    def about(self) -> set[str]:
        """The columns that the kind is about."""
        hostile = {name for rows in self.rows.values() for row in rows for name in row}
        return hostile.union(*(stored.types for stored in self.stored.values()))


def everywhere(rows: Rows) -> dict[str, Rows]:
    """Return the same rows for all systems."""
    return dict.fromkeys(BOTH, rows)


def column(name: str, *values: Any) -> dict[str, Rows]:
    """Return rows that differ from an ordinary one in one column, for all systems."""
    return everywhere([{name: value} for value in values])


def one_column(name: str, meaning: str, kind: str, values: dict[str, Iterable[Any]], **facts: Any) -> Kind:
    """Return a kind whose frame has one column beside the key: `<kind>_value`; `facts` are further fields of it."""
    rows = {system: [{f"{kind}_value": value} for value in some] for system, some in values.items()}
    return Kind(name, meaning, rows, {f"{kind}_value": kind}, **facts)
