"""Every case of a run in tables: rankings, grids, all figures, what is not ok, losses, and the author's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
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
    gigabytes,
    in_common,
    in_order,
    legend,
    megabytes,
    significant,
    times,
    titled,
    volume,
)
from harness.report.intervals import called
from harness.report.summary import (
    BOUNDED_BY,
    SHARED,
    UNSTABLE,
    Point,
    Summary,
    case_name,
    points,
    rank_notes,
    rank_shown,
    unstable_note,
    with_interval,
)
from harness.report.table import Table
from harness.results.row import Row
from harness.suites.suite import PublishedFigure


def _cells(summary: Summary) -> dict[str, str]:
    """Return a summary's figures as text, by the head of their column in a ranking."""
    peak = summary.peak_of_all_bytes
    values = (summary.fidelity).partition(":")[0]
    status = summary.status
    return {
        "#": rank_shown(summary),
        "transport": case_name(summary),
        "workers": summary.workers,
        "median s": with_interval(summary),
        "avg s": _number(summary.mean_seconds, ".4f"),
        "rows/s": _number(summary.mean_rows_per_s, ",.0f"),
        "min": _number(summary.min_rows_per_s, ",.0f"),
        "max": _number(summary.max_rows_per_s, ",.0f"),
        "peak MB": megabytes(peak, lambda value: _number(value, ",.0f")),
        "of limit": _number(summary.share_of_limit, ".0%"),
        "published": _number(summary.published_mean_rows_per_s, ",.0f"),
        "published s": significant(summary.published_mean_seconds),
        "ratio": _number(summary.ratio_to_published, ".2f"),
        "values": values if status == "ok" else f"{values} ({status})".strip() if values else status,
    }


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


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


def samples(cases: Sequence[Summary]) -> str:
    """Say how many runs the figures of these cases come from: `1 run`, `up to 3 runs`."""
    largest = max(case.n for case in cases)
    return f"up to {largest} runs" if largest > 1 else "1 run" if largest else "no ok run"


def _ranking(title: str, group: list[Summary], point: Point) -> Table:
    texts = [_cells(summary) for summary in group]
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
            *rank_notes(group),
            *unstable_note(group),
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
    others = BOUNDED_BY.get(operation, operation)
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
        *((_SET_OFF,) if any(case.rank == 1 and case.tie == SHARED for case in group) else ()),
        *unstable_note(group, {point.label: point.name for point in where}),
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
        names = [next(case_name(case) for case in cases if case) for cases in across]
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
    marks = ("" if case.status == Status.OK else "*") + (UNSTABLE if case.unstable else "")
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


@dataclass(frozen=True)
class _FigureColumn:
    """A column of the table of every case: its head, the column of the summary that has its number, and its text."""

    head: str
    of: str
    text: Callable[[Any], str]


_EVERY_FIGURE = (
    _FigureColumn("runs", "n", str),
    _FigureColumn("median s", "median_seconds", significant),
    _FigureColumn("interval from", "median_low_seconds", significant),
    _FigureColumn("interval to", "median_high_seconds", significant),
    _FigureColumn("mean s", "mean_seconds", significant),
    _FigureColumn("std s", "std_seconds", significant),
    _FigureColumn("min s", "min_seconds", significant),
    _FigureColumn("max s", "max_seconds", significant),
    _FigureColumn("mean rows/s", "mean_rows_per_s", significant),
    _FigureColumn("connect s", "median_connect_seconds", significant),
    _FigureColumn("CPU s", "median_cpu_seconds", significant),
    _FigureColumn("peak MB", "peak_rss_bytes", megabytes),
    _FigureColumn("workers' peak MB", "workers_peak_rss_bytes", megabytes),
    _FigureColumn("anonymous MB", "peak_anon_bytes", megabytes),
    _FigureColumn("file-backed MB", "peak_file_bytes", megabytes),
    _FigureColumn("of limit", "share_of_limit", lambda value: f"{value:.0%}"),
    _FigureColumn("published s", "published_mean_seconds", as_printed),
    _FigureColumn("published rows/s", "published_mean_rows_per_s", as_printed),
    _FigureColumn("ratio", "ratio_to_published", significant),
)


def every_case(summaries: Sequence[Summary]) -> list[Table]:
    """Return one table for each experiment, system and operation with all figures of every case, in their order."""
    return [_every_case(titled(*key), list(group)) for key, group in groupby(summaries, key=attrgetter("table"))]


def _every_case(title: str, cases: list[Summary]) -> Table:
    labels = [case.parameters for case in cases]
    names = list(dict.fromkeys(name for label in labels for name in label))
    varying = [name for name in names if len({label.get(name) for label in labels}) > 1]
    shared = [described(name, labels[0][name]) for name in names if name not in varying]
    figures = [column for column in _EVERY_FIGURE if any(getattr(case, column.of) is not None for case in cases)]
    unstable = ["unstable"] if any(case.unstable for case in cases) else []
    sized = len({case.bytes for case in cases}) > 1
    head = ["#", "transport", *(name.replace("_", " ") for name in varying), *(["data"] if sized else [])]
    parts = {name: [_parameter(label.get(name, "")) for label in labels] for name in varying}
    words = {place for place, name in enumerate(varying, 2) if not all(map(_is_number, parts[name]))}
    rows: list[tuple[str, ...]] = []
    more: dict[tuple[int, int], str] = {}
    sorts: dict[tuple[int, int], float] = {}
    for place, case in enumerate(cases):
        row = [rank_shown(case), case_name(case), *(texts[place] for texts in parts.values())]
        row += [volume(case.bytes) if case.bytes is not None else ""] if sized else []
        known = [*([case.bytes] if sized else []), *(getattr(case, one.of) for one in figures)]
        sorts |= {(place, at): value for at, value in enumerate(known, 2 + len(varying)) if value is not None}
        row += ["" if (value := getattr(case, one.of)) is None else one.text(value) for one in figures]
        row += [case.unstable] if unstable else []
        values, _, columns = case.fidelity.partition(":")
        if case.status != Status.OK:  # how the runs ended
            values, columns = f"{values} ({case.status})" if values else str(case.status), case.error
        more |= {(place, 1): case.transport if case.published_row else "", (place, len(row)): columns.strip()}
        rows.append((*row, values))
    whole = (*head, *(column.head for column in figures), *unstable, "values")
    return Table(
        title=title,
        head=whole,
        rows=tuple(rows),
        notes=(f"the same in every case: {', '.join(shared)}",) if shared else (),
        wide=frozenset({1, *words, *range(len(whole) - 1 - len(unstable), len(whole))}),
        more=more,
        sorts=sorts,
        quiet=frozenset(place for place, case in enumerate(cases) if not case.n),
    )


def _parameter(text: str) -> str:
    return f"{float(text):,.15g}" if _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text.replace(",", "")))
    except ValueError:
        return False


DETAILS = "stages and rates"
_SHOWN = ("_seconds", "per_s")  # a table of sizes alone says nothing that others do not


def detail_rows(cases: Sequence[Summary], places: dict[str, str]) -> list[tuple[str, ...]]:
    """Return a head and one row for each case that has details, if stages or rates are among them.

    `places` are the names of the points of these cases by their labels. Empty where there is nothing to say.
    """
    ours = [(case, case.details) for case in cases if case.details]
    columns = list(dict.fromkeys(column for _, known in ours for column in known))
    if not any(column.endswith(_SHOWN) for column in columns):
        return []
    rows = [(case_name(case), places[case.label], *_detail_cells(columns, known)) for case, known in ours]
    return [("transport", "parameters", *(detail_name(column) for column in columns)), *rows]


def author_rows(cases: Sequence[Summary], figures: Sequence[PublishedFigure]) -> list[tuple[str, ...]]:
    """Return one row for each figure of a detail: the transport, what it is, the author's and ours at each point."""
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        if figure.detail is None or figure.detail_value is None:
            continue
        own = [case.details for case in cases if case.published_row == figure.description]
        found = dict.fromkeys(detail(figure.detail, one[figure.detail]) for one in own if figure.detail in one)
        theirs = detail(figure.detail, figure.detail_value)
        rows.append((figure.description, detail_name(figure.detail), theirs, ", ".join(found) or "not run"))
    return rows


def detail_name(column: str) -> str:
    """Return a name without its unit, which stands at every figure."""
    for unit in ("bytes_per_s", "_seconds"):
        if column.endswith(unit):
            words = column.removesuffix(unit).replace("_", " ").strip()
            return f"{words} rate".strip() if "per_s" in unit else words
    return column.replace("_", " ")


def _detail_cells(columns: Sequence[str], known: dict[str, float]) -> list[str]:
    return [detail(column, known[column]) if column in known else "" for column in columns]


NOT_OK = ("status", "reason", "transport", "experiment", "parameters", "passes")


def reasons(summaries: Iterable[Summary], where: Sequence[Point] = ()) -> tuple[str, ...]:
    """Return one line for each different reason why runs are not ok, with the transports (and points) it holds for."""
    names = {point.label: point.name for point in where}
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for summary in summaries:
        if summary.status != Status.OK:
            transports = found.setdefault((summary.status, summary.error), {})
            transports.setdefault(summary.transport, []).append(names.get(summary.label, ""))
    return tuple(
        ": ".join(filter(None, reason))
        + f" ({', '.join(_at(transport, places, len(where)) for transport, places in transports.items())})"
        for reason, transports in found.items()
    )


def not_ok(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return one line (HEAD) for each case and reason of runs that are not ok, with the passes it holds for."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not row.ok:
            line = (str(row.status), row.error, row.transport, row.experiment, row.label)
            found.setdefault(line, []).append(row)
    ordered = sorted(found, key=lambda line: (line[3], line[2], in_order(found[line][0].parameters), line))
    return [(*line, ", ".join(map(str, sorted(row.pass_number for row in found[line])))) for line in ordered]


def _at(transport: str, places: list[str], of: int) -> str:
    return transport if len(places) >= of else f"{transport} at {'; '.join(places)}"


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


_PUBLISHED = ("transport", "parameters")
_PUBLISHED_FIGURES = ("data GB", "peak MB", "seconds")  # of the author's side, then of ours


def published_tables(summaries: Sequence[Summary], published: Iterable[PublishedFigure]) -> list[Table]:
    """Return a table for each experiment of the run that has author's figures at a number of bytes, or of details."""
    found = []
    known = list(published)
    for experiment in dict.fromkeys(summary.experiment for summary in summaries):
        cases = [case for case in summaries if case.experiment == experiment]
        figures = [figure for figure in known if figure.experiment in (None, experiment)]
        if sized := [figure for figure in figures if figure.bytes is not None]:
            found.append(_published(experiment, cases, sized))
        if rows := author_rows(cases, figures):
            found.append(_published_details(experiment, cases, rows))
    return found


def _published_details(experiment: str, cases: list[Summary], rows: list[tuple[str, ...]]) -> Table:
    return Table(
        title=f"{titled(experiment)}: {DETAILS}, the author's and ours",
        head=("transport", "what", "author's", "here"),
        rows=tuple(rows),
        notes=(f"here: medians of {samples(cases)}, one for each point; machines and amounts of data differ",),
        wide=frozenset({0, 1}),
    )


def _published(experiment: str, cases: list[Summary], figures: list[PublishedFigure]) -> Table:
    first = figures[0].description
    rows = [_published_row(figure, first, cases, figures) for figure in figures]
    head = (
        *_PUBLISHED,
        *(f"author's\n{name}" for name in _PUBLISHED_FIGURES),
        *(f"here\n{name}" for name in _PUBLISHED_FIGURES),
    )
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]  # what nobody says has no column
    return Table(
        title=f"{titled(experiment)}: the author's figures, and ours at the nearest size there is",
        head=tuple(head[place] for place in kept),
        rows=tuple(tuple(row[place] for place in kept) for row in rows),
        notes=(
            f"× is the multiple of {first} on the same side: machines and sizes differ, so compare these; here: the "
            f"median of seconds and the largest peak of {samples(cases)}, the author's: means",
        ),
        wide=frozenset({0, 1} if 1 in kept else {0}),
    )


def _published_row(
    figure: PublishedFigure, first: str, cases: list[Summary], figures: list[PublishedFigure]
) -> tuple[str, ...]:
    same = (figure.bytes, figure.parameters)
    their_first = next((f for f in figures if f.description == first and (f.bytes, f.parameters) == same), None)
    label = _nearest(figure, cases)
    ours, our_first = (_case_at(cases, description, label) for description in (figure.description, first))
    return (
        figure.description,
        ", ".join(described(*part) for part in figure.parameters.items()),
        as_printed(None if figure.bytes is None else figure.bytes / 1e9),
        _multiple(figure.peak_rss_bytes, their_first.peak_rss_bytes if their_first else None, _printed_megabytes),
        _multiple(figure.mean_seconds, their_first.mean_seconds if their_first else None, as_printed),
        *_ours(ours, our_first),
    )


def _ours(ours: Summary | None, first: Summary | None) -> tuple[str, str, str]:
    if ours is None:
        return "", "", "not run"
    if not ours.n:
        return gigabytes(ours.bytes), "", str(ours.status)
    peak, median = (first.peak_rss_bytes, first.median_seconds) if first else (None, None)
    mark = "" if ours.status == Status.OK else "*"
    return (
        gigabytes(ours.bytes),
        _multiple(ours.peak_rss_bytes, peak, megabytes),
        _multiple(ours.median_seconds, median, significant) + mark,
    )


def _nearest(figure: PublishedFigure, cases: list[Summary]) -> str | None:
    """Return the label of the point whose bytes are nearest to the author's by their ratio; None where none is known.

    Of two that are equally near the larger one counts: it says more about sizes that were not run.
    """
    asked = figure.parameters.items()
    known = [(case.bytes, case.label) for case in cases if case.bytes and asked <= case.parameters.items()]
    if not known or not figure.bytes:
        return None
    wanted = math.log(figure.bytes)
    return min(known, key=lambda one: (abs(math.log(one[0]) - wanted), -one[0]))[1]


def _case_at(cases: list[Summary], description: str, label: str | None) -> Summary | None:
    return next((c for c in cases if c.published_row == description and c.label == label), None)


def _multiple(value: float | None, of: float | None, text: Callable[[float], str]) -> str:
    return "" if value is None else f"{text(value)} {times(value / of if of else None)}".rstrip()


def _printed_megabytes(value: float) -> str:
    return as_printed(value / 1e6)
