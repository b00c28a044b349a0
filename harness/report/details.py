"""Further facts of runs as tables: the stages of a job and their rates, and the author's beside ours."""

from collections.abc import Sequence

from harness.report.cells import detail, name
from harness.report.summary import Summary
from harness.suites.suite import PublishedFigure

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
    rows = [(name(case), places[case.label], *_texts(columns, known)) for case, known in ours]
    return [("transport", "parameters", *(head(column) for column in columns)), *rows]


def author_rows(cases: Sequence[Summary], figures: Sequence[PublishedFigure]) -> list[tuple[str, ...]]:
    """Return one row for each figure of a detail: the transport, what it is, the author's and ours at each point."""
    rows: list[tuple[str, ...]] = []
    for figure in figures:
        if figure.detail is None or figure.detail_value is None:
            continue
        own = [case.details for case in cases if case.published_row == figure.description]
        found = dict.fromkeys(detail(figure.detail, one[figure.detail]) for one in own if figure.detail in one)
        theirs = detail(figure.detail, figure.detail_value)
        rows.append((figure.description, head(figure.detail), theirs, ", ".join(found) or "not run"))
    return rows


def head(column: str) -> str:
    """Return a name without its unit, which stands at every figure."""
    for unit in ("bytes_per_s", "_seconds"):
        if column.endswith(unit):
            words = column.removesuffix(unit).replace("_", " ").strip()
            return f"{words} rate".strip() if "per_s" in unit else words
    return column.replace("_", " ")


def _texts(columns: Sequence[str], known: dict[str, float]) -> list[str]:
    return [detail(column, known[column]) if column in known else "" for column in columns]
