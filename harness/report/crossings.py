"""Where the fastest transport of a direction changes with the rows, and how sure that is. Pure.

At each number of rows that was run, those that are not shown to be slower than anybody (rank 1 among the transports
whose values came back exact; see `ranks`) may be the fastest. A direction is told with the fewest transports that are
among them wherever they stand for it: so a change that no run shows is none. Between two of them the seconds are taken
to be straight between the medians of neighbouring sizes, which is exact where a call costs a fixed time and each row
the same; they cross at the last number of rows where the second one becomes the faster. The interval is the middle of
the crossings of times drawn within the interval of each size. It may be open: beyond what was run nothing is known.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from harness.report.curves import Curve, Direction
from harness.report.intervals import Interval, around, draws, draws_of, middle, slower
from harness.report.ranks import places
from harness.report.summary import Summary


@dataclass(frozen=True)
class Span:
    """The numbers of rows, from first to last, at all of which one transport is not shown to be slower than anybody.

    `ties` are the other such transports at some of these sizes, by id, with those sizes. `unsure` says that one of all
    these had so few runs of a size that its median shows nothing.
    """

    transport: str
    sizes: tuple[int, ...]
    ties: Mapping[str, tuple[int, ...]]
    unsure: bool


@dataclass(frozen=True)
class Crossing:
    """Where the transport of one span gives way to that of the next.

    `rows` is where their medians cross, 0 where the second is faster from the smallest size on, infinite where it is
    not faster at the largest, None where they were not run at the same sizes. `interval` is None where the run says
    nothing of its scatter. `shown` says that each is shown to be faster than the other at a size of its own span.
    """

    before: str
    after: str
    rows: float | None
    interval: Interval | None
    shown: bool


@dataclass(frozen=True)
class Winners:
    """The fastest transports of a direction from the fewest rows to the most, and the crossings between them.

    `alone` says that only one transport brings every value back exact, so that nobody competes with it.
    """

    direction: Direction
    sizes: tuple[int, ...]
    spans: tuple[Span, ...]
    crossings: tuple[Crossing, ...]
    alone: bool


def winners(direction: Direction) -> Winners | None:
    """Return who is fastest at which rows; None where no transport is exact, or there is one number of rows alone."""
    curves = direction.exact
    sizes = tuple(sorted({rows for curve in curves.values() for rows in curve}))
    if len(sizes) < 2:
        return None
    spans = _spans(sizes, curves)
    crossings = [_crossing(direction.name, one, other, curves) for one, other in pairwise(spans)]
    return Winners(direction, sizes, tuple(spans), tuple(crossings), len(curves) == 1)


def not_slower(cases: Sequence[Summary]) -> list[Summary]:
    """Return those of some cases of one table that are not shown to be slower than another (rank 1), by median."""
    ordered = sorted(cases, key=lambda case: (case.took, case.transport))
    return [case for case, (rank, _) in zip(ordered, places(ordered), strict=True) if rank == 1]


def crossing(sizes: Sequence[int], first: Any, second: Any) -> Any:
    """Return the rows from which on the second is the faster, where both cost straight lines between `sizes`.

    `first` and `second` are seconds, arrays whose last axis goes over `sizes` in their order; what comes back has their
    shape without it. It is 0 where the second is faster at all sizes, infinite where it is not at the last one.
    """
    import numpy as np

    ahead = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)  # above 0: the second is faster
    rows = np.asarray(sizes, dtype=float)
    behind = ahead <= 0
    count = len(rows)
    last = count - 1 - np.argmax(behind[..., ::-1], axis=-1)  # the last size at which it is not
    here = np.minimum(last, count - 2)[..., None]
    low, high = (np.take_along_axis(ahead, at, -1)[..., 0] for at in (here, here + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        at = rows[here[..., 0]] + (rows[here[..., 0] + 1] - rows[here[..., 0]]) * (-low / (high - low))
    return np.where(~behind.any(-1), 0.0, np.where(last == count - 1, math.inf, at))


def _spans(sizes: Sequence[int], curves: Mapping[str, Curve]) -> list[Span]:
    """Cover the sizes with the fewest spans: each as long as one transport may be the fastest at all of it."""
    leading = [_leading(rows, curves) for rows in sizes]
    found, start = [], 0
    while start < len(sizes):
        able, end = set(leading[start]), start + 1
        while end < len(sizes) and able & set(leading[end]):
            able &= set(leading[end])
            end += 1
        part = tuple(sizes[start:end])
        best = min(sorted(able), key=lambda name: _mean_ratio(name, part, curves))
        found.append(_span(best, part, leading[start:end], curves))
        start = end
    return found


def _leading(rows: int, curves: Mapping[str, Curve]) -> list[str]:
    return [case.transport for case in not_slower([of[rows] for of in curves.values() if rows in of])]


def _mean_ratio(name: str, sizes: Sequence[int], curves: Mapping[str, Curve]) -> float:
    """Return how many times as long as the smallest median one takes, on the geometric mean over some sizes."""
    best = [min(of[rows].took for of in curves.values() if rows in of) for rows in sizes]
    return statistics.geometric_mean(curves[name][rows].took / least for rows, least in zip(sizes, best, strict=True))


def _span(name: str, sizes: tuple[int, ...], leading: Sequence[Sequence[str]], curves: Mapping[str, Curve]) -> Span:
    ties = {
        other: tuple(rows for rows, names in zip(sizes, leading, strict=True) if other in names)
        for other in sorted({other for names in leading for other in names} - {name})
    }
    unsure = any(
        curves[one][rows].estimate is None for rows, names in zip(sizes, leading, strict=True) for one in {name, *names}
    )
    return Span(name, sizes, ties, unsure)


def _crossing(name: str, one: Span, other: Span, curves: Mapping[str, Curve]) -> Crossing:
    import numpy as np

    before, after = curves[one.transport], curves[other.transport]
    sizes = [rows for rows in (*one.sizes, *other.sizes) if rows in before and rows in after]
    shown = any(_faster(before, after, rows) for rows in one.sizes) and any(
        _faster(after, before, rows) for rows in other.sizes
    )
    if len(sizes) < 2 or sizes[-1] not in other.sizes:
        return Crossing(one.transport, other.transport, None, None, shown)
    medians = [[curve[rows].took for rows in sizes] for curve in (before, after)]
    at = float(crossing(sizes, *medians))
    interval = None
    times = [[found for rows in sizes if (found := curve[rows].estimate)] for curve in (before, after)]
    if all(len(of) == len(sizes) for of in times):
        source = draws_of(f"{name}/{one.transport}/{other.transport}")
        drawn = [np.stack([draws(found, source) for found in of], axis=-1) for of in times]
        interval = around(at, middle(crossing(sizes, *drawn)))
    return Crossing(one.transport, other.transport, at, interval, shown)


def _faster(one: Curve, other: Curve, rows: int) -> bool:
    """Say whether the first is shown to be faster than the second at so many rows."""
    if rows not in one or rows not in other:
        return False
    return slower(other[rows].estimate, one[rows].estimate)
