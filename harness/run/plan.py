"""The plan of a suite run: which cases, in which shuffled order. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from harness.model import Case, Experiment, Facts, LabError, Origin, Run, Transport, unknown
from harness.suites.suite import Size, Suite

ALL = "all"  # every origin: contenders and all other transports


@dataclass(frozen=True)
class Plan:
    """Everything that determines the runs; `seed` is that of the data."""

    suite: str
    size: str
    select: str
    experiments: tuple[Experiment, ...]
    passes: int
    seed: int
    time_limit: float

    def __post_init__(self) -> None:
        if type(self.passes) is not int or self.passes < 1:
            raise LabError(f"passes {self.passes!r}: give a whole number of at least 1")
        if not isinstance(self.time_limit, int | float) or not 0 < self.time_limit < math.inf:
            raise LabError(f"time_limit {self.time_limit!r}: give a number of seconds above 0")


def from_facts(facts: Facts) -> Plan:
    """Return the plan from the plain values of `dataclasses.asdict`. Raises TypeError or KeyError for wrong ones."""
    return Plan(**{**facts, "experiments": tuple(Experiment(**part) for part in facts["experiments"])})


def cases(plan: Plan, select: Callable[[str, str], Sequence[Transport]]) -> list[Case]:
    """Return every case of a plan, by experiment, transport and parameters.

    `select(pattern, among)` is `registry.select`. Experiments without any of the requested transports are skipped.
    Raises LabError if a pattern matches nothing in any experiment.
    """
    everything = ",".join(experiment.select for experiment in plan.experiments)
    wanted = {entry.id for entry in select(plan.select, everything)}
    found = [
        Case(entry, experiment.name, experiment.dataset, dict(zip(experiment.parameters, values, strict=True)))
        for experiment in plan.experiments
        for entry in sorted(select("*", experiment.select), key=lambda entry: entry.id)
        if entry.id in wanted and entry.id not in experiment.left_out
        if not experiment.origins or entry.origin in experiment.origins
        for values in product(*experiment.parameters.values())
    ]
    if not found:
        raise LabError(f"no experiment of this plan has a case for {plan.select} of the origins it asks for")
    return found


def shuffled_runs(plan: Plan, chosen: Sequence[Case], seed: str) -> list[Run]:
    """Return one run per case and pass: full passes one after the other, each in its own seeded order.

    The seed is the id of the suite run: with one seed for all, one order's luck would be in every published figure.
    Interleaving spreads slow periods of the machine over all cases (Abedi & Brecht, ICPE 2017).
    """
    ordered: list[tuple[int, Case]] = []
    for number in range(1, plan.passes + 1):
        shuffled = list(chosen)
        random.Random(f"{seed}/{number}").shuffle(shuffled)
        ordered += [(number, case) for case in shuffled]
    return [Run(case, number, order) for order, (number, case) in enumerate(ordered, start=1)]


def of_size(
    suite: Suite,
    size: str,
    only: str,
    seed: int,
    experiments: str | None = None,
    rows: int | None = None,
    passes: int | None = None,
    time_limit: float | None = None,
    origins: str | None = None,
) -> Plan:
    """Return the plan of a suite's size, changed by the user's options. Raises LabError.

    Without transports (`only`), origins or experiments, the suite's own choice for its experiments applies. With `all`
    origins alone, every transport runs, but no experiment that the suite runs only by name. `on_user_data` replaces the
    suite's data with the user's.
    """
    chosen = suite.size(size)
    asked = only != "*" or experiments is not None or origins not in (None, ALL)
    parts = _named(chosen.experiments, experiments) if asked else _unasked(suite, chosen, origins == ALL)
    return Plan(
        suite=suite.name,
        size=size,
        select=only,
        experiments=tuple(_with_origins(_with_rows(part, rows), origins) for part in parts),
        passes=chosen.passes if passes is None else passes,
        seed=seed,
        time_limit=chosen.time_limit if time_limit is None else time_limit,
    )


def origins_on_user_data(suite: Suite, origins: str | None) -> str:
    """Return the origins of a run on a user's own data: all by default.

    The contenders were determined on the lab's own table, and so were a size's origins. Raises LabError for a suite
    without databases, which cannot run on such data.
    """
    if suite.rig != "databases":
        raise LabError(f"suite {suite.name} is about its own data: choose a suite on databases, such as matrix")
    return ALL if origins is None else origins


def on_user_data(plan: Plan, dataset: str) -> Plan:
    """Return a plan with the user's own data instead of the suite's; their tables have no other rows before."""
    kept = [part for part in plan.experiments if "rows_before" not in part.parameters]
    return replace(plan, experiments=tuple(replace(part, dataset=dataset) for part in kept))


def _unasked(suite: Suite, size: Size, everything: bool) -> list[Experiment]:
    """Return a size's experiments if none is requested by name, or `everything` is."""
    found = []
    for part in size.experiments:
        wanted = size.unasked.get(part.name, "everything")
        if wanted != "nothing":
            few = wanted == "contenders" and not everything
            found.append(replace(part, left_out=sorted(suite.left_out)) if few else part)
    return found


def _named(experiments: tuple[Experiment, ...], names: str | None) -> list[Experiment]:
    if names is None:
        return list(experiments)
    known = {experiment.name: experiment for experiment in experiments}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise unknown("experiment", name, known)
    return [experiment for name, experiment in known.items() if name in wanted]


def _with_rows(experiment: Experiment, rows: int | None) -> Experiment:
    if rows is None:
        return experiment
    if rows < 1:
        raise LabError(f"rows {rows}: give a whole number of at least 1")
    if "rows" not in experiment.parameters:
        raise LabError(f"experiment {experiment.name} has no parameter rows; choose its amount of data with --size")
    parameters = experiment.parameters | {"rows": [rows]}
    if "rows_before" in parameters:  # the table keeps its size relative to the frame
        most = max(int(number) for number in experiment.parameters["rows"])
        parameters["rows_before"] = [max(1, int(number) * rows // most) for number in parameters["rows_before"]]
    return replace(experiment, parameters=parameters)


def _with_origins(experiment: Experiment, origins: str | None) -> Experiment:
    if origins is None:
        return experiment
    if origins == ALL:
        return replace(experiment, origins=[])
    wanted = [name.strip() for name in origins.split(",")]
    for name in wanted:
        if name not in list(Origin):
            raise unknown("origin", name, [*Origin, ALL])
    return replace(experiment, origins=wanted)
