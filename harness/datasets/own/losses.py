"""Which transports are ruled out by the values of data, judged by what they declare to lose.

The data are somebody's own, or a dataset of the lab whose columns are described (`harness.datasets.shapes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from harness.check.logical_types import NANOSECONDS, is_wide, plain
from harness.datasets.hostile.kinds import KINDS
from harness.datasets.own import values
from harness.model import Case, Fate, Transport

_LOOKED_AT = 20_000  # rows of a built dataset: its first chunk has its values of every kind
_UNDECLARED = {*NANOSECONDS, "time", "duration", "binary"}  # types of which there is no kind of values
_NESTED = {"array", "nested", "map"}
_DECLARED_ARRAY = "array(int32)"  # which the kind of arrays is about


class Described(Protocol):
    """What is known of the values of data; see `harness.datasets.own.data.OwnData`."""

    @property
    def logical_types(self) -> Mapping[str, str]:
        """The columns with their logical types."""

    @property
    def found(self) -> Mapping[str, tuple[str, ...]]:
        """The kinds of hostile values in them, with the columns."""

    @property
    def extremes(self) -> frozenset[str]:
        """Kinds of a type's values of which some are extreme."""


@dataclass(frozen=True)
class Found:
    """What was found in a dataset of the lab; see `Described`."""

    logical_types: Mapping[str, str]
    found: Mapping[str, tuple[str, ...]]
    extremes: frozenset[str]


def found_in(path: str, logical_types: dict[str, str]) -> Found:
    """Look at the first 20,000 rows of a built dataset."""
    frame = pl.read_parquet(path, n_rows=_LOOKED_AT)
    return Found(logical_types, values.found(frame, logical_types), frozenset(values.extremes(frame, logical_types)))


def ruled_out(described: Mapping[str, Described], cases: Iterable[Case]) -> dict[tuple[str, str], str]:
    """Return the datasets and transports of cases that do not go together, with the reasons, of those `described`."""
    pairs = {(case.dataset, case.transport.id): case.transport for case in cases if case.dataset in described}
    kinds = {pair: lost(entry, described[pair[0]]) for pair, entry in pairs.items()}
    return {pair: why(pairs[pair], kind, described[pair[0]]) for pair, kind in kinds.items() if kind}


def undeclared(logical_types: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of types of which no transport declares what becomes of them, with their logical types."""
    return {
        name: logical
        for name, logical in logical_types.items()
        if logical in _UNDECLARED or is_wide(logical) or (plain(logical) in _NESTED and logical != _DECLARED_ARRAY)
    }


def lost(entry: Transport, data: Described) -> str:
    """Return the first kind of values of these data that a transport declares to lose; empty where there is none."""
    return next(each_lost(entry, data), "")


def each_lost(entry: Transport, data: Described) -> Iterator[str]:
    """Yield the kinds of values of these data that a transport declares to lose.

    What it changes of a type's values are extremes: of a type without those it loses nothing. Whom it refuses, it
    refuses.
    """
    for kind in data.found:
        fate = entry.lossy.get(kind)
        changed_extremes_only = fate == Fate.CHANGED and kind in values.EXTREMES and kind not in data.extremes
        if fate and not changed_extremes_only:
            yield kind


def why(entry: Transport, kind: str, data: Described) -> str:
    """Say why a kind of values rules a transport out: `unsupported` for a type, else what becomes of the values."""
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
