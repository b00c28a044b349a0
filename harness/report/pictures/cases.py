"""The cases of a picture: what its rows come to, case by case, before anything is drawn. Pure."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model import LabError, label
from harness.report.pictures.quantities import DETAIL, PARAMETER, SUM
from harness.report.points import in_order
from harness.results.row import NAMES, Row, ok_rows
from harness.suites.suite import STATISTICS, Picture, PublishedFigure


@dataclass(frozen=True)
class Spread:
    """The middle of the figures of some runs, how far they reach to both sides, and how many they are."""

    middle: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class CaseMark:
    """One case in a picture.

    `name` is the transport's, as its author calls it where it reproduces a published one. `x` and `y` are None without
    an ok run that has the figure; `place` is x where it stands for a category or a number that is a condition of the
    case. `failed` says how the runs without numbers ended.
    """

    name: str
    transport: str
    experiment: str
    parameters: Mapping[str, str]
    rows: int | None
    published_row: str
    colour: str
    dash: str
    place: str | float | None
    x: Spread | None
    y: Spread | None
    ok: int
    failed: str
    error: str

    @property
    def label(self) -> str:
        """The parameters as one text."""
        return label(self.parameters)

    @property
    def outcome(self) -> str:
        """How its runs ended where it has no figure: `timeout`, `error, killed`, or that the figure was not taken."""
        return self.failed or ("no figure" if self.ok else "")


def chosen(picture: Picture, rows: Sequence[Row]) -> list[Row]:
    """Return the rows that a picture is about. Raises LabError when it names a column that there is not."""
    where = picture.where or {}
    return [row for row in rows if all(value(row, column) in wanted for column, wanted in where.items())]


def cases_of(picture: Picture, rows: Sequence[Row]) -> list[CaseMark]:
    """Return every case among the chosen rows, by name and conditions: the order of runs is a shuffled one."""
    of_case: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        of_case[row.case].append(row)
    found = [_marked(picture, runs) for runs in of_case.values()]
    return sorted(found, key=lambda case: (case.name, case.transport, case.experiment, in_order(case.parameters)))


def has_mark(picture: Picture, case: CaseMark) -> bool:
    """Tell whether a case can be drawn: it has the figures, and a place on the axis where the picture has one."""
    placed = {"bars": True, "lines": case.place is not None, "scatter": case.x is not None}
    return case.y is not None and placed[picture.form]


def _marked(picture: Picture, runs: list[Row]) -> CaseMark:
    first, good = runs[0], ok_rows(runs)
    bad = [row for row in runs if row not in good]
    return CaseMark(
        name=value(first, "transport"),
        transport=first.transport,
        experiment=first.experiment or "",
        parameters=first.parameters,
        rows=first.rows,
        published_row=first.published_row or "",
        colour=value(first, picture.colour),
        dash=value(first, picture.dash) if picture.dash else "",
        place=_place(first, picture.x) if picture.form == "lines" else None,
        x=_spread(good, picture.x, picture.statistic) if picture.form == "scatter" else None,
        y=_spread(good, picture.y, picture.statistic),
        ok=len(good),
        failed=", ".join(_counted(Counter(str(row.status) for row in bad), bool(good))),
        error=next((row.error for row in bad if row.error), ""),
    )


def _counted(counts: Counter[str], always: bool) -> list[str]:
    """Name each status; how often it came is said where some runs were ok or several statuses are mixed."""
    return [f"{count} {name}" if always or len(counts) > 1 else name for name, count in counts.items()]


def value(row: Row, column: str) -> str:
    """Return a column, or with `parameter:<name>` one parameter, as a text that can be printed."""
    if column == "transport":
        text = row.published_row or row.transport
    elif column.startswith(PARAMETER):
        text = row.parameters.get(column.removeprefix(PARAMETER), "")
    elif column in NAMES:
        text = row.text(column)
    else:
        raise LabError(f'expected a column of runs.csv or "{PARAMETER}<name>" in a picture, found "{column}"')
    return printable(text)


def printable(text: str) -> str:
    """Return a text without what no SVG can hold and no page can show; line ends stay."""
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in text)


def _place(row: Row, column: str) -> str | float | None:
    """Return where on the x axis a case stands: a number where it is one, else a category, None where unknown."""
    text = value(row, column)
    try:
        number = float(text)
    except ValueError:
        return text or None
    return number if math.isfinite(number) else text


def figure(row: Row, column: str) -> float | None:
    """Return a figure of a run; of a sum of columns (see `quantities.SUM`) of those that it has, the first at least."""
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
    """Return the author's figure for a column of runs.csv: means, or None where there is none."""
    names = {"seconds": "mean_seconds", "rows_per_s": "mean_rows_per_s", "peak_rss_bytes": "peak_rss_bytes"}
    return getattr(figure, names[column]) if column in names else None


def figures_of(case: CaseMark, published: Sequence[PublishedFigure]) -> list[PublishedFigure]:
    """Return the author's figures for the transport of a case in its experiment and its parameters, at all sizes."""
    return [
        figure
        for figure in published
        if figure.description == case.published_row
        and figure.experiment in (None, case.experiment)
        and figure.parameters.items() <= case.parameters.items()
    ]
