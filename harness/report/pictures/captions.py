"""What is written with a picture: statistic, sample size, conditions, and what could not be drawn."""

from collections.abc import Sequence

from harness.report.pictures.cases import CaseMark, has_mark
from harness.report.pictures.quantities import parameter_or_quantity, text
from harness.report.points import described
from harness.results.row import Row
from harness.suites.suite import STATISTICS, Picture

_REACH = {
    STATISTICS[0]: "whiskers from minimum to maximum",
    STATISTICS[1]: "whiskers of one population standard deviation to both sides",
}
_TOGETHER = "\N{NO-BREAK SPACE}"  # lines are broken between parts, not within
_NAMED = 6  # transports without a mark that are named one by one


def second_line(picture: Picture, rows: Sequence[Row], cases: Sequence[CaseMark]) -> str:
    """Return the line below a picture's title: what its marks are, and under which conditions."""
    return joined([_sample(picture, cases), *conditions(rows)])


def joined(parts: Sequence[str]) -> str:
    """Return the parts of a line, which is broken between them only."""
    return f"{_TOGETHER}· ".join(part.replace(" ", _TOGETHER) for part in parts)


def caption(picture: Picture, rows: Sequence[Row], cases: Sequence[CaseMark], published: bool) -> str:
    """Return a picture's caption: the same in sentences, how to read it, and every case that has no mark in it."""
    sample = _sample(picture, cases)
    sentences = [f"{sample[:1].upper()}{sample[1:]}.", f"Conditions: {', '.join(conditions(rows))}."]
    if published:
        marks = "Open diamonds" if picture.form == "bars" else "Dotted lines with open marks"
        sentences.append(f"{marks}: the figures of the published benchmark, from its author's machine.")
    if picture.limit:
        sentences.append("Black dashed lines: the fastest bound at as many rows, what the server does alone.")
    missing = [case for case in cases if not has_mark(picture, case)]
    if missing and picture.form == "bars":
        sentences.append("Transports in grey have no figure: how their runs ended stands beside them.")
    elif missing:
        sentences.append(f"Without a mark: {_named(picture, missing)}.")
    return " ".join(sentences)


def _sample(picture: Picture, cases: Sequence[CaseMark]) -> str:
    sizes = sorted({case.y.n for case in cases if case.y})
    name = picture.statistic.split()[0]
    if sizes == [1]:
        return "one run each"
    runs = f"{sizes[0]} runs" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} runs"
    return f"{name} of {runs}, {_REACH[picture.statistic]}"


def conditions(rows: Sequence[Row]) -> list[str]:
    """Return what is the same for all rows of a picture."""
    rows_of, datasets, labs = ({getattr(row, name) for row in rows} for name in ("rows", "dataset", "lab"))
    parts = []
    if len(rows_of) == 1 and (number := rows_of.pop()):
        parts.append(f"{number:,} rows")
    if len(datasets) == 1 and (dataset := datasets.pop()):
        parts.append(f"dataset {dataset}")
    if len(labs) == 1 and (lab := labs.pop()) not in ("", "local"):
        parts.append(f"{lab} lab")
    parts.append("experiment " + " and ".join(sorted({row.experiment for row in rows})))
    labels = [row.parameters for row in rows]
    shared = {name: text for name, text in labels[0].items() if all(label.get(name) == text for label in labels)}
    return [*parts, *(described(name, text) for name, text in shared.items() if name != "rows")]


def _named(picture: Picture, missing: Sequence[CaseMark]) -> str:
    """Name the transports that have no mark, where they have none, and why."""
    places: dict[tuple[str, str], list[str]] = {}
    for case in missing:
        outcome = case.outcome or "no place on the axis"
        places.setdefault((case.name, outcome), []).append(_where(picture, case))
    named = [f"{name} at {' and '.join(found)} ({outcome})" for (name, outcome), found in places.items()]
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more, all listed under what did not run" if more > 0 else "")


def _where(picture: Picture, case: CaseMark) -> str:
    if not isinstance(case.place, float):
        return case.place or f"[{case.label}]"
    along = parameter_or_quantity(picture.x)
    return text(case.place, along.unit) if along.unit else f"{case.place:,.15g} {along.name}"
