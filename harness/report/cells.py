"""A summary as texts, for tables of every kind."""

from typing import Any


def cells(summary: dict[str, Any]) -> dict[str, str]:
    """Return a summary's figures as text, by the head of their column; what is missing is an empty text."""
    peak = summary["peak_rss_bytes"]
    values = (summary["fidelity"] or "").partition(":")[0]
    status = summary["status"]
    return {
        "#": _number(summary["rank"], "d"),
        "transport": summary["published_row"] or summary["transport"],
        "avg s": _number(summary["mean_seconds"], ".4f"),
        "rows/s": _number(summary["mean_rows_per_s"], ",.0f"),
        "min": _number(summary["min_rows_per_s"], ",.0f"),
        "max": _number(summary["max_rows_per_s"], ",.0f"),
        "peak MB": _number(None if peak is None else peak / 1e6, ",.0f"),
        "published": _number(summary["published_mean_rows_per_s"], ",.0f"),
        "ratio": _number(summary["ratio_to_published"], ".2f"),
        "values": values if status == "ok" else f"{values} ({status})".strip() if values else status,
    }


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
