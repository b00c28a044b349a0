"""What a kind of values is everywhere, and what a database may have of its own about it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# The nullable columns of the table that most kinds of values share, and what an ordinary row has in them.
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
KEY = "row_number"  # int32, first in every frame and table
# Types of columns that frames do not know and not every database has, and the logical type of what stands in them.
OF_TABLES = {
    "padded_text": "text",  # of four characters or bytes: a shorter text is filled up
    "short_text": "text",  # of four characters or bytes at most
    "label": "text",  # one of LABELS
    "json": "json",
    "jsonb": "json",  # a second type for documents
    "computed": "int32",  # by the server: twice `int_value`
    "defaulted": "int32",  # by the server, where the frame does not have the column
}
LABELS = ("red", "green", "blue")

Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of values, as far as it is the same in every database.

    `rows` are the values that differ from an ordinary row, row by row; None where every database has others, or none.
    `columns` are the columns of the frame and their logical types. `into` are columns of the table that have not the
    usual type of the frame's column, or that the frame does not have, and what they are: a logical type or one of
    OF_TABLES; `made` is what stands in them after a right write, where it is not what was in the frame. `beyond` are
    columns whose type holds some or none of the values but not all, `reason` says why, where it is not their range: the
    right outcome of a write is a refusal. `no_frame` maps a library to the reason why its canonical frame can hold none
    of them: there is nothing to write. `no_read` is the reason why nothing is to be learnt from reading the table.
    `tables` are the names of the table that is read and of the one that is written, where the kind is about names.
    `zone` is the time zone of the client, where the kind is about that; else it is the machine's. Then `type_of` is the
    kind that shows the type: where a transport does not take that, there is nothing to try.
    """

    name: str
    meaning: str
    rows: Rows | None
    columns: dict[str, str] = field(default_factory=lambda: PLAIN)
    into: dict[str, str] = field(default_factory=dict)
    made: dict[str, list[Any]] = field(default_factory=dict)
    beyond: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    no_frame: dict[str, str] = field(default_factory=dict)
    no_read: str = ""
    tables: tuple[str, str] | None = None
    zone: str = ""
    type_of: str = ""


@dataclass(frozen=True)
class Own:
    """What a database has of its own about a kind; the rest is as the kind says.

    `rows` and `made` take the place of the kind's; `types` are the SQL types of columns that have not the usual one.
    `hidden` are columns that SELECT * leaves out, `shown` expressions with which the reference client fetches a column
    that it does not bring as it is. The others are reasons: `without` why the database has no such values or columns,
    `forbidden` why it can hold none of the values, so that the right outcome of a write is a refusal, `may_refuse` why
    its server refuses the frame's columns (there a refusal is as right as the values, which a client may have cast
    itself), `no_read` why nothing is to be learnt from reading its table. `remark` is for readers alone.
    """

    rows: Rows | None = None
    types: dict[str, str] = field(default_factory=dict)
    made: dict[str, list[Any]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    shown: dict[str, str] = field(default_factory=dict)
    without: str = ""
    forbidden: str = ""
    may_refuse: str = ""
    no_read: str = ""
    remark: str = ""


def column(name: str, *values: Any) -> Rows:
    """Return rows that differ from an ordinary one in one column."""
    return [{name: value} for value in values]


def one_column(name: str, meaning: str, logical: str, values: Iterable[Any] | None, **facts: Any) -> Kind:
    """Return a kind whose frame has one column beside the key: `<logical>_value`; `facts` are further fields of it."""
    rows = None if values is None else column(f"{logical}_value", *values)
    return Kind(name, meaning, rows, {f"{logical}_value": logical}, **facts)
