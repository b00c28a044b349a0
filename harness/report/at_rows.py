"""The fastest transport at a number of rows that was perhaps not measured, from the curves of a run. Pure.

At a measured size, the smallest median wins. Between two sizes, seconds are interpolated linearly between the medians,
as for crossings. Beyond the largest size, the line of fixed and marginal cost decides; if no transport follows such a
line, the fastest at the largest size wins.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.report.answer_tables import route
from harness.report.cells import legend, marked, significant
from harness.report.costs import STRAIGHT, costs
from harness.report.crossings import not_slower
from harness.report.curves import Curve, Direction
from harness.report.points import described
from harness.report.table import Table

_HEAD = ("from, to", "fastest", "seconds", "from runs of", "could be as fast")
_LINE = "up to {:,} rows, EXTRAPOLATED"
_MOST = "{:,} rows, the most; no transport follows a line"
_NOTE = "the fastest transport whose values all came back exact; could be as fast: at the sizes of these runs"


@dataclass(frozen=True)
class AtRows:
    """The fastest transport of a direction at some rows: its seconds, the runs they come from, and its equals.

    `seconds` are None if the transport is the fastest at the most rows measured, and nothing is known beyond. `alike`
    are the transports that are not shown to be slower at the sizes of `runs`; `unsure` says that there were too few
    runs to show anything.
    """

    direction: Direction
    transport: str
    seconds: float | None
    runs: str
    alike: tuple[str, ...]
    unsure: bool


def at_rows(direction: Direction, rows: int) -> AtRows | None:
    """Return the fastest at so many rows; None if no transport is exact, or if it is not known."""
    curves = direction.exact
    sizes = sorted({size for curve in curves.values() for size in curve})
    if not sizes:
        return None
    beside, runs = _sizes_for(rows, sizes)
    seconds = {
        name: _between(rows, curve, beside) for name, curve in curves.items() if all(one in curve for one in beside)
    }
    if rows > sizes[-1]:
        lines = _lines(direction, rows, sizes[-1])
        runs = _LINE.format(sizes[-1]) if lines else _MOST.format(sizes[-1])
        seconds = lines or seconds
    if not seconds:
        return None
    best = min(sorted(seconds), key=seconds.__getitem__)
    leading = [case for size in beside for case in not_slower([of[size].case for of in curves.values() if size in of])]
    alike = sorted({case.transport for case in leading} - {best})
    unsure = any(case.interval is None for case in leading)
    known = runs != _MOST.format(sizes[-1])
    return AtRows(direction, best, seconds[best] if known else None, runs, tuple(alike), unsure)


def table(found: Iterable[AtRows], rows: int | None, network: Mapping[str, str]) -> Table:
    """Return the answers as one table: for so many rows, or None for the most that were run; over a network, if any."""
    listed = list(found)
    lines = tuple(
        (route(one.direction), _named(one), significant(one.seconds), one.runs, _beside(one)) for one in listed
    )
    of_rows = f"{rows:,} row{'s' if rows > 1 else ''}" if rows else "the most rows that were run"
    over = " and ".join(described(name, value) for name, value in network.items() if value != "0")
    title = f"The fastest transport for {of_rows}" + (f" over {over}" if over else "")
    said = legend(of_size.case.lossy for one in listed for of_size in one.direction.curves[one.transport].values())
    notes = (_NOTE, *([said] if said else []))
    return Table(title, _HEAD, lines, notes, wide=frozenset({0, 1, 3, 4}), names=frozenset({1, 4}))


def _sizes_for(rows: int, sizes: Sequence[int]) -> tuple[list[int], str]:
    """Return the one or two sizes that some rows are read from, and how."""
    if rows in sizes:
        return [rows], "this size"
    after = bisect_right(sizes, rows)
    if not after:
        return [sizes[0]], f"{sizes[0]:,} rows, the fewest"
    if after == len(sizes):
        return [sizes[-1]], ""
    low, high = sizes[after - 1], sizes[after]
    return [low, high], f"{low:,} and {high:,} rows, interpolated"


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
    every = one.direction.curves[one.transport].values()
    return marked(one.transport, {kind: fate for of_size in every for kind, fate in of_size.case.lossy.items()})
