"""Two runs of a suite, case by case: the ratio of their times, and whether it shows a difference.

The ratio is that of the medians, with its 95 % interval (see `intervals`). The p-value of the same method decides
whether a difference is shown. It is corrected for the number of cases (Holm): of a hundred equal pairs, five would
differ by chance alone.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.model import LabError, label
from harness.report import markdown
from harness.report.figures import in_order, significant, times
from harness.report.intervals import CONFIDENCE, factor_interval, p_value
from harness.report.merging import differing, packages, written
from harness.report.summary import Summary, summarise
from harness.report.table import Section, Table
from harness.results.folder import StoredRun
from harness.results.row import Row
from harness.suites.suite import Suite

LEVEL = 1 - CONFIDENCE
NOTHING_SHOWN = "~"


@dataclass(frozen=True)
class CaseRatio:
    """One case of two runs, A and B; its fields are the columns of compared.csv."""

    experiment: str  # experiment of the suite
    transport: str  # id of the transport
    parameters: dict[str, str]  # parameters of the case
    n_a: int  # ok runs in A
    n_b: int  # ok runs in B
    median_seconds_a: float  # median of seconds in A
    median_seconds_b: float  # median of seconds in B
    ratio: float  # median of B / median of A: above 1 B takes longer
    ratio_low: float | None  # lower end of its 95 % interval
    ratio_high: float | None  # upper end
    p: float  # p-value of no difference; 1 where the runs say nothing of their scatter
    p_corrected: float  # the same, corrected for the number of cases (Holm)
    shown: str  # ~ where no difference is shown, else faster or slower: B


COLUMNS = tuple(one.name for one in fields(CaseRatio))


@dataclass(frozen=True)
class Compared:
    """Two runs compared: one line a case (COLUMNS), the cases without a counterpart, and the differences of the runs.

    `names` are the ids of run A and run B.
    """

    names: tuple[str, str]
    lines: list[CaseRatio]
    left_out: list[str]
    differs: tuple[str, ...]

    @property
    def geometric_mean(self) -> float | None:
        """The geometric mean of all ratios, also of those that show no difference; None without ratios."""
        return statistics.geometric_mean(line.ratio for line in self.lines) if self.lines else None


def compared(suite: Suite, one: StoredRun, other: StoredRun, anyway: bool) -> Compared:
    """Compare two runs.

    Raises LabError: of different suites, or (without `anyway`) with other data, versions, machines or labs.
    """
    suites = {run.suite for run in (one, other)}
    if suites != {suite.name}:
        raise LabError(f"runs of different suites: {', '.join(sorted(suites))}; compare two of one suite")
    names = (one.name, other.name)
    differs = tuple(differing(one.environment, other.environment, packages(one, other), machine=True))
    refused = [fact for fact in differs if not fact.endswith(" of the lab")]  # whose code may be the question
    if refused and not anyway:
        raise LabError(
            f"{names[0]} and {names[1]} differ in {'; '.join(refused)}: the ratios would not show which difference "
            "causes them; --anyway compares them, with a label"
        )
    return Compared(names, *_lines(one.rows, other.rows), differs)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected so that all of them hold together (Holm, 1979), in their order."""
    corrected, highest = [0.0] * len(values), 0.0
    for place, (value, number) in enumerate(sorted((value, number) for number, value in enumerate(values))):
        highest = max(highest, min(1.0, value * (len(values) - place)))
        corrected[number] = highest
    return corrected


def _lines(one: list[Row], other: list[Row]) -> tuple[list[CaseRatio], list[str]]:
    sides = [
        {(case.experiment, case.transport, case.label): case for case in summarise(rows, ())} for rows in (one, other)
    ]
    every, pairs = sides[0] | sides[1], []
    missing: dict[str, list[str]] = defaultdict(list)
    for key in sorted(every, key=lambda key: (*key[:2], in_order(every[key].parameters))):
        first, second = (side.get(key) for side in sides)
        if first and second and first.n and second.n:
            pairs.append((first, second))
        else:
            missing[_missing(first, second)].append(" ".join(filter(None, key)))
    known = [(first.estimate, second.estimate) for first, second in pairs]
    values = [p_value(second, first) if first and second else 1.0 for first, second in known]
    lines = [_line(*both, *p) for both, *p in zip(pairs, values, holm(values), strict=True)]
    return lines, [f"{'; '.join(cases)} ({reason})" for reason, cases in missing.items()]


def _missing(*both: Summary | None) -> str:
    """Say which run has no figures for the case, and why."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for side, case in zip("AB", both, strict=True):
        if case is None or not case.n:
            why = ": ".join(filter(None, (case.status, case.error))) if case else "not in this run"
            reasons[why].append(side)
    return "; ".join(f"{' and '.join(sides)}: {reason}" for reason, sides in reasons.items())


def _line(first: Summary, second: Summary, p: float, corrected: float) -> CaseRatio:
    factor = second.took / first.took
    low, high = factor_interval(factor, second.estimate, first.estimate) or (None, None)
    direction = "slower" if factor > 1 else "faster"
    return CaseRatio(
        first.experiment,
        first.transport,
        first.parameters,
        n_a=first.n,
        n_b=second.n,
        median_seconds_a=first.took,
        median_seconds_b=second.took,
        ratio=factor,
        ratio_low=low,
        ratio_high=high,
        p=p,
        p_corrected=corrected,
        shown=direction if corrected < LEVEL and factor != 1 else NOTHING_SHOWN,
    )


def table(found: Compared) -> Table:
    """Return the comparison as a table of strings, with everything that must be known to read it below."""
    head = ("transport", "parameters", "runs", "A median s", "B median s", "B / A", "95 %", "p", "shown")
    several = len({line.experiment for line in found.lines}) > 1
    every = [line.parameters for line in found.lines]
    first = every[0] if every else {}
    shared = {name: value for name, value in first.items() if all(one.get(name) == value for one in every)}
    alike = all(one == shared for one in every)
    rows = [_strings(line, several, {} if alike else shared) for line in found.lines]
    if found.geometric_mean is not None:
        mean = times(found.geometric_mean, 3)
        rows.append((f"geometric mean of {len(rows)}", "", "", "", "", mean, "", "", ""))
    return Table(
        title=", ".join(filter(None, (f"A: {found.names[0]}, B: {found.names[1]}", label(shared)))),
        head=head,
        rows=tuple(rows),
        notes=(
            *(f"A and B differ: {fact}" for fact in found.differs),
            f"{NOTHING_SHOWN} no difference is shown: p is {LEVEL:.2g} or more. p is corrected for "
            f"{len(found.lines)} cases (Holm); B / A: medians",
            *(f"not compared: {one}" for one in found.left_out),
        ),
        wide=frozenset({0, 1, len(head) - 1}),
        droppable=(*([(1,)] if alike else []), (3, 4), (2,)),
    )


def write(folder: Path, suite: Suite, found: Compared) -> tuple[Path, Path]:
    """Write compared.csv and compared.md into a folder and return their paths. Raises LabError: the disk refuses."""
    parts = [Section("compared", "Case by case", (table(found),))]
    text = markdown.document(f"{suite.title}: two runs compared", parts)
    return written(folder, "compared", COLUMNS, [list(asdict(line).values()) for line in found.lines], text)


def _strings(line: CaseRatio, several: bool, shared: Mapping[str, str]) -> tuple[str, ...]:
    ends = [significant(line.ratio_low), significant(line.ratio_high)]
    return (
        f"{line.transport} ({line.experiment})" if several else line.transport,
        label({name: value for name, value in line.parameters.items() if name not in shared}),
        str(line.n_a) if line.n_a == line.n_b else f"{line.n_a}, {line.n_b}",
        significant(line.median_seconds_a),
        significant(line.median_seconds_b),
        times(line.ratio, 3),
        "-".join(ends) if all(ends) else "",
        significant(line.p_corrected, 2),
        line.shown,
    )
