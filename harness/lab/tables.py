"""The lab's tables in every database: made empty for writes, loaded and verified once for reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from harness.check.canonical import canonicalise
from harness.check.verify import differences
from harness.datasets.ordered import OrderedColumns
from harness.datasets.specification import PLAIN, Specification
from harness.lab.reference import PATIENCE_SECONDS, NoAnswer, Reference
from harness.model import Dataset, LabError
from harness.systems import SYSTEMS


class Tables:
    """The tables of one dataset, held through one reference connection a database.

    `warmup` is the small dataset that warm-up calls read. Connections are opened on first use and again after `forget`.
    Every call to a server ends within `patience` seconds, or raises NoAnswer: `hung` names the databases that did.
    """

    def __init__(
        self,
        endpoints: dict[str, str],
        spec: Specification,
        dataset: Dataset,
        warmup: Dataset,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._endpoints, self._spec, self._patience = endpoints, spec, patience
        self._dataset, self._warmup = dataset, warmup
        self._references: dict[str, Reference] = {}
        self._loaded: set[tuple[str, str]] = set()
        self.hung: set[str] = set()
        self.claimed = False
        self._expected = OrderedColumns(dataset, spec)

    def claim(self, systems: Iterable[str]) -> None:
        """Make sure that all table names are free or ours, dropping what an interrupted run left. Raises LabError."""
        for system in systems:
            self._drop_all(system)
        self.claimed = True

    def for_write(self, system: str, profile: str = PLAIN) -> tuple[str, str]:
        """Make two empty tables; return their names: for the measured call and for the warm-up."""
        tables = self._names("")
        for table in tables:
            self._ask(system, SYSTEMS[system].client.create, table, self._definition(system, profile))
        return tables

    def for_read(self, system: str) -> tuple[str, str]:
        """Return the names of two loaded tables; they are loaded and verified on first use."""
        return self._filled(system, "_loaded", PLAIN, ())

    def for_copying(self, system: str, in_key_order: bool) -> tuple[str, str]:
        """Return the names of two loaded tables that cost the server as little as possible to read; see `for_read`.

        They have no key and no log; their rows are in the order of the dataset, or of the key.
        """
        suffix, order = ("_sorted", self._spec.order) if in_key_order else ("_source", ())
        return self._filled(system, suffix, SYSTEMS[system].source_profile, order)

    def _filled(self, system: str, suffix: str, profile: str, order: tuple[str, ...]) -> tuple[str, str]:
        tables = self._names(suffix)
        if (system, suffix) not in self._loaded:
            definition = self._definition(system, profile)
            for table, dataset in zip(tables, (self._dataset, self._warmup), strict=True):
                self._ask(system, SYSTEMS[system].client.create, table, definition)
                self._ask(system, SYSTEMS[system].client.load, table, dataset.path, self._spec.kinds, order, once=True)
            if wrong := self.differences_in_table(system, tables[0]):
                raise LabError(
                    f"{system}: table {tables[0]} was loaded wrongly through the reference client: {wrong[0]}"
                )
            self._loaded.add((system, suffix))
        return tables

    def _names(self, suffix: str) -> tuple[str, str]:
        return f"{self._spec.name}{suffix}", f"{self._spec.name}_warmup{suffix}"

    def _definition(self, system: str, profile: str) -> str:
        definition = SYSTEMS[system].tables.definition(self._spec, profile)
        if definition is None:
            raise LabError(f"expected {self._spec.name} to have a profile {profile} in {system}, found none")
        return definition

    def differences_in_table(self, system: str, table: str) -> list[str]:
        """Fetch a table through the reference client and compare every value with the dataset."""
        fetched, _ = canonicalise(self._ask(system, SYSTEMS[system].client.fetch, table), self._spec.kinds)
        return self.differences(fetched)

    def differences(self, canonical: pl.DataFrame) -> list[str]:
        """Compare every value of a canonical frame with the dataset."""
        return differences(self._expected, canonical, self._spec.row_key)

    def settle(self, system: str) -> None:
        """Drop what the last write left and bring the database to rest."""
        self.greet(system)
        for table in self._names(""):
            self._ask(system, SYSTEMS[system].client.drop, table)
        self._ask(system, SYSTEMS[system].client.settle)

    def greet(self, system: str) -> None:
        """See that a database answers. Raises NoAnswer or, where no connection can be opened, LabError."""
        self._watched(system, self._reference(system).greet)

    def forget(self, system: str) -> None:
        """Give up a database's connection and loaded tables, after its server has died."""
        self._loaded = {(name, suffix) for name, suffix in self._loaded if name != system}
        if reference := self._references.pop(system, None):
            reference.close()

    def close(self, drop: bool) -> list[str]:
        """Close all connections, first dropping the lab's tables when asked to; return where that was not possible.

        The next run's `claim` drops those.
        """
        left = []
        for system in list(self._references):
            try:
                if drop:
                    self._ask(system, SYSTEMS[system].client.end_sessions)
                    self._drop_all(system)
            except Exception:  # a server that is gone or hangs cannot be tidied
                left.append(system)
            self.forget(system)
        return left

    def _drop_all(self, system: str) -> None:
        for suffix in ("", "_loaded", "_source", "_sorted"):
            for table in self._names(suffix):
                self._ask(system, SYSTEMS[system].client.drop, table)

    def _ask(self, system: str, call: Callable[..., Any], *arguments: Any, once: bool = False) -> Any:
        return self._watched(system, lambda: self._reference(system).ask(call, *arguments, once=once))

    def _watched(self, system: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except NoAnswer:
            self.hung.add(system)
            self.forget(system)
            raise

    def _reference(self, system: str) -> Reference:
        if system not in self._references:
            self._references[system] = Reference(SYSTEMS[system], self._endpoints, self._patience)
        return self._references[system]
