"""A kind of values in a database: its rows as a frame, their table, and the table's expected content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property

import polars as pl

from harness.check.logical_types import polars_dtype
from harness.datasets.hostile.kind import KEY, OF_TABLES, ORDINARY, Kind, Own, Rows
from harness.model import Scalar
from harness.systems import SYSTEMS
from harness.systems.system import System

ROW_KEY = (KEY,)


@dataclass(frozen=True, eq=False)
class Held:
    """A kind in a database that has such values: the general facts and the database's particulars combined.

    `types` are the SQL types of all table columns but the key, `logical_types` those of their expected values. `own`
    has the database's other particulars: hidden and shown columns, and why its server may refuse the columns.
    """

    kind: Kind
    system: System
    own: Own
    values: Rows
    types: dict[str, str]
    logical_types: dict[str, str]

    @property
    def forbidden(self) -> str:
        """Why the database can hold none of the values (the right outcome of a write is a refusal), or empty."""
        narrow = " and ".join(self.types[name] for name in self.kind.beyond)
        return self.own.forbidden or (narrow and (self.kind.reason or f"{narrow} cannot hold all of these values"))

    @property
    def no_read(self) -> str:
        """Why reading the table shows nothing, or empty."""
        return self.own.no_read or self.kind.no_read

    @property
    def about(self) -> set[str]:
        """The columns that the kind is about."""
        return {name for row in self.values for name in row}.union(self.kind.into, self.kind.beyond, self.own.types)

    @property
    def stored_logical_types(self) -> dict[str, str]:
        """All columns of the table, with the logical types of their expected values."""
        return logical_types_of(self.logical_types)

    @property
    def read_logical_types(self) -> dict[str, str]:
        """The columns that a read of the whole table returns: those of SELECT *."""
        return {name: logical for name, logical in self.stored_logical_types.items() if name not in self.own.hidden}

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The rows as a canonical frame in key order."""
        values = [{**ORDINARY, **row} for row in self.values]
        return frame(self.kind.columns, [[row[name] for name in self.kind.columns] for row in values])

    @cached_property
    def stored(self) -> pl.DataFrame:
        """The table's expected content after the rows were written, as a canonical frame."""
        made = self.kind.made | self.own.made
        columns = (
            pl.Series(name, made[name], polars_dtype(of)) if name in made else self.rows[name].cast(polars_dtype(of))
            for name, of in self.stored_logical_types.items()
        )
        return pl.DataFrame(list(columns))

    @property
    def definition(self) -> str:
        """CREATE TABLE with `{table}` for the name, first."""
        columns = [f"{self.system.sql.identifier(name)} {of}" for name, of in self.types.items()]
        return self.system.hostile.definition(columns)

    @property
    def selection(self) -> str:
        """The reference client's select list: all columns, even those that SELECT * omits."""
        columns = {name: self.system.sql.identifier(name) for name in self.stored_logical_types}
        shown = self.own.shown
        return ", ".join(f"{shown[name]} AS {column}" if name in shown else column for name, column in columns.items())

    @property
    def insertion(self) -> str | None:
        """INSERT of the rows as SQL strings and numbers, already cast, with `{table}` for the name.

        None if the table is the default one, which the reference client fills from a file. Otherwise the server parses
        values that this client has no type for, and the fetch shows whether they arrived.
        """
        if not (self.kind.into or self.kind.beyond or self.own.types):
            return None
        given, made = self.rows, self.stored
        cast = [made[name] if made.schema[name] != dtype else given[name] for name, dtype in given.schema.items()]
        values = ", ".join(f"({', '.join(map(self._literal, row))})" for row in zip(*cast, strict=True))
        return f"INSERT INTO {{table}} ({self.system.sql.identifiers(given.columns)}) VALUES {values}"

    def _literal(self, value: object) -> str:
        return str(value) if isinstance(value, int | float | Decimal) else self.system.sql.literal(str(value))


@cache
def held(kind: Kind, system: str) -> Held | None:
    """Return a kind as a database holds it; None if it lacks such values, or a type for one of the columns."""
    room = SYSTEMS[system].hostile
    own = room.OWN.get(kind.name, Own())
    values = kind.rows if own.rows is None else own.rows
    server_types = {name: room.TYPES.get(of) for name, of in {**kind.columns, **kind.into, **kind.beyond}.items()}
    types = {name: own.types.get(name) or of for name, of in server_types.items()}
    known = {name: of for name, of in types.items() if of}
    if own.without or values is None or len(known) < len(types):
        return None
    logical_types = kind.columns | {name: OF_TABLES.get(of, of) for name, of in kind.into.items()}
    return Held(kind, SYSTEMS[system], own, values, known, logical_types)


def one(kind: Kind, system: str) -> Held:
    """Return a kind as a database holds it. Raises ValueError if it lacks such values."""
    if found := held(kind, system):
        return found
    raise ValueError(f"{system} has no values of the kind {kind.name}")


def logical_types_of(columns: dict[str, str]) -> dict[str, str]:
    """Return all columns of a frame with their logical types: the key and these."""
    return {KEY: "int32", **columns}


def frame(columns: dict[str, str], values: Sequence[Sequence[Scalar]]) -> pl.DataFrame:
    """Return rows of values as a canonical frame, numbered from 0. A date may be days since 1970-01-01."""
    series = [pl.Series(KEY, range(len(values)), pl.Int32)]
    for place, (name, logical) in enumerate(columns.items()):
        column = [row[place] for row in values]
        days = logical == "date" and any(isinstance(value, int) for value in column)
        made = pl.Series(name, column, pl.Int32 if days else polars_dtype(logical), strict=True)
        series.append(made.cast(pl.Date) if days else made)
    return pl.DataFrame(series)
