"""Which transports are ruled out by the values of data, judged by what they declare to lose.

The data are somebody's own, or a dataset of the lab whose columns are described (`harness.datasets.shapes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from harness.check.kinds import NANOSECONDS, is_wide, plain
from harness.datasets.hostile.kinds import KINDS
from harness.datasets.own import values
from harness.model import Case, Fate, Transport

_LOOKED_AT = 20_000  # rows of a built dataset: its first chunk has every kind of its values
_UNDECLARED = {*NANOSECONDS, "time", "duration", "binary"}  # types of which there is no kind of values
_NESTED = {"array", "nested", "map"}
_DECLARED_ARRAY = "array(int32)"  # which the kind of arrays is about


class Described(Protocol):
    """What is known of the values of data; see `harness.datasets.own.data.OwnData`."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """The columns with their kinds."""

    @property
    def found(self) -> Mapping[str, tuple[str, ...]]:
        """The kinds of hostile values in them, with the columns."""

    @property
    def extremes(self) -> frozenset[str]:
        """Kinds of a type's values of which some are extreme."""


@dataclass(frozen=True)
class Found:
    """What was found in a dataset of the lab; see `Described`."""

    kinds: Mapping[str, str]
    found: Mapping[str, tuple[str, ...]]
    extremes: frozenset[str]


def found_in(path: str, kinds: dict[str, str]) -> Found:
    """Look at the first 20,000 rows of a built dataset."""
    frame = pl.read_parquet(path, n_rows=_LOOKED_AT)
    return Found(kinds, values.found(frame, kinds), frozenset(values.extremes(frame, kinds)))


def ruled_out(described: Mapping[str, Described], cases: Iterable[Case]) -> dict[tuple[str, str], str]:
    """Return the datasets and transports of cases that do not go together, with the reasons, of those `described`."""
    pairs = {(case.dataset, case.transport.id): case.transport for case in cases if case.dataset in described}
    kinds = {pair: lost(entry, described[pair[0]]) for pair, entry in pairs.items()}
    return {pair: why(pairs[pair], kind, described[pair[0]]) for pair, kind in kinds.items() if kind}


def undeclared(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of types of which no transport declares what becomes of them, with their kinds."""
    return {
        name: kind
        for name, kind in kinds.items()
        if kind in _UNDECLARED or is_wide(kind) or (plain(kind) in _NESTED and kind != _DECLARED_ARRAY)
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
        held = next((data.kinds[name] for name in columns if plain(data.kinds[name]) in types), types[0])
        return f"unsupported: {held}{named}"
    return f"{fate}: {KINDS[kind].meaning}{named}"
