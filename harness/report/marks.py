"""The cases of a chart: the summary of its rows, case by case, and the notes on them. Pure."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import LabError
from harness.report.figures import (
    DETAIL,
    PARAMETER,
    SUM,
    Quantity,
    in_common,
    in_order,
    is_number,
    parameter_or_quantity,
    with_unit,
)
from harness.report.summary import is_about
from harness.results.row import NAMES, Row, ok_rows
from harness.suites.suite import STATISTICS, Picture, PublishedFigure

_REACH = {
    STATISTICS[0]: "whiskers from minimum to maximum",
    STATISTICS[1]: "whiskers of one population standard deviation to both sides",
}
_NAMED = 6  # transports without a mark that are named one by one


@dataclass(frozen=True)
class Spread:
    """The middle of the figures of some runs, how far they reach to both sides, and how many they are."""

    middle: float
    low: float
    high: float
    n: int

    @property
    def reach(self) -> dict[str, float]:
        """Its ends, if it is of several runs."""
        return {"low": self.low, "high": self.high} if self.n > 1 else {}


@dataclass(frozen=True)
class CaseMark:
    """One case in a picture: `row` is its first run.

    `name` is the transport's, or the author's name for it if it reproduces a published one. `x`, `y` are None without
    an ok run that has the figure; `place` is x if it means a category or a number that is a condition of the
    case. `failed` says how the runs without numbers ended, and `outcome` why there is no figure.
    """

    name: str
    row: Row
    colour: str
    dash: str
    place: str | float | None
    x: Spread | None
    y: Spread | None
    outcome: str
    failed: str
    error: str


def chosen(picture: Picture, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a picture is about. Raises LabError when it names an unknown column."""
    where = picture.where or {}
    return [row for row in rows if all(value(row, column) in wanted for column, wanted in where.items())]


def cases_of(picture: Picture, rows: Sequence[Row]) -> list[CaseMark]:
    """Return every case among the chosen rows, by name and conditions: the order of runs is a shuffled one."""
    of_case: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        of_case[row.case].append(row)
    found = [_marked(picture, runs) for runs in of_case.values()]
    return sorted(found, key=lambda one: (one.name, *one.row.case[1::-1], in_order(one.row.parameters)))


def has_mark(picture: Picture, case: CaseMark) -> bool:
    """Say whether a case can be drawn: it has the figures, and a place on the axis if the picture has one."""
    placed = {"bars": True, "lines": case.place is not None, "scatter": case.x is not None}
    return case.y is not None and placed[picture.form]


def _marked(picture: Picture, runs: list[Row]) -> CaseMark:
    first, good = runs[0], ok_rows(runs)
    bad = Counter(str(row.status) for row in runs if not row.ok)
    counted = bool(good) or len(bad) > 1
    failed = ", ".join(f"{count} {name}" if counted else name for name, count in bad.items())
    return CaseMark(
        name=value(first, "transport"),
        row=first,
        colour=value(first, picture.colour),
        dash=value(first, picture.dash) if picture.dash else "",
        place=_place(first, picture.x) if picture.form == "lines" else None,
        x=_spread(good, picture.x, picture.statistic) if picture.form == "scatter" else None,
        y=_spread(good, picture.y, picture.statistic),
        outcome=failed or ("no figure" if good else ""),
        failed=failed,
        error=next((row.error for row in runs if not row.ok and row.error), ""),
    )


def value(row: Row, column: str) -> str:
    """Return a column, or with `parameter:<name>` one parameter, as a printable string."""
    if column == "transport":
        return printable(row.published_row or row.transport)
    if column.startswith(PARAMETER):
        return printable(row.parameters.get(column.removeprefix(PARAMETER), ""))
    if column in NAMES:
        return printable(row.text(column))
    raise LabError(f'no column "{column}" for a picture; give one of runs.csv, or "{PARAMETER}<name>"')


def printable(words: str) -> str:
    """Return a string without the characters that no SVG can hold and no page can show; line ends stay."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in words)


def _place(row: Row, column: str) -> str | float | None:
    """Return the place of a case on the x axis: a number, else a category, or None if unknown."""
    said = value(row, column)
    return float(said) if is_number(said) else said or None


def figure(row: Row, column: str) -> float | None:
    """Return a figure of a run; a sum of columns (see `quantities.SUM`) needs only the first of them."""
    if SUM in column:
        first, *others = (figure(row, part) for part in column.split(SUM))
        return None if first is None else first + sum(other or 0 for other in others)
    return row.details.get(column.removeprefix(DETAIL)) if column.startswith(DETAIL) else getattr(row, column)


def _spread(good: list[Row], column: str, statistic: str) -> Spread | None:
    figures = [found for row in good if (found := figure(row, column)) is not None]
    if not figures:
        return None
    if statistic == STATISTICS[0]:
        return Spread(statistics.median(figures), min(figures), max(figures), len(figures))
    mean, deviation = statistics.fmean(figures), statistics.pstdev(figures)
    return Spread(mean, mean - deviation, mean + deviation, len(figures))


def author_says(figure: PublishedFigure, column: str) -> float | None:
    """Return the author's figure for a column of runs.csv, a mean; None without one."""
    names = {"seconds": "mean_seconds", "rows_per_s": "mean_rows_per_s", "peak_rss_bytes": "peak_rss_bytes"}
    return getattr(figure, names[column]) if column in names else None


def figures_of(case: CaseMark, published: Sequence[PublishedFigure]) -> list[PublishedFigure]:
    """Return the author's figures for the transport of a case in its experiment and its parameters, at all sizes."""
    return [figure for figure in published if is_about(figure, case.row)]


def saying(case: CaseMark, figures: Sequence[tuple[Spread | None, Quantity]], statistic: str) -> str:
    """Return the text that a mark shows on hover: the transport, its conditions, values, ranges and sample size."""
    row = case.row
    conditions = ": ".join(part for part in (row.experiment, row.label) if part)
    lines = [case.name, row.transport if row.transport != case.name else "", conditions]
    lines += [_figure(spread, what, statistic) for spread, what in figures if spread]
    ending = case.failed if len(lines) > 3 else case.outcome
    if ending:
        lines.append(": ".join(part for part in (ending, case.error) if part))
    return "\n".join(line for line in lines if line)


def _figure(spread: Spread, what: Quantity, statistic: str) -> str:
    low, middle, high = (with_unit(value, what.unit) for value in (spread.low, spread.middle, spread.high))
    reach = f"{low} to {high}, " if spread.n > 1 else ""
    return f"{statistic.split()[0]} {what.name}: {middle} ({reach}n = {spread.n})"


def published_saying(name: str, conditions: str, value: float, what: Quantity) -> str:
    """Return the label of the mark of an author's figure."""
    return "\n".join(
        part for part in (name, conditions, f"published mean {what.name}: {with_unit(value, what.unit)}") if part
    )


def caption(picture: Picture, rows: Sequence[Row], cases: Sequence[CaseMark], published: bool) -> str:
    """Return a picture's caption: its content in sentences, how to read it, and every case without a mark."""
    said = sample(picture, cases)
    sentences = [f"{said[:1].upper()}{said[1:]}.", f"Conditions: {', '.join(conditions(rows))}."]
    if published:
        marks = "Open diamonds" if picture.form == "bars" else "Dotted lines with open marks"
        sentences.append(f"{marks}: the figures of the published benchmark, from its author's machine.")
    if picture.limit:
        sentences.append("Black dashed lines: the fastest bound at as many rows, what the server does alone.")
    missing = [case for case in cases if not has_mark(picture, case)]
    if missing and picture.form == "bars":
        sentences.append("Transports in grey have no figure: how their runs ended is next to them.")
    elif missing:
        sentences.append(f"Without a mark: {_named(picture, missing)}.")
    return " ".join(sentences)


def sample(picture: Picture, cases: Sequence[CaseMark]) -> str:
    """Explain a picture's marks: their statistic, the number of runs, and the whiskers."""
    sizes = sorted({case.y.n for case in cases if case.y})
    name = picture.statistic.split()[0]
    if sizes == [1]:
        return "one run each"
    runs = f"{sizes[0]} runs" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} runs"
    return f"{name} of {runs}, {_REACH[picture.statistic]}"


def conditions(rows: Sequence[Row]) -> list[str]:
    """Return the values that all rows of a picture share."""
    rows_of, datasets, labs = ({getattr(row, name) for row in rows} for name in ("rows", "dataset", "lab"))
    parts = []
    if len(rows_of) == 1 and (number := rows_of.pop()):
        parts.append(f"{number:,} rows")
    if len(datasets) == 1 and (dataset := datasets.pop()):
        parts.append(f"dataset {dataset}")
    if len(labs) == 1 and (lab := labs.pop()) not in ("", "local"):
        parts.append(f"{lab} lab")
    parts.append("experiment " + " and ".join(sorted({row.experiment for row in rows})))
    shared = in_common([row.parameters for row in rows], but={"rows"})
    return [*parts, *([shared] if shared else [])]


def _named(picture: Picture, missing: Sequence[CaseMark]) -> str:
    """Name the transports without a mark, the conditions, and the reasons."""
    places: dict[tuple[str, str], list[str]] = {}
    for case in missing:
        outcome = case.outcome or "no place on the axis"
        places.setdefault((case.name, outcome), []).append(_where(picture, case))
    named = [f"{name} at {' and '.join(found)} ({outcome})" for (name, outcome), found in places.items()]
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more, all listed under what did not run" if more > 0 else "")


def _where(picture: Picture, case: CaseMark) -> str:
    if not isinstance(case.place, float):
        return case.place or f"[{case.row.label}]"
    along = parameter_or_quantity(picture.x)
    return with_unit(case.place, along.unit) if along.unit else f"{case.place:,.15g} {along.name}"
