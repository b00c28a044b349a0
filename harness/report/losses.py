"""What each transport is declared to lose, as results tell: a table of all; `cells` has the marks at its name."""

from collections.abc import Sequence

from harness.model import Fate
from harness.report.cells import CHANGES, REFUSES
from harness.report.summary import Summary
from harness.report.table import Table

_FATES = (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)
_NOTE = "which kinds of values these are, docs/catalogue.md says; `lab verify` tries all of them"


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
    return [
        Table(
            f"What each transport loses ({CHANGES}{REFUSES})",
            ("transport", *map(str, heads)),
            rows,
            notes=(_NOTE,),
            wide=wide,
        )
    ]
