"""A kind of values as it is everywhere, and a database's particulars of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.model import Scalar

# The nullable columns of the table that most kinds of values share, and an ordinary row's values.
PLAIN = {
    "text_value": "text",
    "uuid_value": "uuid",
    "date_value": "date",
    "int_value": "int32",
    "bigint_value": "int64",
    "float_value": "float64",
}
ORDINARY: dict[str, Scalar] = {
    "text_value": "word",
    "uuid_value": "8b3c1d2e-4f5a-4b6c-9d7e-0123456789ab",
    "date_value": dt.date(2025, 3, 4),
    "int_value": 7,
    "bigint_value": 8,
    "float_value": 0.5,
}
KEY = "row_number"  # int32, first in every frame and table
# Column types that frames lack and not every database has -> logical type of their values.
OF_TABLES = {
    "padded_text": "text",  # of four characters or bytes: a shorter string is padded
    "short_text": "text",  # of four characters or bytes at most
    "label": "text",  # one of LABELS
    "json": "json",
    "jsonb": "json",  # a second document type
    "computed": "int32",  # set by the server: twice `int_value`
    "defaulted": "int32",  # set by the server if the frame lacks the column
}
LABELS = ("red", "green", "blue")

Rows = list[dict[str, Scalar]]


@dataclass(frozen=True, eq=False)
class Kind:
    """One kind of values, as far as it is the same in every database.

    `rows` are the values that differ from an ordinary row, row by row; None if they depend on the database.
    `columns` are the frame's columns and their logical types. `into` are table columns whose type differs from the
    frame column's default, or that the frame lacks, with a logical type or one of OF_TABLES. `made` are their values
    after a correct write, if they differ from the frame's. `beyond` are columns whose type cannot hold all of the
    values. The right outcome of a write is then a refusal; `reason` says why, unless it is their range. `no_frame` maps
    a library to the reason why its canonical frame can hold none of them, so that there is nothing to write. `no_read`
    is the reason why reading the table shows nothing. `tables` are the names of the table to read and the table to
    write, if the kind is about names. `zone` is the client's time zone if the kind is about that, otherwise the
    machine's. `type_of` is then the kind that shows the type: if a transport does not support that, there is nothing to
    try.
    """

    name: str
    meaning: str
    rows: Rows | None
    columns: dict[str, str] = field(default_factory=lambda: PLAIN)
    into: dict[str, str] = field(default_factory=dict)
    made: dict[str, list[Scalar]] = field(default_factory=dict)
    beyond: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    no_frame: dict[str, str] = field(default_factory=dict)
    no_read: str = ""
    tables: tuple[str, str] | None = None
    zone: str = ""
    type_of: str = ""


@dataclass(frozen=True)
class Own:
    """A database's particulars of a kind; otherwise the kind's own fields apply.

    `rows` and `made` replace the kind's. `types` are the SQL types of columns without the default type. `hidden` are
    columns that SELECT * omits. `shown` are expressions with which the reference client fetches a column that would not
    arrive unchanged. The other fields are reasons. `without`: why the database has no such values or columns.
    `forbidden`: why it can hold none of the values, so that the right outcome of a write is a refusal. `may_refuse`:
    why its server refuses the frame's columns; a refusal is then as right as the values, which a client may have cast
    itself. `no_read`: why reading its table shows nothing. `remark` is only for readers.
    """

    rows: Rows | None = None
    types: dict[str, str] = field(default_factory=dict)
    made: dict[str, list[Scalar]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    shown: dict[str, str] = field(default_factory=dict)
    without: str = ""
    forbidden: str = ""
    may_refuse: str = ""
    no_read: str = ""
    remark: str = ""


def column(name: str, *values: Scalar) -> Rows:
    """Return rows that differ from an ordinary one in one column."""
    return [{name: value} for value in values]


def one_column(name: str, meaning: str, logical: str, values: Iterable[Scalar] | None, **facts: Any) -> Kind:
    """Return a kind whose frame has the key and one column, `<logical>_value`; `facts` are further fields of it."""
    rows = None if values is None else column(f"{logical}_value", *values)
    return Kind(name, meaning, rows, {f"{logical}_value": logical}, **facts)
