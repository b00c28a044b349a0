"""Further facts of runs as rows of a table: the stages of a job and their rates, the author's figures below ours."""

from collections.abc import Sequence
from typing import Any

from harness.report.cells import detail, name
from harness.report.points import parameters

DETAILS = "stages and rates"


def detail_rows(cases: Sequence[dict[str, Any]], places: dict[str, str]) -> list[tuple[str, ...]]:
    """Return a head and one row for each case that has details, then one for each way the author has figures of.

    `places` are the names of the points of these cases by their labels. Empty where no case has details.
    """
    ours = [(case, parameters(case["details"] or "")) for case in cases if case["details"]]
    columns = list(dict.fromkeys(column for _, known in ours for column in known))
    if not columns:
        return []
    rows = [(name(case), places[case["parameters"]], *_texts(columns, known)) for case, known in ours]
    theirs: dict[str, dict[str, list[str]]] = {}
    for case, _ in ours:
        for pair in (case["published_details"] or "").split("; "):
            column, _, value = pair.partition("=")
            if column in columns:
                found = theirs.setdefault(name(case), {}).setdefault(column, [])
                found += [text] if (text := detail(column, float(value))) not in found else []
    authors = [
        (f"the author's: {way}", "", *(" and ".join(known.get(column, [])) for column in columns))
        for way, known in theirs.items()
    ]
    return [("transport", "parameters", *(_head(column) for column in columns)), *rows, *authors]


def _head(column: str) -> str:
    """Return a name without its unit, which stands at every figure."""
    for unit in ("_bytes_per_s", "_seconds", "bytes_per_s"):
        if column.endswith(unit):
            words = column.removesuffix(unit).replace("_", " ")
            return f"{words} rate".strip() if "per_s" in unit else words
    return column.replace("_", " ")


def _texts(columns: Sequence[str], known: dict[str, str]) -> list[str]:
    return [detail(column, float(known[column])) if column in known else "" for column in columns]
