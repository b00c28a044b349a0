"""Kinds of values beside one another in one table, so that one call shows how each of them fares. Pure.

Of a kind the table has the columns that it is about, under names of their own. Such a column begins as it does in the
kind's own table and goes on with more of its last value, down to the height of the tallest: the same values in the same
order, and the same one first. Ordinary values stand beside them all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from harness.datasets.hostile.kind import ORDINARY, PLAIN, Kind, Rows
from harness.fidelity import tables
from harness.fidelity.tables import Held

_FEW_BYTES = 10_000  # of values: a table of everything is not to be as large as its largest kind times their number
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Gathering:
    """Kinds in one table: `kind` is that of the table, `columns` gives the columns of each kind their names there."""

    kind: Kind
    columns: dict[Kind, dict[str, str]]


@cache
def fits(of: Held, read: bool) -> bool:
    """Say whether a kind is about nothing but the values of its columns, and these are few.

    The others are about names, about whole rows or tables, about a type or a column that is the database's own, about
    the zone of the client, or what is right of them depends on the server. What the reference client has to fill by SQL
    stays apart in tables of reads.
    """
    kind, own = of.kind, of.own
    of_more = kind.tables or kind.zone or of.forbidden or own.may_refuse or own.types or own.hidden or own.shown
    by_server = kind.into.keys() - kind.columns.keys()
    if of_more or by_server or not of.about or (read and of.insertion):
        return False
    rows = _rows(of)
    of_rows = not rows or any(all(row[name] is None for name in kind.columns) for row in rows)
    return not of_rows and of.rows.estimated_size() <= _FEW_BYTES


@cache
def gathering(kinds: tuple[Kind, ...], system: str) -> Gathering:
    """Return kinds in one table of a database, each of which fits."""
    held = [tables.one(kind, system) for kind in kinds]
    height = max(of.rows.height for of in held)
    columns = {of.kind: {name: f"{of.kind.name}_{name}" for name in sorted(of.about)} for of in held}
    rows: Rows = [dict(ORDINARY) for _ in range(height)]
    made = {}
    for of in held:
        names = columns[of.kind]
        for row, values in zip(rows, _down_to(height, _rows(of)), strict=True):
            row.update({names[name]: values[name] for name in names})
        of_table = {**of.kind.made, **of.own.made}
        made.update({names[name]: _down_to(height, of_table[name]) for name in names if name in of_table})
    kind = Kind(
        # Of the kinds, for tables and files of other kinds must have another one.
        f"gathered_{hashlib.sha256(' '.join(kind.name for kind in kinds).encode()).hexdigest()[:12]}",
        "several kinds beside one another",
        rows,
        {**PLAIN, **{names[name]: kind.columns[name] for kind, names in columns.items() for name in names}},
        {names[name]: kind.into[name] for kind, names in columns.items() for name in names if name in kind.into},
        made,
    )
    return Gathering(kind, columns)


def _rows(of: Held) -> Rows:
    return [{**ORDINARY, **row} for row in of.values]


def _down_to(height: int, values: Sequence[_Value]) -> list[_Value]:
    return [*values, *[values[-1]] * (height - len(values))]
