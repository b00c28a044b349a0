"""How often the lab's statements are true: made-up runs whose truth is known, with the scatter of real ones.

    .venv/bin/python -m benchmarks.coverage [tables]          print the table
    .venv/bin/python -m benchmarks.coverage [tables] --write  and put it into docs/explanation/statistics.md

Two models take their scatter from the committed reference runs. `lognormal`: each case of a table scatters as Smyth's
model says of a whole reference run. `recorded`: each case draws, with replacement, from five recorded runs of one case,
with their outliers; so few make it harsher than real runs. A fifth of the 40 transports of a table are equally fast.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from benchmarks import put_between
from harness.report.comparing import LEVEL, holm
from harness.report.crossings import crossing, fitted
from harness.report.intervals import (
    UNKNOWN,
    Estimate,
    Interval,
    RunSpread,
    around,
    draws,
    estimate,
    interval,
    middle,
    p_value,
    ratio,
    slower,
    spread_of,
)
from harness.results import runs_csv
from harness.settings import ROOT

MANY = 40  # transports of a table
EQUAL = MANY // 5  # of them as fast as the fastest
A_QUARTER = 1.25
SIZES = (1_000, 10_000, 100_000, 1_000_000)  # rows of a curve
TRIPS = (0.0005, 0.005, 0.02, 0.05)  # seconds of a round trip
DRAWS = 999
WIDEST = 0.6  # spread: no recorded case has more, where the tail of a chi-square has no end
PASSES = (3, 5, 7)
TABLES = 300
PAGE = ROOT / "docs" / "explanation" / "statistics.md"

Run = Sequence[Sequence[float]]  # the seconds of each case
Scatter = Callable[[int], "np.ndarray"]  # logarithms of so many runs about their truth
Hit = tuple[str, bool]


def reference_runs() -> list[Run]:
    """Return the seconds of the cases of each committed run that has several passes."""
    found: list[Run] = []
    for path in sorted((ROOT / "results" / "reference").glob("*/runs.csv")):
        runs: dict[str, dict[object, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in runs_csv.load(path):
            if row.ok:
                runs[row.run_id][row.case].append(row.took)
        several = ([seconds for seconds in cases.values() if len(seconds) > 2] for cases in runs.values())
        found += filter(None, several)
    return found


def spreads() -> str:
    """Say between which values s0 and d0 are in the committed runs."""
    found = [spread for run in reference_runs() if (spread := spread_of(run)) != UNKNOWN]
    priors, freedoms = ([getattr(one, name) for one in found] for name in ("prior", "freedom"))
    return (
        f"In the reference runs s0 is {min(priors):.2f} to {max(priors):.2f}, and d0 {min(freedoms):.1f} to "
        f"{max(freedoms):.1f}."
    )


def lognormal(runs: Sequence[Run], number: int, chance: np.random.Generator) -> Callable[[], Scatter]:
    """Return a function that draws how a case scatters, by Smyth's model of one of these runs."""
    spread = spread_of(runs[number % len(runs)])

    def drawn() -> Scatter:
        usual = min(spread.prior * math.sqrt(spread.freedom / chance.chisquare(spread.freedom)), WIDEST)
        return lambda many: chance.normal(0, usual, many)

    return drawn


def recorded(runs: Sequence[Run], _: int, chance: np.random.Generator) -> Callable[[], Scatter]:
    """Return a function that draws how a case scattered, of those with most passes."""
    cases = [np.log(case) for run in runs for case in run if len(case) >= 5]

    def drawn() -> Scatter:
        logs = cases[chance.integers(len(cases))]
        about = (logs - logs.mean()) * math.sqrt(len(logs) / (len(logs) - 1))
        return lambda many: chance.choice(about, many)

    return drawn


def hits(scatter: Callable[[], Scatter], passes: int, chance: np.random.Generator, curves: bool) -> Iterator[Hit]:
    """Make up one table, and yield each statement the lab would print about it with whether it is true."""
    truth = np.concatenate([np.ones(EQUAL), np.linspace(1.05, 3, MANY - EQUAL)])
    scatters = [scatter() for _ in truth]
    seconds = [(one * np.exp(of(passes))).tolist() for one, of in zip(truth, scatters, strict=True)]
    spread = spread_of(seconds)
    known = [found for one in seconds if (found := estimate(one, spread))]
    for one, found in zip(truth, known, strict=True):
        yield "interval of a time", holds(around(math.exp(found.mean), interval(found)), one)
    for (one, first), (other, second) in pairwise(zip(truth, known, strict=True)):
        claim = "two equal transports appear different" if one == other else "ratio of two transports named beforehand"
        yield claim, holds(ratio(second, first), other / one) == (one != other)
    yield from of_table(truth, known)
    yield from of_two_runs(scatters, spread, passes)
    yield from of_sweep(truth, known)
    if curves:
        yield from of_curves(scatters, spread, passes, chance)


def of_table(truth: np.ndarray, known: Sequence[Estimate]) -> Iterator[Hit]:
    """Yield the statements about the fastest of a table, and about ranks."""
    best = min(range(MANY), key=lambda place: known[place].mean)
    for place in set(range(MANY)) - {best}:
        found = ratio(known[place], known[best], MANY - 1)
        yield "ratio to the fastest of a table", holds(found, truth[place] / truth[best])
        if truth[best] == 1 and A_QUARTER - 0.1 < truth[place] < A_QUARTER + 0.1:
            yield "one that takes a quarter longer is shown to be slower", found[0] > 1
    yield "the truly fastest has rank 1", not any(slower(known[0], other, MANY - 1) for other in known[1:])


def of_two_runs(scatters: Sequence[Scatter], spread: RunSpread, passes: int) -> Iterator[Hit]:
    """Yield whether `lab compare` shows a difference anywhere between two runs that are the same."""
    a, b = ([np.exp(of(passes)).tolist() for of in scatters] for _ in "AB")
    spreads = spread_of(a), spread_of(b)
    pairs = [(estimate(one, spreads[0]), estimate(other, spreads[1])) for one, other in zip(a, b, strict=True)]
    corrected = holm([p_value(one, other) for one, other in pairs if one and other])
    yield "two equal runs: any of 40 cases appears different", min(corrected) < LEVEL


def of_sweep(truth: np.ndarray, known: Sequence[Estimate]) -> Iterator[Hit]:
    """Yield whether all intervals hold of five values of a parameter, against the one that came first."""
    five = range(EQUAL - 2, EQUAL + 3)  # two of them equal
    best = min(five, key=lambda place: known[place].mean)
    others = [place for place in five if place != best]
    yield (
        "all ratios of five values to the first of them",
        all(holds(ratio(known[at], known[best], len(others)), truth[at] / truth[best]) for at in others),
    )


def of_curves(
    scatters: Sequence[Scatter], spread: RunSpread, passes: int, chance: np.random.Generator
) -> Iterator[Hit]:
    """Yield the statements about two lines over rows that cross, and about the round trips of a transport."""
    rows, scattered = np.array(SIZES), iter(scatters)
    lines = [(0.02, 2e-6), (0.005, 4e-6)]
    drawn, at = [], crossing(SIZES, *(fixed + each * rows for fixed, each in reversed(lines)))
    for fixed, each in lines:
        runs = [((fixed + each * one) * np.exp(next(scattered)(passes))).tolist() for one in SIZES]
        known = [found for one in runs if (found := estimate(one, spread))]
        drawn.append(np.stack([draws(one, chance, DRAWS) for one in known], axis=-1))
        of_call, of_row = map(middle, fitted(SIZES, drawn[-1]))
        yield "fixed cost of a call", holds(of_call, fixed)
        yield "cost of a row", holds(of_row, each)
    yield "rows where two transports cross", holds(middle(crossing(SIZES, *reversed(drawn))), float(at))
    trips = [estimate(((0.01 + 3 * trip) * np.exp(next(scattered)(passes))).tolist(), spread) for trip in TRIPS]
    _, slope = fitted(TRIPS, np.stack([draws(one, chance, DRAWS) for one in trips if one], axis=-1))
    yield "round trips of a call", holds(middle(slope), 3)


def holds(found: Interval, truth: float) -> bool:
    """Say whether an interval holds the truth."""
    return found[0] <= truth <= found[1]


def shares(passes: int, tables: int, of: Callable[..., Callable[[], Scatter]], seed: int = 1) -> dict[str, float]:
    """Return how often each thing that the lab prints holds, over so many made-up tables of so many passes."""
    chance, runs = np.random.default_rng(seed), reference_runs()
    found: dict[str, list[bool]] = defaultdict(list)
    for number in range(tables):
        for claim, hit in hits(of(runs, number, chance), passes, chance, curves=number % 3 == 0):
            found[claim].append(hit)
    return {claim: float(np.mean(hit)) for claim, hit in found.items()}


def table(tables: int) -> str:
    """Return the table of the page."""
    columns = [(of, passes) for of in (lognormal, recorded) for passes in PASSES]
    found = [shares(passes, tables, of) for of, passes in columns]
    head = ["%", *(f"{of.__name__}, {passes} passes" for of, passes in columns)]
    lines = [head, ["---", *["---:"] * len(columns)]]
    lines += [[claim, *(f"{100 * one[claim]:.0f}" for one in found)] for claim in found[0]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def write(made: str) -> None:
    """Put the table into its page, after the spreads of the reference runs."""
    PAGE.write_text(put_between(PAGE, "coverage.py", f"{spreads()}\n\n{made}"), encoding="utf-8")


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:] if one.isdigit()]
    text = table(*(numbers or [TABLES]))
    print(text)
    if "--write" in sys.argv:
        write(text)
