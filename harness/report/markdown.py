"""Summaries and their environment as Markdown, for pages that live in the repository."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from harness.report.cells import cells
from harness.report.summary import TITLES

_HEAD = ("#", "way", "avg s", "rows/s", "min", "max", "peak MB", "values", "published rows/s")


def tables(summaries: list[dict[str, Any]], best: int | None = None) -> str:
    """Return one table a database and direction, of all ways or the `best` ones with how many are left out."""
    parts = []
    for (system, direction), group in groupby(summaries, key=lambda s: (s["system"], s["direction"])):
        rows = list(group)
        shown = rows[:best]
        left_out = f" (the first {len(shown)} of {len(rows)})" if len(shown) < len(rows) else ""
        parts.append(
            f"**{TITLES.get(system, system)} {direction}**{left_out}\n\n" + table(_HEAD, [_cells(row) for row in shown])
        )
    return "\n".join(parts)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table; a bar within a cell is escaped."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]]) + "\n"


def conditions(environment: dict[str, Any]) -> str:
    """Say in one paragraph where and how a run was obtained."""
    plan, machine, servers = environment["plan"], environment["machine"], environment["servers"]
    versions = ", ".join(f"{name} {server['version']}" for name, server in servers.items())
    commit = (environment["code"]["commit"] or "unknown")[:12]
    return (
        f"{plan['rows']:,} rows, {plan['passes']} passes, lab: {environment['lab']} ({versions}); "
        f"{machine['cores']} cores of {machine['cpu'] or machine['architecture']}, "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']} {machine['kernel']}; "
        f"Python {environment['python']}, pandas {environment['packages']['pandas']}, "
        f"polars {environment['packages']['polars']}; commit {commit}, run {environment['run_id']}."
    )


def _cells(summary: dict[str, Any]) -> tuple[str, ...]:
    # There is no line below a table here: the reason stands in its row.
    failed = None if summary["n"] else f"{summary['status']}: {summary['error']}"
    texts = cells(summary)
    values = failed or (summary["fidelity"] or "").partition(":")[0]
    figures = (texts[name] for name in ("#", "transport", "avg s", "rows/s", "min", "max", "peak MB"))
    return *figures, values, texts["published"]
