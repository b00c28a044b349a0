"""Summaries as tables for a terminal: one a database and direction, best first, in the published benchmark's form."""

from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.report.summary import TITLES


def tables(summaries: list[dict[str, Any]]) -> list[Table]:
    """Return one rich table for every database and direction among the summaries, which are in their order already."""
    return [
        _table(system, direction, list(group))
        for (system, direction), group in groupby(summaries, key=lambda s: (s["system"], s["direction"]))
    ]


def _table(system: str, direction: str, summaries: list[dict[str, Any]]) -> Table:
    rows, samples = summaries[0]["rows"], max(summary["n"] for summary in summaries)
    table = Table(
        title=f"{TITLES.get(system, system)} {direction}: {rows:,} rows, mean of up to {samples} runs, by median time",
        title_justify="left",
        title_style="bold",
        header_style="",
    )
    table.add_column("#", justify="right")
    table.add_column("transport", overflow="fold", min_width=24)
    for name in ("avg s", "rows/s", "min rows/s", "max rows/s", "peak MB", "published rows/s", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("values", overflow="fold")
    for summary in summaries:
        table.add_row(*map(Text, _cells(summary)))  # as Text: a bracket in a reason is no markup
    return table


def _cells(summary: dict[str, Any]) -> list[str]:
    name = summary["published_row"] or summary["transport"]
    if not summary["n"]:
        published = _number(summary["published_mean_rows_per_s"], ",.0f")
        reason = ": ".join(filter(None, (summary["status"], summary["error"])))
        return ["", name, "", "", "", "", "", published, "", reason]
    peak = summary["peak_rss_bytes"]
    values = (summary["fidelity"] or "").partition(":")[0]
    if summary["status"] != "ok":
        values = f"{values} ({summary['status']})"
    return [
        str(summary["rank"]),
        name,
        _number(summary["mean_seconds"], ".4f"),
        _number(summary["mean_rows_per_s"], ",.0f"),
        _number(summary["min_rows_per_s"], ",.0f"),
        _number(summary["max_rows_per_s"], ",.0f"),
        _number(None if peak is None else peak / 1e6, ",.0f"),
        _number(summary["published_mean_rows_per_s"], ",.0f"),
        _number(summary["ratio_to_published"], ".2f"),
        values,
    ]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
