"""Which transports the data's values rule out, according to their declared losses.

The data are a user's own, or a dataset of the lab with described columns (`harness.datasets.shapes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from harness.check.logical_types import NANOSECONDS, is_wide, plain
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.user_data import values
from harness.model import Case, Fate, Transport

_LOOKED_AT = 20_000  # rows of a built dataset: its first chunk has values of all its kinds
_UNDECLARED = {*NANOSECONDS, "time", "duration", "binary"}  # types without a kind of values
_NESTED = {"array", "nested", "map"}
_DECLARED_ARRAY = "array(int32)"  # the type of the kind of values "arrays"


class Described(Protocol):
    """The known facts about the data's values; see `harness.datasets.user_data.data.UserData`."""

    @property
    def logical_types(self) -> Mapping[str, str]:
        """The columns with their logical types."""

    @property
    def found(self) -> Mapping[str, tuple[str, ...]]:
        """The kinds of hostile values in them, with the columns."""

    @property
    def extremes(self) -> frozenset[str]:
        """Kinds of a type's values with extreme ones."""


@dataclass(frozen=True)
class Found:
    """The facts found in a dataset of the lab; see `Described`."""

    logical_types: Mapping[str, str]
    found: Mapping[str, tuple[str, ...]]
    extremes: frozenset[str]


def found_in(path: str, logical_types: dict[str, str]) -> Found:
    """Examine the first 20,000 rows of a built dataset."""
    frame = pl.read_parquet(path, n_rows=_LOOKED_AT)
    return Found(logical_types, values.found(frame, logical_types), frozenset(values.extremes(frame, logical_types)))


def ruled_out(described: Mapping[str, Described], cases: Iterable[Case]) -> dict[tuple[str, str], str]:
    """Return the cases' datasets and transports that do not fit together, with the reasons, for those `described`."""
    pairs = {(case.dataset, case.transport.id): case.transport for case in cases if case.dataset in described}
    kinds = {pair: lost(entry, described[pair[0]]) for pair, entry in pairs.items()}
    return {pair: why(pairs[pair], kind, described[pair[0]]) for pair, kind in kinds.items() if kind}


def undeclared(logical_types: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of types about which no transport declares anything, with their logical types."""
    return {
        name: logical
        for name, logical in logical_types.items()
        if logical in _UNDECLARED or is_wide(logical) or (plain(logical) in _NESTED and logical != _DECLARED_ARRAY)
    }


def lost(entry: Transport, data: Described) -> str:
    """Return the first kind of values of these data that a transport declares to lose; empty without one."""
    return next(each_lost(entry, data), "")


def each_lost(entry: Transport, data: Described) -> Iterator[str]:
    """Yield the kinds of values of these data that a transport declares to lose.

    For a type, a declared change applies only to extreme values, so data without these lose nothing. A declared refusal
    always applies.
    """
    for kind in data.found:
        fate = entry.lossy.get(kind)
        changed_extremes_only = fate == Fate.CHANGED and kind in values.EXTREMES and kind not in data.extremes
        if fate and not changed_extremes_only:
            yield kind


def why(entry: Transport, kind: str, data: Described) -> str:
    """Say why a kind of values rules a transport out: `unsupported` for a type, otherwise the values' fate."""
    columns = data.found[kind]
    named = f' (column "{columns[0]}"{f" and {len(columns) - 1} more" if len(columns) > 1 else ""})' if columns else ""
    types = [of for of, shown in values.OF_TYPES.items() if shown == kind]
    fate = entry.lossy[kind]
    if types and fate == Fate.REFUSED:
        held = next(
            (data.logical_types[name] for name in columns if plain(data.logical_types[name]) in types), types[0]
        )
        return f"unsupported: {held}{named}"
    return f"{fate}: {KINDS[kind].meaning}{named}"
