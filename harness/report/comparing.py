"""Two runs of a suite, case by case: how many times as long the second takes, and whether that is shown.

The ratio is that of the medians, with a 95 % bootstrap interval. Whether there is a difference at all is asked of the
ranks of the seconds (Mann and Whitney's U, two-sided), since times are skewed; the p-values are corrected for the
number of cases (Holm), since of a hundred equal pairs five would differ by chance alone.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.model import LabError, label
from harness.report import markdown
from harness.report.figures import in_order, significant, times
from harness.report.intervals import CONFIDENCE, called, ratio_interval
from harness.report.merging import differing, packages, written
from harness.report.table import Section, Table
from harness.results.folder import StoredRun
from harness.results.row import Row
from harness.suites.suite import Suite

LEVEL = 1 - CONFIDENCE
NOTHING_SHOWN = "~"
_EVERY_ORDER = 9_999  # permutations, as many as are gone through one by one; of more runs p is computed otherwise
Key = tuple[str, str, str]


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
    ratio_low: float | None  # lower end of its interval (bootstrap, nominally 95 %)
    ratio_high: float | None  # upper end
    p: float  # p-value of Mann and Whitney's U
    p_corrected: float  # the same, corrected for the number of cases (Holm)
    shown: str  # ~ where no difference is shown, else faster or slower: B


COLUMNS = tuple(one.name for one in fields(CaseRatio))


@dataclass(frozen=True)
class Compared:
    """Two runs set against each other: one line a case (COLUMNS), cases that cannot be compared, and what differs.

    `names` are the ids of run A and run B.
    """

    names: tuple[str, str]
    lines: list[CaseRatio]
    left_out: list[str]
    differs: tuple[str, ...]

    @property
    def geometric_mean(self) -> float | None:
        """Of all ratios, also of those that show nothing; None where there are none."""
        return statistics.geometric_mean(line.ratio for line in self.lines) if self.lines else None


def compared(suite: Suite, one: StoredRun, other: StoredRun, anyway: bool) -> Compared:
    """Compare two runs.

    Raises LabError: of different suites, or (without `anyway`) with other data, versions, machines or labs.
    """
    suites = {run.suite for run in (one, other)}
    if suites != {suite.name}:
        raise LabError(f"expected two runs of one suite, found {', '.join(sorted(suites))}")
    names = (one.name, other.name)
    differs = tuple(_differing(one, other))
    refused = [fact for fact in differs if not fact.endswith(" of the lab")]  # whose code may be the question
    if refused and not anyway:
        raise LabError(
            f"{names[0]} and {names[1]} differ in {'; '.join(refused)}: how much of a ratio is due to that cannot be "
            "told; --anyway compares them all the same, labelled"
        )
    return Compared(names, *_lines(names, one.rows, other.rows), differs)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected so that all of them hold together (Holm, 1979), in their order."""
    corrected, highest = [0.0] * len(values), 0.0
    for place, (value, number) in enumerate(sorted((value, number) for number, value in enumerate(values))):
        highest = max(highest, min(1.0, value * (len(values) - place)))
        corrected[number] = highest
    return corrected


def p_value(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p-value of Mann and Whitney's U; exact for few runs, also where values are equal.

    A single run shows nothing: 1.
    """
    from scipy import stats  # not at the top: a second that other commands need not wait

    if min(len(one), len(other)) < 2:
        return 1.0
    few = math.comb(len(one) + len(other), len(one)) <= _EVERY_ORDER
    method = stats.PermutationMethod(n_resamples=_EVERY_ORDER) if few else "auto"
    return min(1.0, float(stats.mannwhitneyu(one, other, method=method).pvalue))


def smallest_p(one: int, other: int) -> float:
    """Return the smallest p-value that so many runs can have: every run of one side below every run of the other."""
    return 1.0 if min(one, other) < 2 else 2 / math.comb(one + other, one)


def runs_needed(cases: int) -> int:
    """Return how many runs on both sides it takes that one of so many cases can show a difference at all."""
    return next(n for n in range(1, 1_000) if cases * smallest_p(n, n) < LEVEL)


def too_few(lines: Sequence[CaseRatio]) -> str:
    """Say that no case has runs enough to show a difference, and how many it would take; empty where one has."""
    several = f"{len(lines)} {'case is' if len(lines) == 1 else 'cases are'} compared at once"
    least = min((smallest_p(line.n_a, line.n_b) for line in lines), default=0.0)
    if least * len(lines) < LEVEL:
        return ""
    return (
        f"no difference can be shown by so few runs: their smallest possible p is {least:.2g}, and {several}; it needs "
        f"at least {runs_needed(len(lines))} passes in both runs"
    )


def _differing(one: StoredRun, other: StoredRun) -> Iterator[str]:
    first, second = one.environment, other.environment
    yield from differing(first, second, packages(one, other))
    for name in ("lab", "python"):
        if first[name] != second[name]:
            yield f"{name} ({first[name]} and {second[name]})"
    ours, theirs = first["machine"], second["machine"]
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            yield f"machine: {name.replace('_', ' ')} ({ours.get(name)} and {theirs.get(name)})"


def _lines(names: tuple[str, str], one: list[Row], other: list[Row]) -> tuple[list[CaseRatio], list[str]]:
    a, b = _by_case(one), _by_case(other)
    pairs: dict[Key, tuple[list[float], list[float]]] = {}
    left_out = []
    parameters = {key: rows[0].parameters for key, rows in (a | b).items()}
    for key in sorted(parameters, key=lambda key: (key[0], key[1], in_order(parameters[key]))):
        first, second = ([row.took for row in side.get(key, ()) if row.ok] for side in (a, b))
        if first and second:
            pairs[key] = first, second
        else:
            left_out.append(f"{' '.join(filter(None, key))} ({_missing(a.get(key), b.get(key), [first, second])})")
    values = [p_value(*seconds) for seconds in pairs.values()]
    lines = [
        _line(key, parameters[key], *seconds, "/".join((*names, *key)), of_case)
        for (key, seconds), of_case in zip(pairs.items(), zip(values, holm(values), strict=True), strict=True)
    ]
    return lines, left_out


def _by_case(rows: list[Row]) -> dict[Key, list[Row]]:
    cases: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        cases[row.case].append(row)
    return cases


def _missing(one: list[Row] | None, other: list[Row] | None, seconds: list[list[float]]) -> str:
    """Say in which run there is nothing to compare, and why."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for side, rows, known in zip("AB", (one, other), seconds, strict=True):
        if not known:
            reasons[_why(rows)].append(side)
    return "; ".join(f"{' and '.join(sides)}: {reason}" for reason, sides in reasons.items())


def _why(rows: list[Row] | None) -> str:
    if not rows:
        return "not in this run"
    return ": ".join(filter(None, (str(rows[0].status), rows[0].error)))


def _line(
    key: Key, parameters: dict[str, str], one: list[float], other: list[float], name: str, p: tuple[float, float]
) -> CaseRatio:
    medians = statistics.median(one), statistics.median(other)
    ratio = medians[1] / medians[0]
    low, high = ratio_interval(other, one, name) or (None, None)
    direction = "slower" if ratio > 1 else "faster"
    return CaseRatio(
        *key[:2],
        parameters,
        n_a=len(one),
        n_b=len(other),
        median_seconds_a=medians[0],
        median_seconds_b=medians[1],
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        p=p[0],
        p_corrected=p[1],
        shown=direction if p[1] < LEVEL and ratio != 1 else NOTHING_SHOWN,
    )


def table(found: Compared) -> Table:
    """Return the comparison as a table of texts, with everything that must be known to read it below."""
    many = called(n for line in found.lines for n in (line.n_a, line.n_b))
    interval = many if many == "95 %" else "interval"  # of a ratio, also of few runs, it is no range
    head = ("transport", "parameters", "runs", "A median s", "B median s", "B / A", interval, "p", "shown")
    several = len({line.experiment for line in found.lines}) > 1
    rows = [_texts(line, several) for line in found.lines]
    if found.geometric_mean is not None:
        mean = times(found.geometric_mean, 3)
        rows.append((f"geometric mean of {len(rows)}", "", "", "", "", mean, "", "", ""))
    needed = too_few(found.lines)
    return Table(
        title=f"A: {found.names[0]}, B: {found.names[1]}",
        head=head,
        rows=tuple(rows),
        notes=(
            *(f"A and B differ: {fact}" for fact in found.differs),
            *((needed,) if needed else ()),
            f"{NOTHING_SHOWN} no difference is shown: p is {LEVEL:.2g} or more. p: Mann-Whitney U, corrected for "
            f"{len(found.lines)} cases (Holm); B / A: medians; {interval}: bootstrap, none for fewer than 3 runs",
            *(f"not compared: {one}" for one in found.left_out),
        ),
        wide=frozenset({0, 1, len(head) - 1}),
        droppable=((3, 4), (2,)),
    )


def write(folder: Path, suite: Suite, found: Compared) -> tuple[Path, Path]:
    """Write compared.csv and compared.md into a folder and return their paths. Raises LabError: the disk refuses."""
    parts = [Section("compared", "Case by case", (table(found),))]
    text = markdown.document(f"{suite.title}: two runs compared", parts)
    return written(folder, "compared", COLUMNS, [list(asdict(line).values()) for line in found.lines], text)


def _texts(line: CaseRatio, several: bool) -> tuple[str, ...]:
    ends = [significant(line.ratio_low), significant(line.ratio_high)]
    return (
        f"{line.transport} ({line.experiment})" if several else line.transport,
        label(line.parameters),
        str(line.n_a) if line.n_a == line.n_b else f"{line.n_a}, {line.n_b}",
        significant(line.median_seconds_a),
        significant(line.median_seconds_b),
        times(line.ratio, 3),
        "-".join(ends) if all(ends) else "",
        significant(line.p_corrected, 2),
        line.shown,
    )
