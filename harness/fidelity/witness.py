"""The tables of hostile kinds of values in one database, created, loaded and fetched by its reference client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl

from harness.check.canonical import canonicalise
from harness.check.equality import differences
from harness.datasets.hostile.kind import Kind
from harness.datasets.hostile.names import VICTIM
from harness.fidelity import tables
from harness.fidelity.tables import Held
from harness.lab.reference import PATIENCE_SECONDS, NoAnswer, Reference
from harness.machine import scratch
from harness.systems import SYSTEMS

_WRITTEN = "hostile_written"
_VICTIM = Kind("victim", "", [], {})  # only the key, so that SELECT 1 matches it


class Witness:
    """Verifies the values of one database through `reference`; `folder` gets files for transports."""

    def __init__(self, system: str, endpoints: dict[str, str], folder: Path) -> None:
        self._system, self._folder = system, folder
        self._client, self._hostile = SYSTEMS[system].client, SYSTEMS[system].hostile
        self.reference = Reference(SYSTEMS[system], endpoints, PATIENCE_SECONDS)
        self.reference.greet()
        self._verdicts: dict[str, str] = {}
        self._made: set[str] = set()
        self._kept: dict[str, tuple[str, str]] = {}  # tables of writes: their definitions, and the server's marks
        self._writer = ""
        self._types = False  # whether the types that tables need exist

    def rows(self, kind: Kind) -> pl.DataFrame:
        """Return the rows of a kind as expected in its table."""
        return self._held(kind).stored

    def file(self, kind: Kind) -> Path:
        """Return the Parquet file with a kind's rows as in a frame."""
        path = self._folder / f"{self._system}-{kind.name}.parquet"
        if not path.exists():
            self._held(kind).rows.write_parquet(path)
        return path

    def loaded(self, kind: Kind) -> str:
        """Return the name of the table with a kind's rows; it exists after `verdict`."""
        return kind.tables[0] if kind.tables else f"hostile_{kind.name}"

    def verdict(self, kind: Kind) -> str:
        """Load the rows of a kind, once, and return why the reference client cannot verify them, or an empty string."""
        if kind.name not in self._verdicts:
            self._verdicts[kind.name] = self._verdict(kind)
        return self._verdicts[kind.name]

    def _verdict(self, kind: Kind) -> str:
        try:
            if kind.tables and VICTIM not in self._made:
                self._make_victim()
            self._make(kind, self.loaded(kind))
            self._load(kind, self.loaded(kind))
            wrong = differences(self.rows(kind), self.fetch(kind, self.loaded(kind)), tables.ROW_KEY)
        except NoAnswer:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return wrong[0] if wrong else ""

    def executed(self) -> str:
        """Return the damage that SQL in a name has done to its target table, and recreate that; empty without any."""
        try:
            rows = self.reference.ask(self._client.fetch, VICTIM).num_rows
        except NoAnswer:
            raise
        except Exception as error:
            done = f"{type(error).__name__}: {error}"
        else:
            if not rows:
                return ""
            done = f"{VICTIM} has {rows} rows"
        self._make_victim()
        return f"SQL in a name was executed: {done}"

    def _make_victim(self) -> None:
        self._make(_VICTIM, VICTIM)

    def _load(self, kind: Kind, table: str) -> None:
        if insertion := self._held(kind).insertion:
            self.reference.ask(self._client.fill, table, insertion, once=True)
        else:
            self.reference.ask(
                self._client.load, table, self.file(kind), tables.logical_types_of(kind.columns), once=True
            )

    def empty(self, kind: Kind) -> str:
        """Create an empty table for a write and return its name."""
        table = kind.tables[1] if kind.tables else _WRITTEN
        self._make(kind, table)
        return table

    def emptied(self, kind: Kind, writer: str) -> str:
        """Return the name of the kind's own table, empty for a write by this transport.

        It is created once and then emptied, which takes a server a tenth of the time. It is recreated if an earlier
        writer changed more than its rows, or if a killed process may still write to it.
        """
        if writer != self._writer:
            marks = self.reference.ask(self._hostile.marks) if self._kept else {}
            self._kept = {table: kept for table, kept in self._kept.items() if marks.get(table) == kept[1]}
            self._writer = writer
        table = kind.tables[1] if kind.tables else f"{_WRITTEN}_{kind.name}"
        definition = self._held(kind).definition
        if table in self._kept and self._kept[table][0] == definition:
            self.reference.ask(self._hostile.clear, table)
        else:
            self._make(kind, table)
            self._kept[table] = definition, self.reference.ask(self._hostile.marks)[table]
        return table

    def fetch(self, kind: Kind, table: str) -> pl.DataFrame:
        """Return a whole table, including the columns that SELECT * omits, as a canonical frame."""
        of = self._held(kind)
        fetched = self.reference.ask(self._client.fetch, table, of.selection)
        return canonicalise(fetched, of.stored_logical_types)[0]

    def settle(self) -> None:
        """End a killed process's remaining work on the server."""
        self._kept.clear()
        self.reference.ask(self._client.settle)

    def forget(self) -> None:
        """Recreate everything after a server restart: tables in memory are then empty."""
        self.reference.close()
        self._verdicts.clear()
        self._kept.clear()

    def close(self) -> None:
        """Drop all tables, then their types."""
        for table in self._made:
            self.reference.ask(self._client.drop, table)
        if self._types:
            self.reference.ask(self._hostile.drop_types)
        self.reference.close()

    def _make(self, kind: Kind, table: str) -> None:
        if not self._types:
            self.reference.ask(self._hostile.make_types)
            self._types = True
        self._kept.pop(table, None)
        self._made.add(table)  # creation may fail, but drop it in any case
        self.reference.ask(self._client.create, table, self._held(kind).definition)

    def _held(self, kind: Kind) -> Held:
        return tables.one(kind, self._system)


@contextmanager
def opened(system: str, endpoints: dict[str, str]) -> Iterator[Witness]:
    """Yield the witness of a database, and leave nothing in it. Raises LabError if it is not reachable."""
    with scratch.folder("hostile") as folder:
        witness = Witness(system, endpoints, Path(folder))
        try:
            yield witness
        except BaseException:
            with suppress(Exception):  # the server may be gone: only the original error matters
                witness.close()
            raise
        witness.close()
