"""Where the fastest transport changes with the rows, and what calls and rows cost, as sentences and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.report.answer_tables import route
from harness.report.cells import significant, times
from harness.report.costs import STRAIGHT, Cost, costs
from harness.report.crossings import Crossing, Span, Winners, winners
from harness.report.curves import Direction, directions
from harness.report.intervals import Interval, called, overlap
from harness.report.points import described
from harness.report.summary import Summary
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import Suite

_NAMED = 3  # transports that are not shown slower and are named one by one
_SPANS = (
    "the fewest transports that are not shown to be slower than anybody at the rows of their line; others that are not "
    "either, at some of these rows, stand beside them",
    "faster from: the rows at which the medians of this transport and of the one above cross, straight lines between "
    "the sizes that were run; the interval is a bootstrap over the runs (docs/explanation/suites/crossings.md)",
)
_COSTS = (
    "the straight line through the medians, whose errors count as shares of it; intervals: bootstrap over the runs of "
    "each size (docs/explanation/suites/crossings.md)",
    "half rate at: the rows at which half of the largest rate is reached, fixed / marginal",
    "off by: how many times as large as the other the line or a median is at most; where that is much, the transport "
    "does not cost as a line says, and neither figure holds at the sizes in between",
)


@dataclass(frozen=True)
class Curves:
    """What the curves of a run come to: the winners of each direction, and the costs of each transport."""

    winners: tuple[Winners, ...]
    costs: tuple[Cost, ...]

    @property
    def directions(self) -> list[Direction]:
        """All directions that something is said of."""
        return [*(one.direction for one in self.winners), *(one.direction for one in self.costs)]


def curves(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary]) -> Curves:
    """Return what the curves of the experiments come to of which the suite wants crossings; nothing without."""
    found = directions(rows, summaries, suite.crossings.experiments) if suite.crossings else []
    return Curves(tuple(filter(None, map(winners, found))), tuple(costs(found)))


def said(found: Curves) -> list[str]:
    """Return a sentence for each direction about who is fastest where, and one about who costs the least."""
    return [*(_said_of(one, found) for one in found.winners), *_said_of_costs(found)]


def tables(found: Curves) -> list[Table]:
    """Return the table of who is fastest at which rows, and that of fixed and marginal costs."""
    return [*([_fastest(found)] if found.winners else []), *([_cost_table(found)] if found.costs else [])]


def many(rows: float, of: Winners) -> str:
    """Return a number of rows to two digits: `2,300 rows`; beyond what was run only that."""
    if not rows:
        return f"below {_rows(of.sizes[0])}"
    return f"beyond {_rows(of.sizes[-1])}" if math.isinf(rows) else _rows(float(f"{rows:.2g}"))


def _rows(number: float) -> str:
    return "1 row" if number == 1 else f"{number:,.0f} rows"


def _said_of(one: Winners, found: Curves) -> str:
    who = subject(one.direction, found.directions)
    if any(span.unsure for span in one.spans):
        medians = ", then of ".join(f"{span.transport} at {_sizes(span.sizes)}" for span in one.spans)
        return f"{who}: fewer than 3 runs of a size show no crossing; the smallest medians are of {medians}"
    first, *rest = one.spans
    parts = [f"{first.transport}{_until(one)}{_beside(one, first)}"]
    for crossing, span in zip(one.crossings, rest, strict=True):
        parts.append(f"then {span.transport}{_from(crossing, one)}{_beside(one, span)}")
    sure = "fastest" if not any(span.ties for span in one.spans) else "fastest, or not shown to be slower than it,"
    return f"{who}: {sure} is {', '.join(parts)}"


def _until(one: Winners) -> str:
    if one.crossings:
        return f" from {_rows(one.sizes[0])} on"
    where = f" from {one.sizes[0]:,} to {_rows(one.sizes[-1])}"
    return where + (", the only one whose values all came back exact" if one.alone else ": no crossing is shown")


def _from(crossing: Crossing, of: Winners) -> str:
    if crossing.rows is None or crossing.interval is None:
        return " (where they cross is not known: they were not run at the same sizes)"
    words = f" from {many(crossing.rows, of)} on ({interval_name(of)}: {ends(crossing.interval, of)})"
    return words if crossing.shown else f"{words}, which the runs do not show"


def ends(interval: Interval, of: Winners) -> str:
    """Return the interval of a crossing."""
    low, high = interval
    if not low or math.isinf(high) or low == high:
        return f"{many(low, of)} to {many(high, of)}"
    return f"{many(low, of).removesuffix(' rows').removesuffix(' row')} to {many(high, of)}"


def interval_name(of: Winners) -> str:
    """Return what the intervals of a direction may be called, by its size with the fewest runs."""
    counts = [len(one.seconds) for curve in of.direction.exact.values() for one in curve.values()]
    name = called(counts)
    return "95 % interval" if name == "95 %" else name


def _beside(of: Winners, span: Span) -> str:
    if not span.ties:
        return ""
    return f" (not shown slower: {_few([f'{name} at {_sizes(sizes)}' for name, sizes in span.ties.items()])})"


def _sizes(sizes: Sequence[int]) -> str:
    *first, last = (f"{rows:,}" for rows in sizes)
    return (f"{', '.join(first)} and {last}" if first else last) + (" row" if tuple(sizes) == (1,) else " rows")


def _said_of_costs(found: Curves) -> Iterator[str]:
    """Say of each direction who costs least a call and a row, among the exact ones that cost as a line says."""
    for place in dict.fromkeys(id(one.direction) for one in found.costs):
        every = [one for one in found.costs if id(one.direction) == place]
        among = [one for one in every if _told(one)]
        if len(among) > 1:
            call = _least([(one.transport, one.fixed, one.fixed_interval) for one in among], 1e3, "ms")
            row = _least([(one.transport, one.marginal, one.marginal_interval) for one in among], 1e6, "µs")
            who = subject(among[0].direction, found.directions)
            of = f"of the {len(among)} of {len(every)} that are exact and cost as a straight line says, "
            yield f"{who}: {of if len(among) < len(every) else ''}a call costs least with {call}; a row with {row}"


def _told(one: Cost) -> bool:
    return one.off <= STRAIGHT and len(one.direction.exact.get(one.transport, ())) == len(one.sizes)


def _least(among: Sequence[tuple[str, float, Interval | None]], units: float, unit: str) -> str:
    """Name whose cost is the least of some with their intervals, and those to whom no difference is shown."""
    (name, value, interval), *others = sorted(among, key=lambda one: one[1])
    if interval is None:
        return f"{name}, {significant(value * units)} {unit} (too few runs to tell)"
    near = [other for other, _, its in others if its is not None and overlap(interval, its)]
    alike = f"; no difference shown to {_few(near)}" if near else ""
    return f"{name}, {significant(value * units)} {unit} ({_both(interval, units)}{alike})"


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return "; ".join(names[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def subject(one: Direction, among: Sequence[Direction]) -> str:
    """Name a direction: where from and where to, and what of data and parameters not all directions share."""
    words = [route(one)]
    if len({other.dataset for other in among}) > 1:
        words.append(one.dataset)
    for name, value in one.parameters.items():
        if any(other.parameters.get(name) != value for other in among):
            words.append(described(name, value))
    return ", ".join(words)


def _fastest(found: Curves) -> Table:
    rows = []
    for one in found.winners:
        starts = [None, *one.crossings]
        for span, crossing in zip(one.spans, starts, strict=True):
            at, between = _located(crossing, one)
            beside = "; ".join(f"{name} at {_sizes(sizes)}" for name, sizes in span.ties.items())
            rows.append(
                (
                    subject(one.direction, found.directions),
                    _sizes(span.sizes),
                    span.transport + (" ?" if span.unsure else ""),
                    at,
                    between,
                    beside or ("the only exact one" if one.alone else ""),
                )
            )
    unsure = any(span.unsure for one in found.winners for span in one.spans)
    notes = (*_SPANS, *(["? fewer than 3 runs of a size: by the medians alone"] if unsure else []))
    head = ("from, to", "run at", "fastest", "faster from", "interval", "not shown slower")
    title, words = "Which transport is fastest at which rows", frozenset(range(len(head)))
    return Table(title, head, tuple(rows), notes, wide=words, names=frozenset({2, 5}))


def _located(crossing: Crossing | None, of: Winners) -> tuple[str, str]:
    """Return where a crossing is, and its interval; nothing of a first span, and not known without an interval."""
    if crossing is None:
        return "", ""
    if crossing.rows is None or crossing.interval is None:
        return "not known", ""
    return many(crossing.rows, of), ends(crossing.interval, of) + ("" if crossing.shown else ", not shown")


def _cost_table(found: Curves) -> Table:
    rows = tuple(
        (
            subject(one.direction, found.directions),
            one.transport,
            significant(one.fixed * 1e3),
            _both(one.fixed_interval, 1e3),
            significant(one.marginal * 1e6),
            _both(one.marginal_interval, 1e6),
            "" if one.half_rate_rows is None else significant(float(f"{one.half_rate_rows:.2g}")),
            times(one.off),
        )
        for one in found.costs
    )
    interval = called(one.fewest_runs for one in found.costs) or "interval"
    head = ("from, to", "transport", "fixed ms", interval, "marginal µs", interval, "half rate at, rows", "off by")
    title = "What a call costs, and what each row adds"
    return Table(title, head, rows, _COSTS, wide=frozenset({0, 1}), droppable=((7,), (6,), (3, 5)))


def _both(interval: Interval | None, unit: float) -> str:
    return "" if interval is None else "-".join(significant(end * unit) for end in interval)
