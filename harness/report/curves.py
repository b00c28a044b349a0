"""The transports of each direction at all their numbers of rows: what costs and crossings are found from. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.model import Operation, Origin, label
from harness.report.answers import FRAMES, is_exact
from harness.report.points import in_order
from harness.report.summary import Summary
from harness.results.row import Row, ok_rows
from harness.systems import SYSTEMS

_COMPETING = (Origin.PUBLISHED, Origin.BEYOND)
_PLACES = {name: system.place for name, system in SYSTEMS.items()}


Curve = Mapping[int, Summary]  # by the number of rows, fewest first
_Where = tuple[str, str, str, str, str]  # system, operation, frame, dataset, other parameters


@dataclass(frozen=True)
class Direction:
    """Where data come from and go to, and the curves (by id) of the transports that compete there.

    `parameters` are what the cases have in common but their rows; `dataset` is what they move.
    """

    system: str
    operation: str
    frame: str
    dataset: str
    parameters: Mapping[str, str]
    curves: Mapping[str, Curve]

    @property
    def exact(self) -> dict[str, Curve]:
        """The curves of what brings every value back exact, at the sizes where it does."""
        kept = {name: {rows: one for rows, one in of.items() if is_exact(one)} for name, of in self.curves.items()}
        return {name: of for name, of in kept.items() if of}

    @property
    def name(self) -> str:
        """What tells it from all others of its run; the draws of intervals go by it."""
        return "/".join((self.system, self.operation, self.frame, self.dataset, label(self.parameters)))


def directions(rows: Iterable[Row], summaries: Sequence[Summary], experiments: Iterable[str]) -> list[Direction]:
    """Return the directions of some experiments: pandas first, databases in their order, writes first.

    `summaries` are those of `rows`. Cases of one transport that differ in their rows alone make one curve, whichever of
    the experiments they are from; bounds and controls are left out, and so is a case without an ok run.
    """
    wanted = set(experiments)
    datasets = {row.case: row.dataset for row in ok_rows(rows)}
    found: dict[_Where, dict[str, dict[int, Summary]]] = defaultdict(lambda: defaultdict(dict))
    parameters: dict[_Where, dict[str, str]] = {}
    for case in summaries:
        if case.experiment in wanted and competes(case):
            dataset = datasets[case.experiment, case.transport, case.label]
            rest = {name: value for name, value in case.parameters.items() if name != "rows"}
            where = (case.system, case.operation, case.frame, dataset, label(rest))
            parameters[where] = rest
            found[where][case.transport][case.rows or 0] = case
    ordered = sorted(found, key=lambda where: _place(where, parameters[where]))
    return [_direction(where, parameters[where], found[where]) for where in ordered]


def _direction(where: _Where, parameters: Mapping[str, str], found: Mapping[str, Mapping[int, Summary]]) -> Direction:
    system, operation, frame, dataset, _ = where
    curves = {name: {rows: of[rows] for rows in sorted(of)} for name, of in sorted(found.items())}
    return Direction(system, operation, frame, dataset, parameters, curves)


def competes(case: Summary) -> bool:
    """Say whether a case is one of a transport that moves a frame, and has figures: no bound, no control."""
    return bool(case.rows and case.n and case.frame in FRAMES and case.origin in _COMPETING)


def place(system: str, operation: str, frame: str) -> tuple[int, int, bool, str]:
    """Return a key that sorts directions: pandas first, databases in their order, writes first."""
    return FRAMES.index(frame), _PLACES.get(system, len(_PLACES)), operation != Operation.WRITE, operation


def _place(where: _Where, parameters: Mapping[str, str]) -> tuple[Any, ...]:
    system, operation, frame, dataset, _ = where
    return *place(system, operation, frame), dataset, in_order(parameters)
