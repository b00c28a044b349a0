"""The lab's tables in every database: created empty for writes, loaded and verified once for reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import polars as pl
import pyarrow.parquet as pq

from harness.check import sums
from harness.check.canonical import canonicalise
from harness.check.equality import differences, equal_as_they_stand
from harness.check.logical_types import FLOATS, stored
from harness.check.sums import Sums
from harness.datasets.ordered import OrderedColumns
from harness.datasets.specification import PLAIN, Specification
from harness.lab.reference import References
from harness.model import Dataset, LabError, Value
from harness.systems import SYSTEMS

_Answer = TypeVar("_Answer")
SUMMED_ROWS = 10_000_000
_BESIDE = ("_staging", "_ledger", "_staging_ledger", "_clone")  # suffixes of tables that transports create
MOST = 12  # sizes of a dataset in one run: `claim` drops the tables of this many, to cover any interrupted run


def places(asked: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the number, from 1, of every size (dataset and rows) among those of its dataset.

    Raises LabError for more sizes of a dataset than `claim` drops.
    """
    of_each: dict[str, list[tuple[str, int]]] = {}
    for size in asked:
        of_each.setdefault(size[0], []).append(size)
    for name, sizes in of_each.items():
        if len(sizes) > MOST:
            raise LabError(f"{len(sizes)} sizes of {name}: choose at most {MOST} for a run on databases")
    return {size: place for sizes in of_each.values() for place, size in enumerate(sizes, start=1)}


class Tables:
    """The tables of one dataset in every database; `warmup` is the small dataset that warm-up calls read.

    `spec` defines the tables. `place` (from 1) distinguishes the tables of several sizes in one run. More than
    `summed_above` rows are compared by sums.
    """

    def __init__(
        self,
        references: References,
        spec: Specification,
        dataset: Dataset,
        warmup: Dataset,
        place: int = 1,
        summed_above: int = SUMMED_ROWS,
    ) -> None:
        self.references, self.dataset = references, dataset
        self.spec, self.warmup, self._place, self._summed_above = spec, warmup, place, summed_above
        self._loaded: dict[tuple[str, str], tuple[int, str]] = {}  # the database's life at the load, and its profile

    @property
    def logical_types(self) -> dict[str, str]:
        """The columns with their logical types."""
        return self.spec.logical_types

    @cached_property
    def frame_bytes(self) -> int:
        """The size of the rows in Arrow, in bytes."""
        return sum(batch.nbytes for batch in pq.ParquetFile(self.dataset.path).iter_batches())

    def for_write(self, system: str, profile: str = PLAIN) -> tuple[str, str]:
        """Create two empty tables; return their names: for the measured call and for the warm-up."""
        tables = self._names("")
        for table in tables:
            self._ask(system, SYSTEMS[system].client.create, table, self._definition(system, profile))
        return tables

    def for_read(self, system: str, profile: str = PLAIN) -> tuple[str, str]:
        """Return the names of two loaded tables; they are loaded and verified on first use."""
        return self._filled(system, "_loaded", profile, ())

    def for_changing(self, system: str) -> tuple[str, str]:
        """Return the names of two freshly loaded tables; the first may be changed while it is read."""
        self._loaded.pop((system, "_loaded"), None)
        tables = self._filled(system, "_loaded", SYSTEMS[system].concurrent_changes.PROFILE, ())
        del self._loaded[system, "_loaded"]  # the next read gets new tables
        return tables

    def for_copying(self, system: str, in_key_order: bool) -> tuple[str, str]:
        """Return the names of two loaded tables that the server reads as fast as possible; see `for_read`.

        They have no key and no log. Their rows are in the order of the dataset, or of the key.
        """
        suffix, order = ("_sorted", self.spec.order) if in_key_order else ("_source", ())
        return self._filled(system, suffix, SYSTEMS[system].source_profile, order)

    def _filled(self, system: str, suffix: str, profile: str, order: tuple[str, ...]) -> tuple[str, str]:
        tables = self._names(suffix)
        wanted = (self.references.lives[system], profile)
        if self._loaded.get((system, suffix)) != wanted:
            definition = self._definition(system, profile)
            for table, dataset in zip(tables, (self.dataset, self.warmup), strict=True):
                self._ask(system, SYSTEMS[system].client.create, table, definition)
                self._ask(
                    system, SYSTEMS[system].client.load, table, dataset.path, self.spec.logical_types, order, once=True
                )
            if wrong := self.differences_in_table(system, tables[0]):
                raise LabError(
                    f"{system}: table {tables[0]} was loaded wrongly through the reference client: {wrong[0]}"
                )
            self._loaded[system, suffix] = wanted
        return tables

    def _names(self, suffix: str, place: int = 0) -> tuple[str, str]:
        place = place or self._place
        name = self.spec.name if place == 1 else f"{self.spec.name}_{place}"
        return f"{name}{suffix}", f"{name}_warmup{suffix}"

    def _definition(self, system: str, profile: str) -> str:
        definition = SYSTEMS[system].tables.definition(self.spec, profile)
        if definition is None:
            raise LabError(f"{self.spec.name} has no profile {profile} in {system}")
        return definition

    @property
    def summed(self) -> bool:
        """Whether the rows are compared by sums, for which this process needs no copy of them."""
        return (
            self.dataset.rows > self._summed_above
            and sums.LOGICAL_TYPES.issuperset(self.logical_types.values())
            and not self.spec.columns
        )

    @cached_property
    def _expected(self) -> OrderedColumns:
        return OrderedColumns(self.dataset, self.spec)

    @cached_property
    def expected_sums(self) -> Sums:
        """The sums of the dataset's rows."""
        return sums.of_parquet(self.dataset.path, self.logical_types)

    @cached_property
    def sums_of_first_and_last_month(self) -> tuple[Sums, Sums]:
        """The sums of the rows of the warm-up's first month, and of its last."""
        frame = pl.read_parquet(self.warmup.path)
        month = frame[self.spec.month].dt.strftime("%Y%m")
        ends = (frame.filter(month == end) for end in (month.min(), month.max()))
        first, last = (sums.of_table(end.to_arrow(), self.logical_types) for end in ends)
        return first, last

    def differences_in_file(self, path: str, frame: str) -> list[str]:
        """Compare every value of the Arrow file of a canonical frame with the dataset; see `differences`."""
        # The sums differ for pandas if a float is missing: it marks both null and NaN with NaN.
        nulls = self.expected_sums.nulls.items() if self.summed and frame == "pandas" else ()
        if self.summed and not any(count and self.logical_types[name] in FLOATS for name, count in nulls):
            return sums.differences(self.expected_sums, sums.of_ipc(path, self.logical_types))
        return self.differences(pl.read_ipc(path), frame)

    def differences_in_table(self, system: str, table: str, frame: str = "") -> list[str]:
        """Fetch a table through the reference client and compare every value with the dataset; see `differences`.

        If it is `summed`, the server sums it instead, if it can.
        """
        if self.summed and not SYSTEMS[system].lacks("sums"):
            return sums.differences(self.expected_sums, self.sums_of(system, table))
        fetched, _ = canonicalise(
            self._ask(system, SYSTEMS[system].client.fetch, table), self.read_logical_types(system)
        )
        return self.differences(fetched, frame)

    def read_logical_types(self, system: str) -> dict[str, str]:
        """Return the logical types that a read of the table returns: different ones if a database lacks such a type."""
        instead = SYSTEMS[system].tables.STORED if self.spec.columns else {}
        return {name: stored(logical, instead) for name, logical in self.logical_types.items()}

    def differences(self, canonical: pl.DataFrame, frame: str = "") -> list[str]:
        """Compare every value of a canonical frame with the dataset. In a pandas `frame` a NaN counts as null.

        The frame may have the types of `read_logical_types`. Values of a user's own data are never shown.
        """
        if canonical.schema != self._expected.schema:  # a value that does not fit becomes a null: a difference
            dtypes = self._expected.schema
            canonical = pl.DataFrame([canonical[name].cast(of, strict=False) for name, of in dtypes.items()])
        as_built = self._expected.as_built
        if as_built is not None and equal_as_they_stand(as_built, canonical, frame == "pandas"):
            return []
        return differences(
            self._expected, canonical, self.spec.row_key, frame == "pandas", with_values=not self.spec.private
        )

    def require_held(self, system: str) -> None:
        """Raise LabError if a database cannot hold the dataset's table or its rows, whatever the writer.

        This creates the table and loads the warm-up's few rows once, over the reference connection. A server error
        about a row is raised only if its message cannot contain a value. Otherwise the transports show the outcome.
        """
        of_system, (_, table) = SYSTEMS[system], self._names("")
        definition = self._definition(system, PLAIN)
        try:
            self._ask(system, of_system.client.create, table, definition)
        except LabError:
            raise
        except Exception as error:
            raise LabError(f"{system} refuses a table of these columns: {of_system.client.said(error)}") from None
        self._ask(system, of_system.client.require_held, self.dataset.path, self.logical_types)
        try:
            self._ask(system, of_system.client.load, table, self.warmup.path, self.logical_types, once=True)
        except LabError:
            raise
        except Exception as error:
            if words := of_system.without_values(str(error)):
                raise LabError(f"{system} refuses these rows: {words}") from None
        self._ask(system, of_system.client.drop, table)

    def sums_of(self, system: str, table: str) -> Sums:
        """Have the server sum a table."""
        return self._ask(system, SYSTEMS[system].sums.sums, table, self.logical_types)

    def rows_of(self, system: str, table: str) -> int:
        """Have the server count the rows of a table."""
        return int(self._ask(system, SYSTEMS[system].client.fetch, table, "count(*)").column(0)[0].as_py())

    def discard_beside(self, system: str) -> None:
        """Drop tables that ended transports left next to these."""
        for table in (*self._names(""), *self._names("_loaded")):
            for suffix in _BESIDE:
                self._ask(system, SYSTEMS[system].client.discard, f"{table}{suffix}")

    def say(self, system: str, statement: str) -> None:
        """Have the server execute a statement about these tables."""
        self._ask(system, SYSTEMS[system].client.say, statement)

    def left(self, system: str, table: str, parameters: Mapping[str, Value]) -> dict[str, int]:
        """Return facts about a table after a write; empty if the database's package provides none."""
        if SYSTEMS[system].lacks("settings"):
            return {}
        return self._ask(system, SYSTEMS[system].settings.left, table, parameters)

    def empty(self, system: str, table: str) -> None:
        """Delete all rows of a table and bring the database to rest; connections to it stay open."""
        self._ask(system, SYSTEMS[system].client.empty, table)

    def settle(self, system: str) -> None:
        """Drop the last write's tables and bring the database to rest."""
        self.references.greet(system)
        for table in self._names(""):
            self._ask(system, SYSTEMS[system].client.drop, table)
        self._ask(system, SYSTEMS[system].client.settle)

    def claim(self, system: str) -> None:
        """Make sure that all table names are free or ours, dropping an interrupted run's tables. Raises LabError."""
        for place in range(1, MOST + 1):
            self._drop(system, place)

    def drop(self, system: str) -> None:
        """End statements that dead workers left running, and drop all tables of this dataset."""
        self._ask(system, SYSTEMS[system].client.end_sessions)
        self._drop(system, self._place)

    def _drop(self, system: str, place: int) -> None:
        for suffix in ("", "_loaded", "_source", "_sorted"):
            for table in self._names(suffix, place):
                self._ask(system, SYSTEMS[system].client.drop, table)

    def _ask(self, system: str, call: Callable[..., _Answer], *arguments: object, once: bool = False) -> _Answer:
        return self.references.ask(system, call, *arguments, once=once)
