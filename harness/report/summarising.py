"""Summaries of the cases of a run, computed from its rows alone, and writing them as summary.csv."""

import csv
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model import Status
from harness.report import ranks
from harness.report.intervals import RunSpread, around, estimate, interval, spread_of
from harness.report.points import in_order
from harness.report.summary import COLUMNS, Summary
from harness.results.row import Row, ok_rows
from harness.results.runs_csv import as_cell
from harness.suites.suite import PublishedFigure
from harness.systems import SYSTEMS

_PLACES = {name: system.place for name, system in SYSTEMS.items()}
_OF_CASE = ("experiment", "parameters", "transport", *tuple(COLUMNS)[3:13], "lossy")  # the same in all of its rows
_OPERATIONS = ("load", "unload", "write", "create", "read", "scan", "query", "transform", "call", "copy")


def summarise(
    rows: Iterable[Row], published: Sequence[PublishedFigure], experiments: Sequence[str] = ()
) -> list[Summary]:
    """Return one summary a case, smallest median first within experiment, system, operation and parameters.

    `experiments` says in which order those come; others follow by name. Figures are None without ok runs.
    """
    cases: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        cases[row.case].append(row)
    spread = spread_of([row.took for row in ok_rows(group)] for group in cases.values())
    summaries = [_summary(group, published, spread) for group in cases.values()]
    order = {name: place for place, name in enumerate(experiments)}
    summaries.sort(key=lambda summary: (order.get(summary.experiment, len(order)), *_place(summary)))
    tables: dict[tuple[str, ...], list[Summary]] = defaultdict(list)
    for summary in summaries:
        tables[*summary.table, summary.label].append(summary)
    limits = ranks.limits(summaries)
    ranked = {
        id(one): done for table in tables.values() for one, done in zip(table, _ranked(table, limits), strict=True)
    }
    return [ranked[id(summary)] for summary in summaries]


def _ranked(table: Sequence[Summary], limits: Mapping[ranks.Place, Summary]) -> list[Summary]:
    """Return the summaries of one table with their ranks and how near they come to the fastest bound."""
    return [
        replace(case, rank=rank, tie=tie, share_of_limit=limit.took / case.took if limit and case.n else None)
        for case, (rank, tie) in zip(table, ranks.places(table), strict=True)
        for limit in (limits.get(ranks.bounded_at(case)),)
    ]


def write(path: Path, summaries: Sequence[Summary]) -> None:
    """Write summary.csv; missing figures are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: as_cell(_rounded(getattr(one, name))) for name in COLUMNS} for one in summaries)


def _rounded(value: Any) -> Any:
    """Return the figures of a mapping with nine digits, as all others have."""
    return (
        {name: f"{number:.9g}" if isinstance(number, float) else number for name, number in value.items()}
        if isinstance(value, dict)
        else value
    )


def _applies(figure: PublishedFigure, summary: Summary) -> bool:
    """Say whether an author's figure is about this transport, experiment and parameters, whatever their extent."""
    return (
        figure.description == summary.published_row
        and figure.experiment in (None, summary.experiment)
        and figure.parameters.items() <= summary.parameters.items()
    )


def _place(summary: Summary) -> tuple[Any, ...]:
    """Order as the published benchmarks list their tables: by system, writes first; cases without figures last.

    At one point what one process does alone comes before all that an engine needs workers for.
    """
    median, system, operation = summary.median_seconds, summary.system, summary.operation
    known = _OPERATIONS.index(operation) if operation in _OPERATIONS else len(_OPERATIONS)
    place = _PLACES.get(system, len(_PLACES) + 1)
    table = (summary.experiment, place, system, known, operation, in_order(summary.parameters))
    return *table, bool(summary.engine), median is None, median or 0.0, summary.transport


def _summary(group: list[Row], published: Sequence[PublishedFigure], spread: RunSpread) -> Summary:
    good, first = ok_rows(group), group[0]
    counts = Counter(row.status for row in group)
    several = ", ".join(f"{status} {counts[status]}" for status in Status if status in counts)
    reasons = dict.fromkeys(row.error for row in group if not row.ok and row.error)
    summary = Summary(
        **{name: getattr(first, name) for name in _OF_CASE},
        # What could not run does not always know how much data it would have been about.
        rows=next((row.rows for row in group if row.rows is not None), None),
        bytes=next((row.bytes for row in group if row.bytes is not None), None),
        status=several if len(counts) > 1 else str(*counts),
        error=" | ".join(reasons),
        n=len(good),
    )
    if good:
        fidelity = " | ".join(sorted({row.fidelity for row in good}))
        summary = replace(summary, fidelity=fidelity, **_figures(good, spread))
    return replace(summary, **_beside_the_authors(summary, published))


def _beside_the_authors(summary: Summary, published: Sequence[PublishedFigure]) -> dict[str, Any]:
    """Return the author's figures of a case and how much faster ours is; nothing where the author has none."""
    whole = [figure for figure in published if figure.bytes is None and figure.detail is None]
    figure = next((f for f in whole if f.rows in (None, summary.rows) and _applies(f, summary)), None)
    if figure is None:
        return {}
    ratio = None
    if summary.mean_rows_per_s is not None and figure.mean_rows_per_s is not None:
        ratio = summary.mean_rows_per_s / figure.mean_rows_per_s
    elif summary.mean_seconds is not None and figure.mean_seconds is not None:
        ratio = figure.mean_seconds / summary.mean_seconds
    return {
        "published_mean_seconds": figure.mean_seconds,
        "published_mean_rows_per_s": figure.mean_rows_per_s,
        "ratio_to_published": ratio,
    }


def _figures(good: list[Row], spread: RunSpread) -> dict[str, Any]:
    seconds, first = [row.took for row in good], good[0]
    figures: dict[str, Any] = {}
    if of := estimate(seconds, spread):
        low, high = around(statistics.median(seconds), interval(of))
        figures = {"median_low_seconds": low, "median_high_seconds": high}
        figures |= {"log_mean": of.mean, "log_error": of.error, "log_freedom": of.freedom}
    figures["std_seconds"] = statistics.pstdev(seconds)
    for name in ("seconds", "rows_per_s"):
        values = [getattr(row, name) for row in good]
        figures |= {
            f"mean_{name}": statistics.fmean(values),
            f"median_{name}": statistics.median(values),
            f"min_{name}": min(values),
            f"max_{name}": max(values),
        }
    for name in ("connect_seconds", "cpu_seconds"):
        figures[f"median_{name}"] = statistics.median(getattr(row, name) for row in good)
    for name in ("peak_rss_bytes", "peak_anon_bytes", "peak_file_bytes"):
        known = [getattr(row, name) for row in good if getattr(row, name) is not None]
        figures[name] = max(known) if known else None
    figures["mb_per_s"] = first.bytes / 1e6 / figures["median_seconds"] if first.bytes else None
    every = [row.details for row in good]
    figures["details"] = {
        name: statistics.median(one[name] for one in every if name in one) for one in every for name in one
    }
    return figures
