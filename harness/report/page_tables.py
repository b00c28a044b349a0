"""The tables that the page alone has: all figures of every case; and who is the fastest and the leanest."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from harness.model import Status
from harness.report import ranks
from harness.report.cells import as_printed, megabytes, name, significant, volume
from harness.report.intervals import overlap
from harness.report.points import described, points
from harness.report.summary import Summary
from harness.report.table import Table
from harness.report.text_tables import titled


@dataclass(frozen=True)
class _FigureColumn:
    """A column of the table of every case: its head, the column of the summary that has its number, and its text."""

    head: str
    of: str
    text: Callable[[Any], str]


_FIGURES = (
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
    return [_cases(titled(*key), list(group)) for key, group in groupby(summaries, key=attrgetter("table"))]


def leaders(summaries: Sequence[Summary]) -> Table | None:
    """Return the fastest and the leanest transport of each experiment, system and operation at its largest point."""
    several = len({case.experiment for case in summaries}) > 1
    rows = []
    for (experiment, *key), group in groupby(summaries, key=attrgetter("table")):
        cases = list(group)
        # Of bounds none is a transport; where rows are counted after a disturbance, nobody asks who was fast.
        if all(map(ranks.is_bound, cases)) or any("expected_rows" in case.details for case in cases):
            continue
        largest = points(cases)[-1]
        ranked = sorted((c for c in cases if c.label == largest.label and c.rank), key=attrgetter("took"))
        where = largest.name or (f"{largest.rows:,} rows" if largest.rows is not None else "")
        rows.append((titled(experiment if several else "", *key), where, *_lead(ranked)))
    head = (
        "what",
        "at its largest point",
        "fastest",
        "median s",
        "second",
        "slower by",
        "least memory",
        "peak MB",
    )
    title, words, names = "The fastest and the leanest", frozenset({0, 1, 2, 4, 6}), frozenset({2, 4, 6})
    return Table(title, head, tuple(rows), wide=words, names=names, droppable=((6, 7), (4, 5))) if rows else None


def _lead(ranked: list[Summary]) -> tuple[str, ...]:
    if not ranked:
        return ("none is ok", *[""] * 5)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    lean = min((case for case in ranked if case.peak_of_all_bytes is not None), key=_peak, default=None)
    return (
        name(first),
        significant(first.median_seconds),
        name(second) if second else "",
        _longer(first, second),
        name(lean) if lean else "",
        megabytes(lean.peak_of_all_bytes) if lean else "",
    )


def _peak(case: Summary) -> float:
    return case.peak_of_all_bytes or 0


def _longer(first: Summary, second: Summary | None) -> str:
    """Say how much longer the second takes, and whether their intervals tell the two apart."""
    if not second or not first.median_seconds:
        return ""
    share = second.took / first.took - 1
    if first.interval is None or second.interval is None:
        return f"{share:.0%}, too few runs to tell"
    return f"{share:.0%}{', no difference shown' if overlap(first.interval, second.interval) else ''}"


def _cases(title: str, cases: list[Summary]) -> Table:
    labels = [case.parameters for case in cases]
    names = list(dict.fromkeys(name for label in labels for name in label))
    varying = [name for name in names if len({label.get(name) for label in labels}) > 1]
    shared = [described(name, labels[0][name]) for name in names if name not in varying]
    figures = [column for column in _FIGURES if any(getattr(case, column.of) is not None for case in cases)]
    unstable = ["unstable"] if any(case.unstable for case in cases) else []
    sized = len({case.bytes for case in cases}) > 1
    head = ["#", "transport", *(name.replace("_", " ") for name in varying), *(["data"] if sized else [])]
    parts = {name: [_parameter(label.get(name, "")) for label in labels] for name in varying}
    words = {place for place, name in enumerate(varying, 2) if not all(map(_is_number, parts[name]))}
    rows: list[tuple[str, ...]] = []
    more: dict[tuple[int, int], str] = {}
    sorts: dict[tuple[int, int], float] = {}
    for place, case in enumerate(cases):
        row = [ranks.shown(case), name(case), *(texts[place] for texts in parts.values())]
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
