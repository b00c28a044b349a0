"""The tables of a report as texts, in no format yet: the terminal, Markdown and the page show the same ones.

Cases are grouped by experiment, system and operation. A group with one combination of parameters is a ranking; a group
with several is a grid of time, one of peak memory, and one of the author's figures where there are any.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from harness.model import Operation, Status
from harness.report import ranks, stability
from harness.report.cells import cells, legend, megabytes, name, significant, times, volume
from harness.report.details import DETAILS, detail_rows
from harness.report.failures import reasons
from harness.report.intervals import called
from harness.report.points import Point, in_common, points
from harness.report.summary import Summary
from harness.report.table import Table
from harness.systems import SYSTEMS

TITLES = {"parquet": "Parquet", "elt": "ELT"} | {name: system.title for name, system in SYSTEMS.items()}
_RANKING = ("#", "transport", "median s", "avg s", "rows/s", "min", "max", "peak MB")
OF_LIMIT = (
    "of limit: how near a transport comes to the fastest bound of this table, which has no rank: it is no transport"
)
_OF_OTHERS = (
    "of limit: how near a transport comes to the fastest bound of {} of as many rows, what the server does alone"
)
_OF_ENGINES = (
    "workers: of the transport's engine; without a number one process does it alone. Peak memory is that of the driver "
    "above its start and, with an engine, of all processes that it started"
)
_SET_OFF = "set off at a point: the transports of rank 1, none of which is shown to be faster than another there"
MARKED = "{}: the report's table of what each transport loses names them"
_AT_THE_LARGEST = {"anonymous": "peak_anon_bytes", "file-backed": "peak_file_bytes"}


def text_tables(summaries: Sequence[Summary]) -> list[Table]:
    """Return the tables of all summaries, which are in their order already."""
    several = len({summary.experiment for summary in summaries}) > 1
    found: list[Table] = []
    for key, members in groupby(summaries, key=lambda summary: summary.table):
        group = list(members)
        where = points(group)
        if len(where) == 1:
            found.append(_ranking(titled(*key) if several else titled("", *key[1:]), group, where[0]))
        else:
            found += _grids(titled(*key), group, where)
        if told := detail_rows(group, {point.label: point.name for point in where}):
            head, *lines = told
            title = f"{titled(*key)}: {DETAILS}, medians of {samples(group)}"
            found.append(Table(title, head, tuple(lines), wide=frozenset({0, 1})))
    return found


def titled(experiment: str, system: str = "", operation: str = "") -> str:
    """Return the title of a group of cases: `Growing file: Parquet scan`; nothing is said twice."""
    of_system = f"{TITLES.get(system, system.replace('_', ' '))} {operation}".strip()
    words = experiment.replace("_", " ")
    parts = [part for part in (words if words not in of_system else "", of_system) if part]
    return ": ".join(part[:1].upper() + part[1:] for part in parts)


def samples(cases: Sequence[Summary]) -> str:
    """Say how many runs the figures of these cases come from: `1 run`, `up to 3 runs`."""
    largest = max(case.n for case in cases)
    return f"up to {largest} runs" if largest > 1 else "1 run" if largest else "no ok run"


def _ranking(title: str, group: list[Summary], point: Point) -> Table:
    texts = [cells(summary) for summary in group]
    head = list(_RANKING)
    if any(text["published"] for text in texts):
        head += ["published", "ratio"]
    elif any(text["published s"] for text in texts):
        head += ["published s", "ratio"]
    if any(text["workers"] for text in texts):
        head.insert(2, "workers")
    bounded = any(text["of limit"] for text in texts)
    head += ["of limit", "values"] if bounded else ["values"]
    interval = called(case.n for case in group)
    size = f"{point.rows:,} rows" if point.rows is not None else ""
    extent = ", ".join(filter(None, (size, volume(point.bytes) if point.bytes is not None else "")))
    others = in_common([point.parameters], but={"rows"})
    conditions = ", ".join(filter(None, (extent, f"mean of {samples(group)}, by median time")))
    return Table(
        title=f"{title}: {conditions}",
        head=tuple(f"{name}, {interval}" if name == "median s" and interval else name for name in head),
        rows=tuple(tuple(text[column] for column in head) for text in texts),
        notes=(
            *((f"parameters: {others}",) if others else ()),
            *_of_limit(group),
            *_of_engines(group),
            *ranks.notes(group),
            *stability.note(group),
            *_marked(group),
            *reasons(group),
        ),
        wide=frozenset({1, len(head) - 1}),
        droppable=tuple(tuple(map(head.index, names)) for names in (("min", "max"), ("peak MB",), ("avg s",))),
    )


def _of_limit(group: list[Summary]) -> tuple[str, ...]:
    if not any(case.share_of_limit is not None for case in group):
        return ()
    operation = group[0].operation
    others = ranks.BOUNDED_BY.get(operation, operation)
    return (OF_LIMIT if others == operation else _OF_OTHERS.format(f"a {others}"),)


def _of_engines(group: list[Summary]) -> tuple[str, ...]:
    return (_OF_ENGINES,) if any(case.workers for case in group) else ()


def _marked(group: list[Summary]) -> tuple[str, ...]:
    said = legend(case.lossy for case in group)
    return (MARKED.format(said),) if said else ()


def _grids(title: str, group: list[Summary], where: list[Point]) -> list[Table]:
    grid = _Grid({(case.transport, case.label): case for case in group}, tuple(where))
    shared = in_common([point.parameters for point in where])
    notes = (
        *((f"the same at every point: {shared}",) if shared else ()),
        *_marked(group),
        *(("* not every run is ok",) if any(case.n and case.status != Status.OK for case in group) else ()),
        *((_SET_OFF,) if any(case.rank == 1 and case.tie == ranks.SHARED for case in group) else ()),
        *stability.note(group, {point.label: point.name for point in where}),
        *_conversions(group),
        *reasons(group, where),
    )
    medians = [case.took for case in group if case.n]
    unit, factor = ("milliseconds", 1e3) if medians and max(medians) < 1 else ("seconds", 1)
    time = f"{title}, median {unit} of {samples(group)}"
    found = [grid.table(time, grid.transports, lambda c: _median(c, factor), best="rank", notes=notes)]
    if any(case.peak_rss_bytes is not None for case in group):
        found.append(_memory(title, grid, samples(group)))
    return found + _shares(title, grid, group) + _authors(title, grid, group)


@dataclass(frozen=True)
class _Grid:
    """Cases by (transport, label); points from the smallest to the largest."""

    cases: dict[tuple[str, str], Summary]
    where: tuple[Point, ...]

    @property
    def transports(self) -> list[str]:
        """The transports, best at the largest point first; who has no figure there comes by the next smaller one.

        What one process does alone comes before all that an engine needs workers for.
        """
        engines = {transport: case.engine for (transport, _), case in sorted(self.cases.items())}

        def place(transport: str) -> tuple[bool, list[tuple[bool, float]]]:
            return bool(engines[transport]), [_missing_last(case) for case in reversed(self.across(transport))]

        return sorted(engines, key=place)

    def across(self, transport: str) -> list[Summary | None]:
        """Return a transport's case at every point."""
        return [self.cases.get((transport, point.label)) for point in self.where]

    def table(
        self,
        title: str,
        transports: Sequence[str],
        text: Callable[[Summary], str],
        best: str | None = None,
        notes: tuple[str, ...] = (),
    ) -> Table:
        """Return a table of one text a case, where the smallest values of the column `best` are the best."""
        across = [self.across(transport) for transport in transports]
        names = [next(name(case) for case in cases if case) for cases in across]
        return Table(
            title=title,
            head=("transport", *(point.name for point in self.where)),
            rows=tuple(
                (label, *(text(case) if case else "" for case in cases))
                for label, cases in zip(names, across, strict=True)
            ),
            notes=notes,
            best=frozenset(_smallest(across, best)) if best else frozenset(),
            droppable=tuple((place,) for place in range(1, len(self.where))),
        )


def _memory(title: str, grid: _Grid, runs: str) -> Table:
    """Return the grid of peaks, with the split into anonymous and file-backed pages at the largest point beside it."""
    table = grid.table(
        f"{title}, peak memory in MB above the start, largest of {runs}",
        grid.transports,
        lambda case: megabytes(case.peak_of_all_bytes) or _unless_ok(case),
        best="peak_of_all_bytes",
        notes=_of_engines(list(grid.cases.values())),
    )
    at_largest = [grid.across(transport)[-1] for transport in grid.transports]
    if not any(case and case.peak_anon_bytes is not None for case in at_largest):
        return table
    split = [
        tuple(megabytes(getattr(case, column)) if case else "" for column in _AT_THE_LARGEST.values())
        for case in at_largest
    ]
    note = (
        f"anonymous, file-backed: the peak of each at {grid.where[-1].name}; the two need not be at one moment. "
        "File-backed pages are those of mapped files (mmap): the system can take them back."
    )
    rows = tuple((*row, *parts) for row, parts in zip(table.rows, split, strict=True))
    return replace(table, head=(*table.head, *_AT_THE_LARGEST), rows=rows, notes=(note, *table.notes))


def _shares(title: str, grid: _Grid, group: list[Summary]) -> list[Table]:
    """Return the grid of how near loads or unloads come to the bounds, which stand in a table of their own."""
    if group[0].operation not in (Operation.LOAD, Operation.UNLOAD) or not (notes := _of_limit(group)):
        return []

    def text(case: Summary) -> str:
        return _unless_ok(case) if case.share_of_limit is None else f"{case.share_of_limit:.0%}"

    return [grid.table(f"{title}, share of the limit", grid.transports, text, notes=notes)]


def _authors(title: str, grid: _Grid, group: list[Summary]) -> list[Table]:
    """Return a table of the author's figures where there are any, each with how many times faster ours is."""
    by_rate = any(case.published_mean_rows_per_s is not None for case in group)
    column, unit = ("published_mean_rows_per_s", "rows/s") if by_rate else ("published_mean_seconds", "seconds")
    theirs = {case.transport for case in group if getattr(case, column) is not None}
    if not theirs:
        return []

    def text(case: Summary) -> str:
        return f"{significant(getattr(case, column))} {times(case.ratio_to_published)}".rstrip()

    heading = f"{title}, the author's mean {unit} (× how many times faster the mean here is)"
    note = "the machines differ: compare the order of the transports, not the figures"
    return [grid.table(heading, [t for t in grid.transports if t in theirs], text, notes=(note,))]


def _missing_last(case: Summary | None) -> tuple[bool, float]:
    median = case.median_seconds if case else None
    return median is None, median or 0.0


def _smallest(across: list[list[Summary | None]], column: str) -> list[tuple[int, int]]:
    """Return the cells (row, column of the table) of the smallest value at each point; ties are all best."""
    found = []
    for place, cases in enumerate(zip(*across, strict=True), start=1):
        values = {
            row: getattr(case, column) for row, case in enumerate(cases) if case and getattr(case, column) is not None
        }
        found += [(row, place) for row, value in values.items() if value == min(values.values())]
    return found


def _median(case: Summary, factor: float) -> str:
    if not case.n:
        return _unless_ok(case)
    marks = ("" if case.status == Status.OK else "*") + (stability.MARK if case.unstable else "")
    return significant(case.took * factor) + marks


def _unless_ok(case: Summary) -> str:
    return "" if case.n else str(case.status)


def _conversions(group: list[Summary]) -> list[str]:
    """Return one line for each fidelity that is not exact, with the transports it holds for."""
    found: dict[str, dict[str, None]] = {}
    for case in group:
        if case.fidelity not in ("", "exact"):
            found.setdefault(case.fidelity, {})[case.transport] = None
    return [f"{fidelity} ({', '.join(transports)})" for fidelity, transports in found.items()]
