"""Where the fastest transport of a direction changes with the rows, and the costs of calls and rows.

At each measured number of rows, several transports may be the fastest: the exact ones of rank 1. No other transport is
shown to beat these. A direction names as few of them as possible, so it never reports a change that no run shows. Two
curves are straight lines in seconds between the medians of neighbouring sizes. They cross at the last number of rows
where the second one becomes the faster. The interval of a crossing comes from times drawn within the interval of each
size (see `intervals`). It may be open, because the lab knows nothing beyond the measured sizes.

The cost of a call is Hockney's model, seconds = fixed + marginal x rows (the benchmark RINF1). A transport reaches half
of its largest rate at fixed / marginal rows. The lab fits a generalized linear model to the medians at each number of
rows, by iteratively reweighted least squares. Its coefficient of variation is constant. See P. McCullagh & J. A.
Nelder, Generalized Linear Models, 2nd ed. 1989, chapter 8. An error counts as a share of the line's value. Neither cost
is below zero. Intervals are the middle of the lines through times drawn in the same way. `off` says how far a transport
is from its straight line.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from harness.model import label
from harness.report.figures import (
    described,
    in_order,
    legend,
    marked,
    route,
    significant,
    span,
    times,
    varying,
)
from harness.report.intervals import Array, Estimate, Interval, around, draws, draws_of, middle, slower
from harness.report.summary import Summary, competes, direction_order, is_exact, places
from harness.report.table import Table
from harness.suites.suite import Suite

Curve = Mapping[int, Summary]  # by the number of rows, fewest first


@dataclass(frozen=True)
class Direction:
    """Where data come from and go to, and the curves (by id) of the transports that compete there.

    `parameters` are those that all cases share, without rows; `dataset` is the name of their data.
    """

    system: str
    operation: str
    frame: str
    dataset: str
    parameters: Mapping[str, str]
    curves: Mapping[str, Curve]

    @property
    def exact(self) -> dict[str, Curve]:
        """The curves of the transports that return every value exactly, at the sizes where they do."""
        kept = {name: {rows: one for rows, one in of.items() if is_exact(one)} for name, of in self.curves.items()}
        return {name: of for name, of in kept.items() if of}

    @property
    def name(self) -> str:
        """The key that identifies it in its run; the draws of intervals go by it."""
        return "/".join((self.system, self.operation, self.frame, self.dataset, label(self.parameters)))


_Where = tuple[str, str, str, str, tuple[tuple[str, str], ...]]  # system, operation, frame, dataset, other parameters


def directions(summaries: Sequence[Summary], experiments: Iterable[str]) -> list[Direction]:
    """Return the directions of some experiments: pandas first, databases in their order, writes first.

    Cases of one transport that differ only in their rows make one curve, even across experiments. Bounds, controls and
    cases without an ok run have no curve.
    """
    wanted = set(experiments)
    found: dict[_Where, dict[str, dict[int, Summary]]] = defaultdict(lambda: defaultdict(dict))
    for case in summaries:
        if case.experiment in wanted and competes(case):
            rest = tuple((name, value) for name, value in case.parameters.items() if name != "rows")
            where = (case.system, case.operation, case.frame, case.dataset, rest)
            found[where][case.transport][case.rows or 0] = case
    ordered = sorted(found, key=lambda at: (*direction_order(at[0], at[1], at[2]), at[3], in_order(dict(at[4]))))
    return [
        Direction(
            at[0],
            at[1],
            at[2],
            at[3],
            dict(at[4]),
            {name: dict(sorted(of.items())) for name, of in sorted(found[at].items())},
        )
        for at in ordered
    ]


# A curve that is off by more is no line: the lab gives no cost of a call or a row for it.
STRAIGHT = 1.25
_ROUNDS, _LEAST = 20, 1e-3  # of the fit; and the least share of the measured seconds that a line may give
FEWEST_SIZES = 4  # numbers of rows: two or three do not show whether a curve is a line


@dataclass(frozen=True)
class Cost:
    """The cost of a transport: `fixed` seconds a call and `marginal` seconds a row, each with its interval.

    Intervals are None if the scatter is unknown. `off` is the largest factor between the line and a median: 1.1 is
    10 %. `sizes` are the numbers of rows.
    """

    transport: str
    direction: Direction
    fixed: float
    marginal: float
    fixed_interval: Interval | None
    marginal_interval: Interval | None
    off: float
    sizes: tuple[int, ...]

    @property
    def half_rate_rows(self) -> float | None:
        """The rows at which half of the largest rate is reached; None where rows cost nothing."""
        return self.fixed / self.marginal if self.marginal else None

    @property
    def told(self) -> bool:
        """Whether its transport is exact at all sizes, and its costs fit a line."""
        return self.off <= STRAIGHT and self.sizes == tuple(self.direction.exact.get(self.transport, ()))

    def seconds(self, rows: float) -> float:
        """Return the line's seconds for a number of rows."""
        return self.fixed + self.marginal * rows


def costs(found: Iterable[Direction]) -> list[Cost]:
    """Return the costs of each transport that has at least FEWEST_SIZES numbers of rows, in the order of directions."""
    return [
        _cost(name, direction, curve)
        for direction in found
        for name, curve in direction.curves.items()
        if len(curve) >= FEWEST_SIZES
    ]


def fitted(sizes: Sequence[float], seconds: ArrayLike) -> tuple[Array, Array]:
    """Return fixed and marginal cost of the lines that `seconds` scatter about by the same share at all sizes.

    `seconds` are an array whose last axis goes over `sizes`, all above 0; each cost has its shape without that axis.
    """
    times, rows = np.asarray(seconds, dtype=float), np.asarray(sizes, dtype=float) / max(sizes)
    line = times
    for _ in range(_ROUNDS):
        fixed, slope = _weighted(rows, times, 1 / line**2)
        # Half of the step: near zero the weights would otherwise make the line oscillate.
        line = np.sqrt(line * np.maximum(fixed[..., None] + slope[..., None] * rows, times * _LEAST))
    return fixed, slope / max(sizes)


def _weighted(rows: Array, times: Array, weights: Array) -> tuple[Array, Array]:
    """Return the two costs, not below zero, by weighted least squares."""
    ones, both, eachs = weights.sum(-1), (weights * rows).sum(-1), (weights * rows * rows).sum(-1)
    of_one, of_each = (weights * times).sum(-1), (weights * rows * times).sum(-1)
    spread = ones * eachs - both * both
    fixed = (eachs * of_one - both * of_each) / spread
    slope = (ones * of_each - both * of_one) / spread
    # All entries are above 0, so that both cannot be below 0. If one is, it is 0 in the best line.
    falls, below = slope < 0, fixed < 0
    return (
        np.where(below, 0.0, np.where(falls, of_one / ones, fixed)),
        np.where(falls, 0.0, np.where(below, of_each / eachs, slope)),
    )


def _cost(name: str, direction: Direction, curve: Curve) -> Cost:
    sizes = tuple(curve)
    medians = np.array([case.took for case in curve.values()])
    fixed, marginal = map(float, fitted(sizes, medians))
    line = fixed + marginal * np.asarray(sizes)
    ends: tuple[Interval | None, Interval | None] = (None, None)
    known = tuple(case.estimate for case in curve.values() if case.estimate)
    if len(known) == len(sizes):
        drawn = _intervals(f"{direction.name}/{name}", sizes, known)
        # The line through the medians of all runs is not among the drawn ones, and may be outside all of these.
        ends = (around(fixed, drawn[0]), around(marginal, drawn[1]))
    off = float(np.max(np.maximum(line / medians, medians / line)))
    return Cost(name, direction, fixed, marginal, *ends, off, sizes)


@lru_cache(maxsize=1_000)  # a report asks several times: for its sentences, its tables and its pictures
def _intervals(name: str, sizes: tuple[int, ...], times: tuple[Estimate, ...]) -> tuple[Interval, Interval]:
    source = draws_of(name)
    fixed, marginal = fitted(sizes, np.stack([draws(one, source) for one in times], axis=-1))
    return middle(fixed), middle(marginal)


@dataclass(frozen=True)
class Span:
    """The numbers of rows, from first to last, at all of which no transport is shown to be faster than this one.

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

    `rows` is where their medians cross. It is 0 if the second is faster from the smallest size on, and infinite if it
    is not faster at the largest. It is None if the two did not run at the same sizes. `interval` is None if the run
    says nothing of its scatter. `shown` says that each is shown to be faster than the other at a size of its span.
    """

    before: str
    after: str
    rows: float | None
    interval: Interval | None
    shown: bool


@dataclass(frozen=True)
class Winners:
    """The fastest transports of a direction from the fewest rows to the most, and the crossings between them.

    `alone` says that only one transport returns every value exactly, so that no other competes with it.
    """

    direction: Direction
    sizes: tuple[int, ...]
    spans: tuple[Span, ...]
    crossings: tuple[Crossing, ...]
    alone: bool


def winners(direction: Direction) -> Winners | None:
    """Return the fastest transport by rows; None if no transport is exact, or the run has only one number of rows."""
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


def crossing(sizes: Sequence[int], first: ArrayLike, second: ArrayLike) -> Array:
    """Return the rows from which on the second is the faster, where both cost straight lines between `sizes`.

    `first` and `second` are seconds, arrays whose last axis goes over `sizes` in their order. The result has their
    shape without that axis. It is 0 if the second is faster at all sizes, infinite if it is not at the last one.
    """
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
    leading = [
        [case.transport for case in not_slower([of[rows] for of in curves.values() if rows in of])] for rows in sizes
    ]
    found, start = [], 0
    while start < len(sizes):
        able, end = set(leading[start]), start + 1
        while end < len(sizes) and able & set(leading[end]):
            able &= set(leading[end])
            end += 1
        part = tuple(sizes[start:end])
        best = min(sorted(able), key=lambda name: statistics.geometric_mean(curves[name][rows].took for rows in part))
        found.append(_span(best, part, leading[start:end], curves))
        start = end
    return found


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
    known = [[found for rows in sizes if (found := curve[rows].estimate)] for curve in (before, after)]
    if all(len(of) == len(sizes) for of in known):
        source = draws_of(f"{name}/{one.transport}/{other.transport}")
        drawn = [np.stack([draws(found, source) for found in of], axis=-1) for of in known]
        interval = around(at, middle(crossing(sizes, *drawn)))
    return Crossing(one.transport, other.transport, at, interval, shown)


def _faster(one: Curve, other: Curve, rows: int) -> bool:
    """Say whether the first is shown to be faster than the second at a number of rows."""
    if rows not in one or rows not in other:
        return False
    return slower(other[rows].estimate, one[rows].estimate)


_NAMED = 3  # transports in a cell; the tables of each size have the others
_SPANS = (
    "the fewest transports that are not shown to be slower than anybody at the rows of their line; next to them others "
    f"that are not either: the {_NAMED} at most rows by name",
    "faster from: the rows at which the medians of this transport and of the one above cross, straight lines between "
    "the sizes that were run; the interval: docs/explanation/suites/crossings.md",
)
_COST_NOTES = (
    "the straight line through the medians, whose errors count as shares of it, with 95 % intervals "
    "(docs/explanation/suites/crossings.md)",
    "half rate at: the rows at which half of the largest rate is reached, fixed / marginal",
    "off by: how many times as large as the other the line or a median is at most; where that is much, the transport "
    "does not cost as a line says, and neither figure holds at the sizes in between",
)


@dataclass(frozen=True)
class Curves:
    """Conclusions from the curves of a run: the winners of each direction, and the costs of each transport."""

    winners: tuple[Winners, ...]
    costs: tuple[Cost, ...]

    @property
    def directions(self) -> list[Direction]:
        """All directions that something is said of."""
        return [*(one.direction for one in self.winners), *(one.direction for one in self.costs)]


def curves(suite: Suite, summaries: Sequence[Summary]) -> Curves:
    """Return the conclusions from curves, for the experiments whose crossings the suite requests."""
    found = directions(summaries, suite.crossings.experiments) if suite.crossings else []
    return Curves(tuple(filter(None, map(winners, found))), tuple(costs(found)))


def crossing_tables(found: Curves) -> tuple[list[Table], list[Table]]:
    """Return the table of the fastest transports by rows and the table of costs, if they have any row."""
    return [fastest(found)] if found.winners else [], [_costs(found)] if found.costs else []


def many(rows: float, of: Winners) -> str:
    """Return a number of rows to two digits: `2,300 rows`; beyond the sizes that were run only that."""
    if not rows:
        return f"below {described('rows', str(of.sizes[0]))}"
    beyond = math.isinf(rows)
    words = described("rows", str(of.sizes[-1] if beyond else round(float(f"{rows:.2g}"))))
    return f"beyond {words}" if beyond else words


def ends(interval: Interval, of: Winners) -> str:
    """Return the interval of a crossing."""
    low, high = interval
    if not low or math.isinf(high) or low == high:
        return f"{many(low, of)} to {many(high, of)}"
    return f"{many(low, of).removesuffix(' rows').removesuffix(' row')} to {many(high, of)}"


def _sizes(sizes: Sequence[int]) -> str:
    *first, last = (f"{rows:,}" for rows in sizes)
    return (f"{', '.join(first)} and {last}" if first else last) + (" row" if tuple(sizes) == (1,) else " rows")


def _least(every: Sequence[Cost]) -> Iterator[tuple[int, int]]:
    """Yield the cells of the lowest cost of a call and of a row in each direction, and those not shown to be higher.

    Only exact transports whose costs fit a line count.
    """
    for direction in {id(one.direction): one.direction for one in every}.values():
        places = [place for place, one in enumerate(every) if one.told and one.direction is direction]
        for column, of in ((2, "fixed"), (4, "marginal")):
            if len(places) > 1:
                first = min(places, key=lambda place: getattr(every[place], of))
                interval = getattr(every[first], f"{of}_interval")
                for place in places:
                    its = getattr(every[place], f"{of}_interval")
                    if place == first or (interval and its and its[0] <= interval[1]):
                        yield place, column


def subject(one: Direction, among: Sequence[Direction]) -> str:
    """Name a direction: its two ends, and the data and parameters that differ among the directions."""
    words = [route(one)]
    if len({other.dataset for other in among}) > 1:
        words.append(one.dataset)
    apart = varying([other.parameters for other in among])
    return ", ".join([*words, *(described(name, value) for name, value in one.parameters.items() if name in apart)])


def fastest(found: Curves, named: Callable[[str], str] = str) -> Table:
    """Return the table of the fastest transports by rows; `named` names them."""
    rows = []
    for one in found.winners:
        for part, crossing in zip(one.spans, [None, *one.crossings], strict=True):
            at, between = "", ""
            if crossing and crossing.rows is not None and crossing.interval is not None:
                at, between = many(crossing.rows, one), ends(crossing.interval, one)
                between += "" if crossing.shown else ", not shown"
            elif crossing:
                at = "not known"
            often = sorted(part.ties.items(), key=lambda item: -len(item[1]))
            said = [f"{named(name)} at {_sizes(sizes)}" for name, sizes in often[:_NAMED]]
            said += [f"{len(often) - _NAMED} more"] if len(often) > _NAMED else []
            name = named(part.transport) + (" ?" if part.unsure else "")
            ties = "; ".join(said) or ("the only exact one" if one.alone else "")
            rows.append((subject(one.direction, found.directions), _sizes(part.sizes), name, at, between, ties))
    unsure = any(part.unsure for one in found.winners for part in one.spans)
    notes = (*_SPANS, *(["? so few runs of a size show nothing: by the medians alone"] if unsure else []))
    head = ("direction", "run at", "fastest", "faster from", "interval", "not shown slower")
    words, ids = frozenset(range(len(head))), frozenset({2, 5})
    return Table(
        "Which transport is fastest at which rows",
        head,
        tuple(rows),
        notes,
        wide=words,
        names=ids,
        droppable=((5,), (1,), (4,)),
    )


def _costs(found: Curves) -> Table:
    rows = tuple(
        (
            subject(one.direction, found.directions),
            one.transport,
            significant(one.fixed * 1e3),
            span(one.fixed_interval, 1e3),
            significant(one.marginal * 1e6),
            span(one.marginal_interval, 1e6),
            "" if one.half_rate_rows is None else significant(float(f"{one.half_rate_rows:.2g}")),
            times(one.off),
        )
        for one in found.costs
    )
    head = ("direction", "transport", "fixed ms", "95 %", "marginal µs", "95 %", "half rate at, rows", "off by")
    title = "What a call costs, and what each row adds"
    return Table(
        *(title, head, rows, _COST_NOTES),
        wide=frozenset({0, 1}),
        best=frozenset(_least(found.costs)),
        droppable=((7,), (6,), (3, 5)),
    )


_AT_ROWS = ("direction", "fastest", "seconds", "from runs of", "could be as fast")
_LINE = "up to {:,} rows, EXTRAPOLATED"
_MOST = "{:,} rows, the most; no transport follows a line"
_NOTE = "the fastest transport whose values all came back exact; could be as fast: at the sizes of these runs"


@dataclass(frozen=True)
class AtRows:
    """The fastest transport of a direction at some rows: its seconds, the runs they come from, and its equals.

    `seconds` are None if the transport is the fastest at the most measured rows, because the lab knows nothing beyond.
    `alike` are the transports that are not shown to be slower at the sizes of `runs`. `unsure` says that the runs were
    too few to show anything.
    """

    direction: Direction
    transport: str
    seconds: float | None
    runs: str
    alike: tuple[str, ...]
    unsure: bool


def at_rows(direction: Direction, rows: int) -> AtRows | None:
    """Return the fastest at a number of rows; None if no transport is exact, or if the run does not show it."""
    curves = direction.exact
    sizes = sorted({size for curve in curves.values() for size in curve})
    if not sizes:
        return None
    neighbours, runs = _sizes_for(rows, sizes)
    seconds = {
        name: float(np.interp(rows, neighbours, [curve[one].took for one in neighbours]))
        for name, curve in curves.items()
        if all(one in curve for one in neighbours)
    }
    if rows > sizes[-1]:
        lines = {one.transport: one.seconds(rows) for one in costs([direction]) if one.told and sizes[-1] in one.sizes}
        runs = _LINE.format(sizes[-1]) if lines else _MOST.format(sizes[-1])
        seconds = lines or seconds
    if not seconds:
        return None
    best = min(sorted(seconds), key=seconds.__getitem__)
    leading = [case for size in neighbours for case in not_slower([of[size] for of in curves.values() if size in of])]
    alike = sorted({case.transport for case in leading} - {best})
    unsure = any(case.estimate is None for case in leading)
    known = runs != _MOST.format(sizes[-1])
    return AtRows(direction, best, seconds[best] if known else None, runs, tuple(alike), unsure)


def at_rows_table(
    found: Iterable[AtRows], rows: int | None, network: Mapping[str, str], named: Callable[[str], str] = str
) -> Table:
    """Return the answers as one table: for a number of rows (None: the most of the run), and over a network, if any.

    `named` names transports.
    """
    lines, losses = [], []
    for one in found:
        every = [case.lossy for case in one.direction.curves[one.transport].values()]
        lossy = {kind: fate for of_size in every for kind, fate in of_size.items()}
        alike = ", ".join([*map(named, one.alike), *(["too few runs to tell"] if one.unsure else [])])
        name = marked(named(one.transport), lossy)
        lines.append((route(one.direction), name, significant(one.seconds), one.runs, alike))
        losses.append(lossy)
    of_rows = described("rows", str(rows)) if rows else "the most rows that were run"
    over = " and ".join(described(name, value) for name, value in network.items() if value != "0")
    title = f"The fastest transport for {of_rows}" + (f" over {over}" if over else "")
    notes = (_NOTE, *filter(None, [legend(losses)]))
    return Table(title, _AT_ROWS, tuple(lines), notes, wide=frozenset({0, 1, 3, 4}), names=frozenset({1, 4}))


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
