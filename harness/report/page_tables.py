"""The tables of the page: the texts of every other format, with the numbers that their columns are sorted by."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from harness.model import Status
from harness.report import ranks
from harness.report.cells import as_printed, megabytes, name, significant, volume
from harness.report.intervals import leaves_out_one, ratio
from harness.report.points import described, points
from harness.report.summary import Summary
from harness.report.text_tables import TextTable, titled

_WIDTHS = ((22, "words"), (60, "text"), (math.inf, "prose"))  # by the characters of the longest cell


@dataclass(frozen=True)
class Cell:
    """One cell: its text, the number it is sorted by (None: by its text), whether it is set off, and a longer text."""

    text: str
    number: float | None = None
    best: bool = False
    more: str = ""


@dataclass(frozen=True)
class PageTable:
    """A table of a page: `numbers` are the columns of numbers, `quiet` the rows of cases without a figure."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numbers: frozenset[int]
    notes: tuple[str, ...] = ()
    quiet: frozenset[int] = frozenset()

    @property
    def contents(self) -> tuple[str, ...]:
        """What each column holds: `number`, `words`, or `text` and `prose`, which need some width to be read."""
        return tuple("number" if place in self.numbers else self._words(place) for place in range(len(self.head)))

    def _words(self, place: int) -> str:
        longest = max((len(row[place].text) for row in self.rows), default=0)
        return next(content for most, content in _WIDTHS if longest <= most)


@dataclass(frozen=True)
class _FigureColumn:
    """A column of the table of every case: its head, the column of the summary that has its number, and its text."""

    head: str
    of: str
    text: Callable[[Any], str]


_FIGURES = (
    _FigureColumn("runs", "n", str),
    _FigureColumn("median s", "median_seconds", significant),
    _FigureColumn("interval from", "median_low_seconds", significant),
    _FigureColumn("interval to", "median_high_seconds", significant),
    _FigureColumn("mean s", "mean_seconds", significant),
    _FigureColumn("std s", "std_seconds", significant),
    _FigureColumn("min s", "min_seconds", significant),
    _FigureColumn("max s", "max_seconds", significant),
    _FigureColumn("mean rows/s", "mean_rows_per_s", significant),
    _FigureColumn("connect s", "median_connect_seconds", significant),
    _FigureColumn("CPU s", "median_cpu_seconds", significant),
    _FigureColumn("peak MB", "peak_rss_bytes", megabytes),
    _FigureColumn("workers' peak MB", "workers_peak_rss_bytes", megabytes),
    _FigureColumn("anonymous MB", "peak_anon_bytes", megabytes),
    _FigureColumn("file-backed MB", "peak_file_bytes", megabytes),
    _FigureColumn("of limit", "share_of_limit", lambda value: f"{value:.0%}"),
    _FigureColumn("published s", "published_mean_seconds", as_printed),
    _FigureColumn("published rows/s", "published_mean_rows_per_s", as_printed),
    _FigureColumn("ratio", "ratio_to_published", significant),
)


def from_texts(table: TextTable) -> PageTable:
    """Return a table of texts with the number that each cell begins with."""
    numbers = frozenset(range(len(table.head))) - table.wide
    return PageTable(
        title=table.title,
        head=tuple(head.replace("\n", " ") for head in table.head),
        rows=tuple(
            tuple(
                Cell(text, _number(text) if column in numbers else None, (row, column) in table.best)
                for column, text in enumerate(texts)
            )
            for row, texts in enumerate(table.rows)
        ),
        numbers=numbers,
        notes=table.notes,
    )


def every_case(summaries: Sequence[Summary]) -> list[PageTable]:
    """Return one table for each experiment, system and operation with all figures of every case, in their order."""
    return [_cases(titled(*key), list(group)) for key, group in groupby(summaries, key=attrgetter("table"))]


def leaders(summaries: Sequence[Summary]) -> PageTable | None:
    """Return the fastest and the leanest transport of each experiment, system and operation at its largest point."""
    several = len({case.experiment for case in summaries}) > 1
    rows = []
    for (experiment, *key), group in groupby(summaries, key=attrgetter("table")):
        cases = list(group)
        # Of bounds none is a transport; where rows are counted after a disturbance, nobody asks who was fast.
        if all(map(ranks.is_bound, cases)) or any("expected_rows" in case.details for case in cases):
            continue
        largest = points(cases)[-1]
        ranked = sorted((c for c in cases if c.label == largest.label and c.rank), key=attrgetter("took"))
        where = largest.name or (f"{largest.rows:,} rows" if largest.rows is not None else "")
        rows.append((Cell(titled(experiment if several else "", *key)), Cell(where), *_lead(ranked)))
    head = (
        "what",
        "at its largest point",
        "fastest",
        "median s",
        "second",
        "slower by",
        "least memory",
        "peak MB",
    )
    return PageTable("The fastest and the leanest", head, tuple(rows), frozenset({3, 5, 7})) if rows else None


def _lead(ranked: list[Summary]) -> tuple[Cell, ...]:
    if not ranked:
        return (Cell("none is ok"), *[Cell("")] * 5)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else None
    lean = min((case for case in ranked if case.peak_of_all_bytes is not None), key=_peak, default=None)
    return (
        Cell(name(first)),
        Cell(significant(first.median_seconds), first.median_seconds),
        Cell(name(second) if second else ""),
        _longer(first, second),
        Cell(name(lean) if lean else ""),
        Cell(megabytes(lean.peak_of_all_bytes), lean.peak_of_all_bytes) if lean else Cell(""),
    )


def _peak(case: Summary) -> float:
    return case.peak_of_all_bytes or 0


def _longer(first: Summary, second: Summary | None) -> Cell:
    """Say how much longer the second takes, and whether their intervals tell the two apart."""
    if not second or not first.median_seconds:
        return Cell("")
    share = second.took / first.took - 1
    if first.estimate is None or second.estimate is None:
        return Cell(f"{share:.0%}, too few runs to tell", share)
    shown = leaves_out_one(ratio(second.estimate, first.estimate))
    return Cell(f"{share:.0%}{'' if shown else ', no difference shown'}", share)


def _cases(title: str, cases: list[Summary]) -> PageTable:
    labels = [case.parameters for case in cases]
    names = list(dict.fromkeys(name for label in labels for name in label))
    varying = [name for name in names if len({label.get(name) for label in labels}) > 1]
    shared = [described(name, labels[0][name]) for name in names if name not in varying]
    figures = [column for column in _FIGURES if any(getattr(case, column.of) is not None for case in cases)]
    sized = len({case.bytes for case in cases}) > 1
    head = ["#", "transport", *(name.replace("_", " ") for name in varying), *(["data"] if sized else [])]
    parts = {name: [_parameter(label.get(name, "")) for label in labels] for name in varying}
    numbers = {0, *range(2 + len(varying), len(head) + len(figures))}
    numbers |= {place for place, name in enumerate(varying, 2) if all(cell.number is not None for cell in parts[name])}
    rows = []
    for place, case in enumerate(cases):
        row = [Cell(ranks.shown(case), case.rank), _way(case), *(cells[place] for cells in parts.values())]
        row += [Cell(volume(case.bytes) if case.bytes is not None else "", case.bytes)] if sized else []
        row += [_figure(case, column) for column in figures]
        rows.append((*row, _values(case)))
    return PageTable(
        title=title,
        head=(*head, *(column.head for column in figures), "values"),
        rows=tuple(rows),
        numbers=frozenset(numbers),
        notes=(f"the same in every case: {', '.join(shared)}",) if shared else (),
        quiet=frozenset(place for place, case in enumerate(cases) if not case.n),
    )


def _parameter(text: str) -> Cell:
    try:
        number = float(text)
    except ValueError:
        return Cell(text)
    return Cell(f"{number:,.15g}", number) if math.isfinite(number) else Cell(text)


def _way(case: Summary) -> Cell:
    return Cell(name(case), more=case.transport if case.published_row else "")


def _figure(case: Summary, column: _FigureColumn) -> Cell:
    value = getattr(case, column.of)
    return Cell("" if value is None else column.text(value), value)


def _values(case: Summary) -> Cell:
    """Say how the values came back, or how the runs ended where that is not ok."""
    short, _, columns = (case.fidelity).partition(":")
    if case.status == Status.OK:
        return Cell(short, more=columns.strip())
    return Cell(f"{short} ({case.status})" if short else str(case.status), more=case.error)


def _number(text: str) -> float | None:
    """Return the number that a text begins with, a multiple's too, or None."""
    found = re.match(r"[×<]?(-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?)", text)
    return float(found[1].replace(",", "")) if found else None
