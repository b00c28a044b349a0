"""Several kinds of values in one table, so that one call shows the fate of each. Pure.

The table has each kind's relevant columns under new names. Such a column begins as in the kind's own table and repeats
its last value down to the height of the tallest. The values, their order and the first value are therefore the same.
Ordinary values fill the other columns.
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

_FEW_BYTES = 10_000  # bytes of values per kind, to limit a table of all kinds
_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Gathering:
    """Kinds in one table: `kind` is the table's, `columns` maps each kind's columns to their names there."""

    kind: Kind
    columns: dict[Kind, dict[str, str]]


@cache
def fits(of: Held, read: bool) -> bool:
    """Return whether a kind is only about the values of its columns, and these are few.

    Other kinds are about names, whole rows or tables, a type or column of one database, or the client's time zone. Or
    their right result depends on the server. In tables of reads, values that the reference client must insert with SQL
    stay separate.
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
    """Return kinds that fit in one table of a database."""
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
        # A name made of the kinds, because tables and files of other kinds must have another one.
        f"gathered_{hashlib.sha256(' '.join(kind.name for kind in kinds).encode()).hexdigest()[:12]}",
        "several kinds next to each other",
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
