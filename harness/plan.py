"""The plan of a suite run: which cases, in which shuffled order. Pure."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import Case, LabError, Run, Transport


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is run and in which order; the same plan gives the same order everywhere."""

    suite: str
    select: str
    dataset: str
    rows: int
    passes: int
    seed: int
    time_limit: float

    def __post_init__(self) -> None:
        for name, value in (("rows", self.rows), ("passes", self.passes)):
            if type(value) is not int or value < 1:
                raise LabError(f"expected {name} to be a whole number of at least 1, found {value!r}")
        if not isinstance(self.time_limit, int | float) or not 0 < self.time_limit < math.inf:
            raise LabError(f"expected time_limit in seconds above 0, found {self.time_limit!r}")


def shuffled_runs(plan: Plan, transports: Sequence[Transport]) -> list[Run]:
    """Return one run a transport and pass: full passes one after the other, each in its own seeded order.

    Interleaving spreads slow spells of the machine over all transports (Abedi & Brecht, ICPE 2017).
    """
    cases = [Case(entry, plan.dataset, plan.rows) for entry in sorted(transports, key=lambda entry: entry.id)]
    ordered: list[tuple[int, Case]] = []
    for number in range(1, plan.passes + 1):
        shuffled = list(cases)
        random.Random(f"{plan.seed}/{number}").shuffle(shuffled)
        ordered += [(number, case) for case in shuffled]
    return [Run(case, number, order) for order, (number, case) in enumerate(ordered, start=1)]
