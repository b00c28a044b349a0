"""summary.csv: one line a transport, computed from the rows of one run alone."""

import csv
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.results import ok_rows
from harness.suites import PublishedFigure

COLUMNS = {
    "transport": "id of the transport",
    "system": "database",
    "direction": "write or read",
    "client": "client library",
    "path": "transport path",
    "payload": "shape of what crosses the wire",
    "frame": "dataframe library",
    "style": "sync or async client",
    "origin": "published, beyond or limit",
    "published_row": "description of the published row",
    "rows": "rows of the dataset",
    "status": "ok when every run is; otherwise each status with its count",
    "error": "reason of the first run that is not ok",
    "fidelity": "how values came back; several ways are joined by |",
    "n": "number of ok runs: the sample size of all figures here",
    "rank": "place by median_seconds within database and direction, 1 is fastest",
    "mean_seconds": "arithmetic mean of seconds",
    "median_seconds": "median of seconds",
    "min_seconds": "smallest",
    "max_seconds": "largest",
    "mean_rows_per_s": "arithmetic mean of the rates of the runs, as the published benchmark computes it",
    "median_rows_per_s": "median of the rates",
    "min_rows_per_s": "smallest",
    "max_rows_per_s": "largest",
    "median_connect_seconds": "median of connect_seconds",
    "median_cpu_seconds": "median of cpu_seconds",
    "peak_rss_bytes": "largest peak_rss_bytes of all runs",
    "peak_anon_bytes": "largest peak_anon_bytes of all runs",
    "peak_file_bytes": "largest peak_file_bytes of all runs",
    "published_mean_seconds": "the author's figure",
    "published_mean_rows_per_s": "the author's figure",
    "ratio_to_published": "mean_rows_per_s / published_mean_rows_per_s: above 1 is faster than the author's machine",
}
TITLES = {"postgres": "Postgres", "clickhouse": "ClickHouse"}
_SAME_IN_ALL = tuple(COLUMNS)[:11]


def summarise(rows: Iterable[dict[str, Any]], published: dict[str, PublishedFigure]) -> list[dict[str, Any]]:
    """Return one summary a transport, fastest first within database and direction; figures are None without ok runs."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["transport"]].append(row)
    summaries = [_summary(group, published.get(group[0]["published_row"] or "")) for group in groups.values()]
    summaries.sort(key=_place)
    ranks: Counter[tuple[str, str]] = Counter()
    for summary in summaries:
        if summary["n"]:
            ranks[summary["system"], summary["direction"]] += 1
            summary["rank"] = ranks[summary["system"], summary["direction"]]
    return summaries


def write(path: Path, summaries: list[dict[str, Any]]) -> None:
    """Write summary.csv; missing figures are empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _as_text(value) for name, value in summary.items()} for summary in summaries)


def _place(summary: dict[str, Any]) -> tuple[Any, ...]:
    """Order as the published benchmark lists its tables: Postgres first, writes first; ways without figures last."""
    median, system = summary["median_seconds"], summary["system"]
    table = (system != "postgres", system, summary["direction"] != "write")
    return *table, median is None, median or 0.0, summary["transport"]


def _summary(group: list[dict[str, Any]], figure: PublishedFigure | None) -> dict[str, Any]:
    good = ok_rows(group)
    failed = [row for row in group if row not in good]
    counts = Counter(str(row["status"]) for row in group)
    summary: dict[str, Any] = dict.fromkeys(COLUMNS)
    summary |= {name: group[0][name] for name in _SAME_IN_ALL}
    summary["status"] = next(iter(counts)) if len(counts) == 1 else ", ".join(f"{k} {v}" for k, v in counts.items())
    summary["error"] = failed[0]["error"] if failed else None
    summary["n"] = len(good)
    if figure:
        summary["published_mean_seconds"] = figure.mean_seconds
        summary["published_mean_rows_per_s"] = figure.mean_rows_per_s
    if good:
        summary |= _figures(good)
        summary["fidelity"] = " | ".join(sorted({row["fidelity"] for row in good}))
        if figure:
            summary["ratio_to_published"] = summary["mean_rows_per_s"] / figure.mean_rows_per_s
    return summary


def _figures(good: list[dict[str, Any]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
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
    return figures


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
