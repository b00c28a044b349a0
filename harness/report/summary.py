"""summary.csv: one line a case, computed from the rows of one run alone."""

import csv
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.model import Status
from harness.report import ranks, stability
from harness.report.intervals import median_interval
from harness.report.points import in_order, parameters
from harness.results import details
from harness.suites.suite import PublishedFigure
from harness.systems import SYSTEMS

COLUMNS = {
    "experiment": "experiment of the suite",
    "parameters": "parameters of the case: name=value; name=value",
    "transport": "id of the transport",
    "system": "database, kind of files, or protocol of the stores",
    "operation": "write, read, scan, create, query, transform or job",
    "client": "client library, engine or store",
    "path": "transport path",
    "payload": "shape of what crosses the wire",
    "frame": "what the data are in memory",
    "style": "sync or async client",
    "origin": "published, beyond, limit or control",
    "published_row": "description of the published row",
    "rows": "rows of the data",
    "bytes": "bytes of the data on disk, empty where they are not in files of the lab",
    "status": "ok when every run is; otherwise each status with its count",
    "error": "reason of the runs that are not ok; different ones are joined by |",
    "fidelity": "how values came back; several ways are joined by |",
    "lossy": "kinds of values the transport is declared not to bring through: kind=fate; kind=fate",
    "n": "number of ok runs: the sample size of all figures here",
    "rank": "1 + the number of ways of the same experiment, parameters, system and operation whose whole interval of "
    "the median lies below this one's; bounds of writes and reads and controls have none",
    "tie": "= others have the same rank: no difference between them is shown; ? fewer than 3 runs: a place by the "
    "median alone; empty: a rank of its own",
    "unstable": "why these figures are not to be relied on: steal, throttled, slow first pass, spread; joined by ;",
    "share_of_limit": "median_seconds of the fastest bound (origin limit) of the same experiment, parameters, system "
    "and operation / median_seconds: 1 is as fast as that bound; empty where no bound was run",
    "mean_seconds": "arithmetic mean of seconds",
    "std_seconds": "population standard deviation of seconds, as the published stores benchmark computes it",
    "median_seconds": "median of seconds",
    "median_low_seconds": "lower end of its interval (percentile bootstrap, nominally 95 %; of 3 to 5 runs "
    "their range); empty for fewer than 3 runs",
    "median_high_seconds": "upper end",
    "min_seconds": "smallest",
    "max_seconds": "largest",
    "mean_rows_per_s": "arithmetic mean of the rates of the runs, as the published matrix benchmark computes it",
    "median_rows_per_s": "median of the rates",
    "min_rows_per_s": "smallest",
    "max_rows_per_s": "largest",
    "median_connect_seconds": "median of connect_seconds",
    "median_cpu_seconds": "median of cpu_seconds",
    "peak_rss_bytes": "largest peak_rss_bytes of all runs",
    "peak_anon_bytes": "largest peak_anon_bytes of all runs",
    "peak_file_bytes": "largest peak_file_bytes of all runs",
    "mb_per_s": "bytes / 1e6 / median_seconds: from the data on disk to the end of the call, whatever is done in it",
    "details": "medians of the further facts of a run of its suite: name=value; name=value",
    "published_mean_seconds": "the author's figure",
    "published_mean_rows_per_s": "the author's figure",
    "ratio_to_published": "mean_rows_per_s / published_mean_rows_per_s, where the author gives no rate "
    "published_mean_seconds / mean_seconds: above 1 is faster than the author's machine",
}
TITLES = {"parquet": "Parquet", "elt": "ELT"} | {name: system.title for name, system in SYSTEMS.items()}
_PLACES = {name: system.place for name, system in SYSTEMS.items()}
_OF_TRANSPORT = tuple(COLUMNS)[2:12]
_OPERATIONS = ("write", "create", "read", "scan", "query", "transform", "call", "copy")


def summarise(
    rows: Iterable[dict[str, Any]], published: Sequence[PublishedFigure], experiments: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return one summary a case, smallest median first within experiment, system, operation and parameters.

    `experiments` says in which order those come; others follow by name. Figures are None without ok runs.
    """
    cases: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cases[row["experiment"] or "", row["parameters"] or "", row["transport"]].append(row)
    summaries = [_summary(group, published) for group in cases.values()]
    order = {name: place for place, name in enumerate(experiments)}
    summaries.sort(key=lambda summary: (order.get(summary["experiment"], len(order)), *_place(summary)))
    tables: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for summary in summaries:
        tables[tuple(summary[name] for name in ("experiment", "parameters", "system", "operation"))].append(summary)
    for table in tables.values():
        limit = min((case["median_seconds"] for case in table if case["n"] and ranks.is_bound(case)), default=None)
        for summary, (rank, tie) in zip(table, ranks.places(table), strict=True):
            summary |= {"rank": rank, "tie": tie}
            if limit is not None and summary["n"]:
                summary["share_of_limit"] = limit / summary["median_seconds"]
    return summaries


def write(path: Path, summaries: list[dict[str, Any]]) -> None:
    """Write summary.csv; missing figures are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: as_text(value) for name, value in summary.items()} for summary in summaries)


def _applies(figure: PublishedFigure, summary: dict[str, Any]) -> bool:
    """Say whether an author's figure is about this transport, experiment and parameters, whatever their extent."""
    return (
        figure.description == summary["published_row"]
        and figure.experiment in (None, summary["experiment"])
        and parameters(figure.parameters or "").items() <= parameters(summary["parameters"]).items()
    )


def _place(summary: dict[str, Any]) -> tuple[Any, ...]:
    """Order as the published benchmarks list their tables: by system, writes first; cases without figures last."""
    median, system, operation = (summary[name] for name in ("median_seconds", "system", "operation"))
    known = _OPERATIONS.index(operation) if operation in _OPERATIONS else len(_OPERATIONS)
    place = _PLACES.get(system, len(_PLACES) + 1)
    table = (summary["experiment"], place, system, known, operation, in_order(summary["parameters"]))
    return *table, median is None, median or 0.0, summary["transport"]


def _summary(group: list[dict[str, Any]], published: Sequence[PublishedFigure]) -> dict[str, Any]:
    good = [row for row in group if row["status"] is Status.OK]
    counts = Counter(row["status"] for row in group)
    summary: dict[str, Any] = dict.fromkeys(COLUMNS)
    summary |= {name: group[0][name] for name in _OF_TRANSPORT}
    summary |= {name: group[0][name] or "" for name in ("experiment", "parameters")}
    # What could not run does not always know how much data it would have been about.
    summary |= {name: next((row[name] for row in group if row[name] is not None), None) for name in ("rows", "bytes")}
    summary["status"] = (
        ", ".join(f"{s} {counts[s]}" for s in Status if s in counts) if len(counts) > 1 else str(*counts)
    )
    reasons = dict.fromkeys(row["error"] for row in group if row["status"] is not Status.OK and row["error"])
    summary["error"] = " | ".join(reasons) or None
    summary["lossy"] = group[0]["lossy"]
    summary["n"] = len(good)
    if good:
        summary |= _figures(good)
        summary["unstable"] = "; ".join(stability.reasons(good)) or None
        summary["fidelity"] = " | ".join(sorted({row["fidelity"] or "" for row in good})) or None
    return summary | _beside_the_authors(summary, published)


def _beside_the_authors(summary: dict[str, Any], published: Sequence[PublishedFigure]) -> dict[str, Any]:
    """Return the author's figures of a case and how much faster ours is; nothing where the author has none."""
    whole = [figure for figure in published if figure.bytes is None and figure.detail is None]
    figure = next((f for f in whole if f.rows in (None, summary["rows"]) and _applies(f, summary)), None)
    if figure is None:
        return {}
    ratio = None
    if summary["n"] and figure.mean_rows_per_s is not None:
        ratio = summary["mean_rows_per_s"] / figure.mean_rows_per_s
    elif summary["n"] and figure.mean_seconds is not None:
        ratio = figure.mean_seconds / summary["mean_seconds"]
    return {
        "published_mean_seconds": figure.mean_seconds,
        "published_mean_rows_per_s": figure.mean_rows_per_s,
        "ratio_to_published": ratio,
    }


def _figures(good: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = [row["seconds"] for row in good]
    case = (good[0][name] or "" for name in ("run_id", "experiment", "parameters", "transport"))
    low, high = median_interval(seconds, "/".join(case)) or (None, None)
    figures: dict[str, Any] = {"median_low_seconds": low, "median_high_seconds": high}
    figures["std_seconds"] = statistics.pstdev(seconds)
    for name in ("seconds", "rows_per_s"):
        values = [row[name] for row in good]
        figures |= {
            f"mean_{name}": statistics.fmean(values),
            f"median_{name}": statistics.median(values),
            f"min_{name}": min(values),
            f"max_{name}": max(values),
        }
    for name in ("connect_seconds", "cpu_seconds"):
        figures[f"median_{name}"] = statistics.median(row[name] for row in good)
    for name in ("peak_rss_bytes", "peak_anon_bytes", "peak_file_bytes"):
        known = [row[name] for row in good if row[name] is not None]
        figures[name] = max(known) if known else None
    size = good[0]["bytes"]
    figures["mb_per_s"] = size / 1e6 / figures["median_seconds"] if size else None
    every = [details(row) for row in good]
    medians = {name: statistics.median(one[name] for one in every if name in one) for one in every for name in one}
    figures["details"] = "; ".join(f"{name}={value:.9g}" for name, value in medians.items()) or None
    return figures


def as_text(value: Any) -> str:
    """Return a figure as it stands in a file: nine digits, empty where there is none."""
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
