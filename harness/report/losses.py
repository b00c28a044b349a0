"""What each transport is declared to lose, as results tell: a mark at its name, a note below, a table of all."""

from collections.abc import Mapping, Sequence

from harness.model import Fate
from harness.report.summary import Summary
from harness.report.table import Table

CHANGES, REFUSES = "†", "‡"
_FATES = (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)
_NOTE = "which kinds of values these are, docs/catalogue.md says; `lab verify` tries all of them"


def marks(lossy: Mapping[str, str]) -> str:
    """Return the marks of what a transport is declared to lose: a silent change and a refusal are never one mark.

    A call that hangs or crashes hands nothing over either: it is marked as a refusal.
    """
    fates = set(lossy.values())
    return (CHANGES if Fate.CHANGED in fates else "") + (REFUSES if fates - {Fate.CHANGED} else "")


def losses(summaries: Sequence[Summary]) -> list[Table]:
    """Return the table of what the transports of a run lose, by how it is lost; none where nothing is declared."""
    declared = {case.transport: case.lossy for case in summaries}
    lost = {transport: fates for transport, fates in sorted(declared.items()) if fates}
    heads = [fate for fate in _FATES if any(fate in fates.values() for fates in lost.values())]
    rows = tuple(
        (name, *(", ".join(kind for kind, found in fates.items() if found == fate) for fate in heads))
        for name, fates in lost.items()
    )
    if not rows:
        return []
    wide = frozenset(range(len(heads) + 1))
    return [Table("What each transport loses (†)", ("transport", *map(str, heads)), rows, notes=(_NOTE,), wide=wide)]
