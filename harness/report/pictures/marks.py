"""What is the same in pictures of every form: marks of a case and its range, and what they say."""

from collections.abc import Sequence
from typing import Any

from harness.report import style
from harness.report.pictures.cases import CaseMark, Spread
from harness.report.pictures.quantities import Quantity, text

DIAMOND: dict[str, Any] = {
    "marker": "D",
    "markersize": 5.5,
    "markerfacecolor": "white",
    "markeredgecolor": style.INK,
    "linestyle": "none",
}
PUBLISHED = "published figure (mean)"


def saying(case: CaseMark, figures: Sequence[tuple[Spread | None, Quantity]], statistic: str) -> str:
    """Return what a mark says when it is pointed at: the transport, its conditions, values, ranges and sample size."""
    conditions = ": ".join(part for part in (case.experiment, case.label) if part)
    lines = [case.name, case.transport if case.transport != case.name else "", conditions]
    lines += [_figure(spread, what, statistic) for spread, what in figures if spread]
    ending = case.failed if len(lines) > 3 else case.outcome
    if ending:
        lines.append(": ".join(part for part in (ending, case.error) if part))
    return "\n".join(line for line in lines if line)


def _figure(spread: Spread, what: Quantity, statistic: str) -> str:
    low, middle, high = (text(value, what.unit) for value in (spread.low, spread.middle, spread.high))
    reach = f"{low} to {high}, " if spread.n > 1 else ""
    return f"{statistic.split()[0]} {what.name}: {middle} ({reach}n = {spread.n})"


def published_saying(name: str, conditions: str, value: float, what: Quantity) -> str:
    """Return what the mark of an author's figure says."""
    return "\n".join(
        part for part in (name, conditions, f"published mean {what.name}: {text(value, what.unit)}") if part
    )
