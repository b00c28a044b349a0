"""Which transport is the fastest at a number of rows that was perhaps not run, from the curves of a run. Pure.

At a size that was run it is the one with the smallest median; between two sizes seconds are taken to be straight
between the medians, as where crossings are looked for; beyond the largest it is who has the least by the line of fixed
and marginal cost, or, where nobody costs as a line says, the fastest at the largest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.report.answer_tables import route
from harness.report.cells import LOSES, significant
from harness.report.costs import STRAIGHT, costs
from harness.report.crossings import not_slower
from harness.report.curves import Curve, Direction
from harness.report.points import described
from harness.report.table import Table

_HEAD = ("from, to", "fastest", "s", "told by", "not shown slower there")
_LINE = "the line of its costs, up to {:,} rows: EXTRAPOLATED, not measured"
_MOST = "runs of {:,} rows, the most: nobody costs as a line says"
_NOTE = "the fastest of those whose values all came back exact; not shown slower: at the sizes that it is told by"


@dataclass(frozen=True)
class AtRows:
    """The fastest transport of a direction at some rows: its seconds, what they are told by, who else it may be.

    `seconds` are None where it is the fastest at the most rows that were run, and nothing tells of more.
    `alike` are those that are not shown to be slower at the sizes it is told by; `unsure` says that there were too few
    runs to show anything.
    """

    direction: Direction
    transport: str
    seconds: float | None
    told_by: str
    alike: tuple[str, ...]
    unsure: bool


def at_rows(direction: Direction, rows: int) -> AtRows | None:
    """Return who is the fastest at so many rows; None where no transport is exact, or nobody can say."""
    curves = direction.exact
    sizes = sorted({size for curve in curves.values() for size in curve})
    if not sizes:
        return None
    beside, told_by = _told_by(rows, sizes)
    seconds = {
        name: _between(rows, curve, beside) for name, curve in curves.items() if all(one in curve for one in beside)
    }
    if rows > sizes[-1]:
        lines = _lines(direction, rows, sizes[-1])
        told_by = _LINE.format(sizes[-1]) if lines else _MOST.format(sizes[-1])
        seconds = lines or seconds
    if not seconds:
        return None
    best = min(sorted(seconds), key=seconds.__getitem__)
    leading = [case for size in beside for case in not_slower([of[size].case for of in curves.values() if size in of])]
    alike = sorted({case.transport for case in leading} - {best})
    unsure = any(case.interval is None for case in leading)
    known = told_by != _MOST.format(sizes[-1])
    return AtRows(direction, best, seconds[best] if known else None, told_by, tuple(alike), unsure)


def table(found: Iterable[AtRows], rows: int | None, network: Mapping[str, str]) -> Table:
    """Return the answers as one table: for so many rows, or None for the most that were run; over a network, if any."""
    lines = tuple(
        (route(one.direction), _named(one), significant(one.seconds), one.told_by, _beside(one)) for one in found
    )
    of_rows = f"{rows:,} row{'s' if rows > 1 else ''}" if rows else "the most rows that were run"
    over = " and ".join(described(name, value) for name, value in network.items() if value != "0")
    title = f"The fastest transport for {of_rows}" + (f" over {over}" if over else "")
    return Table(title, _HEAD, lines, (_NOTE,), wide=frozenset({0, 1, 3, 4}), names=frozenset({1, 4}))


def _told_by(rows: int, sizes: Sequence[int]) -> tuple[list[int], str]:
    """Return the sizes that tell about some rows, one or two, and how they do."""
    if rows in sizes:
        return [rows], "runs of this size"
    after = bisect_right(sizes, rows)
    if not after:
        return [sizes[0]], f"runs of {sizes[0]:,} rows, the fewest"
    if after == len(sizes):
        return [sizes[-1]], ""
    low, high = sizes[after - 1], sizes[after]
    return [low, high], f"runs of {low:,} and {high:,} rows, straight between"


def _lines(direction: Direction, rows: int, largest: int) -> dict[str, float]:
    """Return the seconds of those who are exact at all of their sizes, up to the largest, and cost as a line says."""
    return {
        one.transport: one.seconds(rows)
        for one in costs([direction])
        if one.off <= STRAIGHT and one.sizes == tuple(direction.exact.get(one.transport, ())) and largest in one.sizes
    }


def _between(rows: int, curve: Curve, beside: Sequence[int]) -> float:
    low, high = beside[0], beside[-1]
    first, last = curve[low].case.took, curve[high].case.took
    return first if low == high else first + (last - first) * (rows - low) / (high - low)


def _beside(one: AtRows) -> str:
    return ", ".join([*one.alike, *(["too few runs to tell"] if one.unsure else [])])


def _named(one: AtRows) -> str:
    lossy = any(one_size.case.lossy for one_size in one.direction.curves[one.transport].values())
    return one.transport + (LOSES if lossy else "")
