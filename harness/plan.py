"""The plan of a suite run: which cases, in which shuffled order. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from harness.model import Case, Experiment, LabError, Run, Transport


@dataclass(frozen=True)
class Plan:
    """Everything that decides what is run and in which order; the same plan gives the same order everywhere."""

    suite: str
    size: str
    select: str
    experiments: tuple[Experiment, ...]
    passes: int
    seed: int
    time_limit: float

    def __post_init__(self) -> None:
        if type(self.passes) is not int or self.passes < 1:
            raise LabError(f"expected passes to be a whole number of at least 1, found {self.passes!r}")
        if not isinstance(self.time_limit, int | float) or not 0 < self.time_limit < math.inf:
            raise LabError(f"expected time_limit in seconds above 0, found {self.time_limit!r}")


def from_facts(facts: dict[str, Any]) -> Plan:
    """Return the plan that `dataclasses.asdict` turned into plain values. Raises TypeError or KeyError for others."""
    return Plan(**{**facts, "experiments": tuple(Experiment(**part) for part in facts["experiments"])})


def cases(plan: Plan, select: Callable[[str, str], Sequence[Transport]]) -> list[Case]:
    """Return every case of a plan, by experiment, transport and parameters.

    `select(pattern, among)` is `registry.select`. Experiments that have none of the transports asked for are left out.
    Raises LabError when a pattern matches nothing in any experiment.
    """
    everything = ",".join(experiment.select for experiment in plan.experiments)
    wanted = {entry.id for entry in select(plan.select, everything)}
    found = [
        Case(entry, experiment.name, experiment.dataset, dict(zip(experiment.parameters, values, strict=True)))
        for experiment in plan.experiments
        for entry in sorted(select("*", experiment.select), key=lambda entry: entry.id)
        if entry.id in wanted and (not experiment.origins or entry.origin in experiment.origins)
        for values in product(*experiment.parameters.values())
    ]
    if not found:
        raise LabError(f"no experiment of this plan has a case for {plan.select} of the origins it asks for")
    return found


def shuffled_runs(plan: Plan, chosen: Sequence[Case]) -> list[Run]:
    """Return one run a case and pass: full passes one after the other, each in its own seeded order.

    Interleaving spreads slow spells of the machine over all cases (Abedi & Brecht, ICPE 2017).
    """
    ordered: list[tuple[int, Case]] = []
    for number in range(1, plan.passes + 1):
        shuffled = list(chosen)
        random.Random(f"{plan.seed}/{number}").shuffle(shuffled)
        ordered += [(number, case) for case in shuffled]
    return [Run(case, number, order) for order, (number, case) in enumerate(ordered, start=1)]
