"""Which transports are ruled out by the values of somebody's own data, judged by what they declare to lose."""

from __future__ import annotations

from harness.check.kinds import plain
from harness.datasets.hostile.kinds import KINDS
from harness.datasets.own import values
from harness.datasets.own.data import OwnData
from harness.model import Fate, Transport


def lost(entry: Transport, data: OwnData) -> str:
    """Return the first kind of values of these data that a transport declares to lose; empty where there is none.

    What it changes of a type's values are extremes: of a type without those it loses nothing. Whom it refuses, it
    refuses.
    """
    for kind in data.found:
        fate = entry.lossy.get(kind)
        changed_extremes_only = fate == Fate.CHANGED and kind in values.EXTREMES and kind not in data.extremes
        if fate and not changed_extremes_only:
            return kind
    return ""


def why(entry: Transport, kind: str, data: OwnData) -> str:
    """Say why a kind of values rules a transport out: `unsupported` for a type, else what becomes of the values."""
    columns = data.found[kind]
    named = f' (column "{columns[0]}"{f" and {len(columns) - 1} more" if len(columns) > 1 else ""})' if columns else ""
    types = [of for of, shown in values.OF_TYPES.items() if shown == kind]
    fate = entry.lossy[kind]
    if types and fate == Fate.REFUSED:
        held = next((data.kinds[name] for name in columns if plain(data.kinds[name]) in types), types[0])
        return f"unsupported: {held}{named}"
    return f"{fate}: {KINDS[kind].meaning}{named}"
