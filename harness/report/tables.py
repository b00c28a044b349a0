"""Summaries as tables for a terminal: one a database and direction, best first, in the published benchmark's form."""

from itertools import groupby
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from harness.report.cells import cells
from harness.report.summary import TITLES

_HEAD = ("#", "avg s", "rows/s", "min", "max", "peak MB", "published", "ratio", "values")
_LEFT_OUT_WHEN_NARROW = ("min", "max", "peak MB")
_NARROW = 110  # columns of a terminal below which those are left out: summary.csv has them


def tables(summaries: list[dict[str, Any]], width: int = 200) -> list[Table]:
    """Return one rich table for every database and direction among the summaries, which are in their order already."""
    return [
        _table(system, direction, list(group), narrow=width < _NARROW)
        for (system, direction), group in groupby(summaries, key=lambda s: (s["system"], s["direction"]))
    ]


def _table(system: str, direction: str, summaries: list[dict[str, Any]], narrow: bool) -> Table:
    rows, samples = summaries[0]["rows"], max(summary["n"] for summary in summaries)
    name = f"{TITLES.get(system, system)} {direction}"
    table = Table(
        title=f"\n{name}: {rows:,} rows, mean of up to {samples} runs, by median time",
        title_justify="left",
        title_style="bold",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption=Text("\n".join(_reasons(summaries))) if any(summary["error"] for summary in summaries) else None,
        caption_justify="left",
        caption_style="",
    )
    shown = [name for name in _HEAD if not (narrow and name in _LEFT_OUT_WHEN_NARROW)]
    for name in shown:
        table.add_column(name, justify="left" if name == "values" else "right")
        if name == "#":
            table.add_column("transport", overflow="fold", min_width=24)
    for summary in summaries:
        texts = cells(summary)
        # As Text: a bracket in a name is no markup.
        table.add_row(*(Text(texts[name]) for name in (shown[0], "transport", *shown[1:])))
    return table


def _reasons(summaries: list[dict[str, Any]]) -> list[str]:
    """Return one line for each different reason why runs are not ok, with the ways it holds for."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for summary in summaries:
        if summary["error"]:
            reasons.setdefault((summary["status"], summary["error"]), []).append(summary["transport"])
    return [f"{status}: {error} ({', '.join(names)})" for (status, error), names in reasons.items()]
