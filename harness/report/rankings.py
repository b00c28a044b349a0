"""Every case of a run in tables: rankings, grids, all figures, failures, losses, and the author's figures.

An author's figures at other sizes than ours go with ours at the size nearest to them. Machines and sizes differ, so
seconds and bytes of the two sides cannot be compared. Multiples of the first transport of the author's list can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from harness.model import Fate, Operation, Status
from harness.report.figures import (
    CHANGES,
    REFUSES,
    as_printed,
    described,
    detail,
    detail_name,
    gigabytes,
    in_common,
    in_order,
    is_number,
    legend,
    megabytes,
    significant,
    times,
    titled,
    varying,
    volume,
)
from harness.report.summary import (
    BOUNDED_BY,
    SHARED,
    Point,
    Summary,
    case_name,
    points,
    rank_notes,
    rank_shown,
    with_interval,
)
from harness.report.table import Grid, Table
from harness.results.row import Row
from harness.suites.suite import PublishedFigure

NOT_OK = ("status", "reason", "transport", "experiment", "parameters", "passes")
MARKED = "{}: the report's table of what each transport loses names them"
DETAILS = "stages and rates"
_SHOWN = ("_seconds", "per_s")  # other tables already have all sizes
_FATES = (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)
_OF_LIMIT = "of limit: how near a transport comes to the fastest bound of this table, which has no rank"
_OF_OTHERS = (
    "of limit: how near a transport comes to the fastest bound of a {} of as many rows, what the server does alone"
)
_OF_ENGINES = (
    "workers: of the transport's engine; without a number one process does it alone. Peak memory is that of the driver "
    "above its start and, with an engine, of all processes that it started"
)
_SET_OFF = "set off at a point: the transports of rank 1, none of which is shown to be faster than another there"
_AT_THE_LARGEST = {"anonymous": "peak_anon_bytes", "file-backed": "peak_file_bytes"}


_Text = Callable[[Any], str]  # of a figure, or a whole summary


def _number(form: str) -> _Text:
    return lambda value: format(value, form)


# The columns of a ranking and of all figures of a case: head, value from a summary, and format.
_RANKING: tuple[tuple[str, str, _Text], ...] = (
    ("workers", "workers", str),
    ("median s", "", with_interval),
    ("avg s", "mean_seconds", _number(".4f")),
    ("rows/s", "mean_rows_per_s", _number(",.0f")),
    ("min", "min_rows_per_s", _number(",.0f")),
    ("max", "max_rows_per_s", _number(",.0f")),
    ("peak MB", "peak_of_all_bytes", megabytes),
    ("published", "published_mean_rows_per_s", _number(",.0f")),
    ("published s", "published_mean_seconds", significant),
    ("ratio", "ratio_to_published", _number(".2f")),
    ("of limit", "share_of_limit", _number(".0%")),
)
_OPTIONAL = ("workers", "published", "published s", "ratio", "of limit")
_EVERY: tuple[tuple[str, str, _Text], ...] = (
    ("runs", "n", str),
    ("median s", "median_seconds", significant),
    ("interval from", "median_low_seconds", significant),
    ("interval to", "median_high_seconds", significant),
    ("mean s", "mean_seconds", significant),
    ("std s", "std_seconds", significant),
    ("min s", "min_seconds", significant),
    ("max s", "max_seconds", significant),
    ("mean rows/s", "mean_rows_per_s", significant),
    ("connect s", "median_connect_seconds", significant),
    ("CPU s", "median_cpu_seconds", significant),
    ("peak MB", "peak_rss_bytes", megabytes),
    ("workers' peak MB", "workers_peak_rss_bytes", megabytes),
    ("anonymous MB", "peak_anon_bytes", megabytes),
    ("file-backed MB", "peak_file_bytes", megabytes),
    ("of limit", "share_of_limit", _number(".0%")),
    ("published s", "published_mean_seconds", as_printed),
    ("published rows/s", "published_mean_rows_per_s", as_printed),
    ("ratio", "ratio_to_published", significant),
)


def _cell(case: Summary, of: str, text: _Text) -> str:
    value = getattr(case, of) if of else case
    return "" if value is None else text(value)


def _values(case: Summary) -> str:
    """Describe the returned values, and the ends of the runs if not all of them are ok."""
    values = case.fidelity.partition(":")[0]
    return values if case.status == Status.OK else f"{values} ({case.status})" if values else case.status


def rankings(summaries: Sequence[Summary]) -> list[Table]:
    """Return the tables of all summaries, which are in their order already."""
    several = len({summary.experiment for summary in summaries}) > 1
    found: list[Table] = []
    for (experiment, *key), members in groupby(summaries, key=attrgetter("table")):
        group = list(members)
        where, title = points(group), titled(experiment, *key)
        if len(where) == 1:
            found.append(_ranking(title if several else titled("", *key), group, where[0]))
        else:
            found += _grids(title, group, where)
        head, rows = detail_rows(group, {point.label: point.name for point in where})
        if rows:
            title = f"{title}: {DETAILS}, medians of {_samples(group)}"
            found.append(Table(title, head, rows, wide=frozenset({0, 1}), minor=True))
    return found


def _samples(cases: Sequence[Summary]) -> str:
    """Say how many runs the figures of these cases come from: `1 run`, `up to 3 runs`."""
    largest = max(case.n for case in cases)
    return f"up to {largest} runs" if largest > 1 else "1 run" if largest else "no ok run"


def _ranking(title: str, group: list[Summary], point: Point) -> Table:
    columns = [
        column for column in _RANKING if column[0] not in _OPTIONAL or any(_cell(one, *column[1:]) for one in group)
    ]
    if any(column[0] == "published" for column in columns):  # a rate says more than seconds
        columns = [column for column in columns if column[0] != "published s"]
    head = ["#", "transport", *(name for name, *_ in columns), "values"]
    rows = [
        (rank_shown(one), case_name(one), *(_cell(one, *column[1:]) for column in columns), _values(one))
        for one in group
    ]
    sure, others = any(case.interval for case in group), in_common([point.parameters], but={"rows"})
    size = f"{point.rows:,} rows" if point.rows is not None else ""
    conditions = (
        size,
        "" if point.bytes is None else volume(point.bytes),
        f"mean of {_samples(group)}, by median time",
    )
    return Table(
        title=f"{title}: {', '.join(filter(None, conditions))}",
        head=tuple(f"{name}, 95 %" if name == "median s" and sure else name for name in head),
        rows=tuple(rows),
        notes=(
            *((f"parameters: {others}",) if others else ()),
            *_bounds_and_engines(group),
            *rank_notes(group),
            *_marked(group),
            *reasons(group),
        ),
        wide=frozenset({1, len(head) - 1}),
        droppable=tuple(tuple(map(head.index, names)) for names in (("min", "max"), ("peak MB",), ("avg s",))),
    )


def _bounds_and_engines(group: Sequence[Summary]) -> list[str]:
    notes, operation = [], group[0].operation
    if any(case.share_of_limit is not None for case in group):
        others = BOUNDED_BY.get(operation, operation)
        notes.append(_OF_LIMIT if others == operation else _OF_OTHERS.format(others))
    return [*notes, *([_OF_ENGINES] if any(case.workers for case in group) else [])]


def _marked(group: Sequence[Summary]) -> list[str]:
    said = legend(case.lossy for case in group)
    return [MARKED.format(said)] if said else []


def _grids(title: str, group: list[Summary], where: list[Point]) -> list[Table]:
    """Return a table of the medians of each transport at each point, and the tables of its further figures."""
    grid = _grid(group, where)
    shared = in_common([point.parameters for point in where])
    converted: dict[str, dict[str, None]] = {}
    for case in group:
        if case.fidelity not in ("", "exact"):
            converted.setdefault(case.fidelity, {})[case.transport] = None
    notes = (
        *((f"the same at every point: {shared}",) if shared else ()),
        *_marked(group),
        *(("* not every run is ok",) if any(case.n and case.status != Status.OK for case in group) else ()),
        *((_SET_OFF,) if any(case.rank == 1 and case.tie == SHARED for case in group) else ()),
        *(f"{fidelity} ({', '.join(transports)})" for fidelity, transports in converted.items()),
        *reasons(group, where),
    )
    quick = max((case.took for case in group if case.n), default=1) < 1

    def median(case: Summary) -> str:
        mark = "" if case.status == Status.OK else "*"
        return significant(case.took * (1e3 if quick else 1)) + mark if case.n else _unless_ok(case)

    time = f"{title}, median {'milliseconds' if quick else 'seconds'} of {_samples(group)}"
    found = [_table(grid, time, median, notes, lambda case: case.rank == 1)]
    if any(case.peak_rss_bytes is not None for case in group):
        found.append(_memory(title, grid, group, where[-1]))
    if group[0].operation in (Operation.LOAD, Operation.UNLOAD) and any(
        one.share_of_limit is not None for one in group
    ):
        found.append(
            _table(
                grid,
                f"{title}, share of the limit",
                lambda case: _unless_ok(case) if case.share_of_limit is None else f"{case.share_of_limit:.0%}",
                _bounds_and_engines(group)[:1],
            )
        )
    return found + _authors(title, group, where)


def _grid(group: Sequence[Summary], where: Sequence[Point]) -> Grid[Summary]:
    """Return the cases of some transports at some points, best at the largest point first.

    A transport without a figure there is placed by the next smaller point. Transports of one process come before those
    for which an engine starts workers.
    """
    cases = {(case.transport, case.label): case for case in group}
    lines = {case.transport: tuple(cases.get((case.transport, one.label)) for one in where) for case in group}

    def place(name: str) -> tuple[bool, list[tuple[bool, float]], str]:
        known = [case.median_seconds if case else None for case in lines[name]]
        engine = next(case.engine for case in lines[name] if case)
        return bool(engine), [(seconds is None, seconds or 0.0) for seconds in reversed(known)], name

    ordered = [lines[name] for name in sorted(lines, key=place)]
    names = tuple(next(case_name(case) for case in line if case) for line in ordered)
    return Grid(tuple(point.name for point in where), names, tuple(ordered))


def _table(
    grid: Grid[Summary],
    title: str,
    text: Callable[[Summary], str],
    notes: Iterable[str],
    best: Callable[[Summary], bool] = lambda case: False,
) -> Table:
    """Return a table of figures; a narrow terminal goes without those of the smallest points."""
    table = grid.table(title, "transport", text, tuple(notes), best)
    return replace(table, wide=frozenset({0}), droppable=tuple((place,) for place in range(1, len(table.head))))


def _memory(title: str, grid: Grid[Summary], group: Sequence[Summary], largest: Point) -> Table:
    """Return the grid of peaks, with the split into anonymous and file-backed pages at the largest point."""
    known = [(case.label, case.peak_of_all_bytes) for case in group if case.peak_of_all_bytes is not None]
    least = {label: min(peak for at, peak in known if at == label) for label, _ in known}
    table = _table(
        grid,
        f"{title}, peak memory in MB above the start, largest of {_samples(group)}",
        lambda case: megabytes(case.peak_of_all_bytes) or _unless_ok(case),
        (_OF_ENGINES,) if any(case.workers for case in group) else (),
        lambda case: case.peak_of_all_bytes == least.get(case.label, -1.0),
    )
    table, split = replace(table, minor=True), [line[-1] for line in grid.cells]
    if not any(case and case.peak_anon_bytes is not None for case in split):
        return table
    note = (
        f"anonymous, file-backed: the peak of each at {largest.name}, not necessarily at the same time. "
        "File-backed pages are those of mapped files (mmap): the system can take them back."
    )
    rows = tuple(
        (*row, *(megabytes(getattr(case, column)) if case else "" for column in _AT_THE_LARGEST.values()))
        for row, case in zip(table.rows, split, strict=True)
    )
    return replace(table, head=(*table.head, *_AT_THE_LARGEST), rows=rows, notes=(note, *table.notes))


def _authors(title: str, group: Sequence[Summary], where: Sequence[Point]) -> list[Table]:
    """Return a table of the author's figures, if any, each with the factor by which ours is faster."""
    by_rate = any(case.published_mean_rows_per_s is not None for case in group)
    column, unit = ("published_mean_rows_per_s", "rows/s") if by_rate else ("published_mean_seconds", "seconds")
    known = [case for case in group if getattr(case, column) is not None]
    named = f"{title}, the author's mean {unit} (× how many times as fast the mean here is)"
    note = "the machines differ: compare the order of the transports, not the figures"

    def text(case: Summary) -> str:
        return f"{significant(getattr(case, column))} {times(case.ratio_to_published)}".rstrip()

    return [_table(_grid(known, where), named, text, (note,))] if known else []


def _unless_ok(case: Summary) -> str:
    return "" if case.n else str(case.status)


def every_case(summaries: Sequence[Summary]) -> list[Table]:
    """Return one table for each experiment, system and operation with all figures of every case, in their order."""
    return [_all_figures(titled(*key), list(group)) for key, group in groupby(summaries, key=attrgetter("table"))]


def _all_figures(title: str, cases: list[Summary]) -> Table:
    labels = [case.parameters for case in cases]
    apart, shared = varying(labels), in_common(labels)
    figures = [column for column in _EVERY if any(getattr(case, column[1]) is not None for case in cases)]
    if len({case.bytes for case in cases}) > 1:
        figures.insert(0, ("data", "bytes", volume))
    head = (
        "#",
        "transport",
        *(name.replace("_", " ") for name in apart),
        *(of[0] for of in figures),
        "values",
    )
    first, numeric = 2 + len(apart), [all(is_number(label.get(name, "")) for label in labels) for name in apart]
    rows: list[tuple[str, ...]] = []
    more: dict[tuple[int, int], str] = {}
    sorts: dict[tuple[int, int], float] = {}
    for place, case in enumerate(cases):
        said = [case.parameters.get(name, "") for name in apart]
        parameters = [f"{float(value):,.15g}" if is_number(value) else value for value in said]
        cells = [_cell(case, *column[1:]) for column in figures]
        known = enumerate((getattr(case, column[1]) for column in figures), first)
        sorts |= {(place, at): value for at, value in known if value is not None}
        rows.append((rank_shown(case), case_name(case), *parameters, *cells, _values(case)))
        columns = case.fidelity.partition(":")[2] if case.status == Status.OK else case.error
        more |= {(place, 1): case.transport if case.published_row else "", (place, len(head) - 1): columns.strip()}
    words = {place for place, number in enumerate(numeric, 2) if not number}
    return Table(
        title=title,
        head=head,
        rows=tuple(rows),
        notes=(f"the same in every case: {shared}",) if shared else (),
        wide=frozenset({1, *words, len(head) - 1}),
        more=more,
        sorts=sorts,
        quiet=frozenset(place for place, case in enumerate(cases) if not case.n),
    )


def detail_rows(
    cases: Sequence[Summary], places: dict[str, str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return a head, and one row for each case that has details, if stages or rates are among them.

    `places` are the names of the points of these cases by their labels.
    """
    known = [case for case in cases if case.details]
    columns = list(dict.fromkeys(column for case in known for column in case.details))
    if not any(column.endswith(_SHOWN) for column in columns):
        return (), ()
    rows = (
        (
            *(case_name(case), places[case.label]),
            *(detail(one, case.details[one]) if one in case.details else "" for one in columns),
        )
        for case in known
    )
    return ("transport", "parameters", *map(detail_name, columns)), tuple(rows)


def reasons(summaries: Iterable[Summary], where: Sequence[Point] = ()) -> tuple[str, ...]:
    """Return one line for each different reason why runs are not ok, with its transports (and points)."""
    names = {point.label: point.name for point in where}
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for summary in summaries:
        if summary.status != Status.OK:
            transports = found.setdefault((summary.status, summary.error), {})
            transports.setdefault(summary.transport, []).append(names.get(summary.label, ""))

    def at(transport: str, places: list[str]) -> str:
        return transport if len(places) >= len(where) else f"{transport} at {'; '.join(places)}"

    return tuple(
        f"{': '.join(filter(None, reason))} ({', '.join(at(*one) for one in transports.items())})"
        for reason, transports in found.items()
    )


def not_ok(rows: Iterable[Row]) -> list[Table]:
    """Return a table with a line for each case and reason of runs that are not ok, and their passes."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        if not row.ok:
            order = (row.experiment, row.transport, in_order(row.parameters))
            line = (str(row.status), row.error, row.transport, row.experiment, row.label)
            found.setdefault((order, line), []).append(row.pass_number)
    lines = [(*line, ", ".join(map(str, sorted(found[order, line])))) for order, line in sorted(found)]
    return [Table("Runs that are not ok", NOT_OK, tuple(lines), wide=frozenset(range(len(NOT_OK))))] if lines else []


def losses(summaries: Sequence[Summary]) -> list[Table]:
    """Return the table of the losses of a run's transports, by the kind of loss; no table if none declares a loss."""
    lost = {case.transport: case.lossy for case in sorted(summaries, key=attrgetter("transport")) if case.lossy}
    heads = [fate for fate in _FATES if any(fate in fates.values() for fates in lost.values())]
    rows = tuple(
        (name, *(", ".join(kind for kind, found in fates.items() if found == fate) for fate in heads))
        for name, fates in lost.items()
    )
    note = "which kinds of values these are, docs/catalogue.md says; `lab verify` tries all of them"
    title, head = f"What each transport loses ({CHANGES}{REFUSES})", ("transport", *map(str, heads))
    return [Table(title, head, rows, (note,), wide=frozenset(range(len(head))))] if rows else []


def published_tables(summaries: Sequence[Summary], published: Iterable[PublishedFigure]) -> list[Table]:
    """Return a table for each experiment of the run with author's figures at a number of bytes, or with details."""
    found, known = [], list(published)
    for experiment in dict.fromkeys(summary.experiment for summary in summaries):
        cases = [case for case in summaries if case.experiment == experiment]
        figures = [figure for figure in known if figure.experiment in (None, experiment)]
        if sized := [figure for figure in figures if figure.bytes is not None]:
            found.append(_published(experiment, cases, sized))
        rows: list[tuple[str, ...]] = []
        for one in figures:
            if one.detail is not None and one.detail_value is not None:
                own = [case.details for case in cases if case.published_row == one.description]
                here = dict.fromkeys(detail(one.detail, of[one.detail]) for of in own if one.detail in of)
                theirs = detail(one.detail, one.detail_value)
                rows.append((one.description, detail_name(one.detail), theirs, ", ".join(here) or "not run"))
        if rows:
            title = f"{titled(experiment)}: {DETAILS}, the author's and ours"
            note = f"here: medians of {_samples(cases)}, one for each point; machines and amounts of data differ"
            head = ("transport", "what", "author's", "here")
            found.append(Table(title, head, tuple(rows), (note,), wide=frozenset({0, 1})))
    return found


def _published(experiment: str, cases: list[Summary], figures: list[PublishedFigure]) -> Table:
    first = figures[0].description
    rows = [_published_row(figure, first, cases, figures) for figure in figures]
    columns = ("data GB", "peak MB", "seconds")
    head = ("transport", "parameters", *(f"{whose}\n{name}" for whose in ("author's", "here") for name in columns))
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    return Table(
        title=f"{titled(experiment)}: the author's figures, and ours at the nearest size there is",
        head=tuple(head[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        notes=(
            f"× is the multiple of {first} on the same side: machines and sizes differ, so compare these; here: the "
            f"median of seconds and the largest peak of {_samples(cases)}, the author's: means",
        ),
        wide=frozenset({0, 1} if 1 in kept else {0}),
    )


def _published_row(
    one: PublishedFigure, first: str, cases: list[Summary], every: list[PublishedFigure]
) -> tuple[str, ...]:
    """Return the author's bytes, peak and seconds, and ours at the point whose bytes are nearest by their ratio.

    Of two that are equally near the larger one counts: it says more about sizes that were not run.
    """
    same = (one.bytes, one.parameters)
    theirs = next((of for of in every if of.description == first and (of.bytes, of.parameters) == same), None)
    known = [case for case in cases if case.bytes and one.parameters.items() <= case.parameters.items()]
    wanted = math.log(one.bytes or 1)
    at = min(known, key=lambda case: (abs(math.log(case.bytes or 1) - wanted), -(case.bytes or 0)), default=None)
    here = {case.published_row: case for case in reversed(cases) if at and case.label == at.label}
    ours, our_first = here.get(one.description), here.get(first)

    def multiple(of: str, its: object, firsts: object, text: Callable[[float], str]) -> str:
        value, unit = getattr(its, of), getattr(firsts, of, None)
        return "" if value is None else f"{text(value)} {times(value / unit if unit else None)}".rstrip()

    line = (
        one.description,
        ", ".join(described(*part) for part in one.parameters.items()),
        as_printed(None if one.bytes is None else one.bytes / 1e9),
        multiple("peak_rss_bytes", one, theirs, lambda value: as_printed(value / 1e6)),
        multiple("mean_seconds", one, theirs, as_printed),
    )
    if ours is None or not ours.n:
        return *line, gigabytes(ours.bytes) if ours else "", "", str(ours.status) if ours else "not run"
    mark = "" if ours.status == Status.OK else "*"
    peak = multiple("peak_rss_bytes", ours, our_first, megabytes)
    return *line, gigabytes(ours.bytes), peak, multiple("median_seconds", ours, our_first, significant) + mark
