"""The cost of a race's runs, and the number of transports whose remaining passes fit into the budget. Pure.

A run costs its call and its overhead: a process, its imports, preparing, verifying. The race estimates both from
earlier runs, of the same transport if possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from harness.model import LabError
from harness.settings import LONGEST_SECONDS

BUDGET = 85.0  # seconds, by default: the command ends within 90 on two quiet cores
REPORT_SECONDS = 4.0  # of the budget: for the report after the last run
REPORT_WORK = 2.0  # seconds that it takes on an idle machine
FIRST_GUESS = 0.35  # seconds of overhead of a call, before any run
OUTLYING = 2.0  # times the median of all: a single run counts no more
FEWEST = 3  # transports that the budget leaves in the race
SHARPEST = 0.5  # the ratio of sequential halving: the share of the field that goes on after a pass of all
RESERVE = 0.1  # of the time left: runs scatter


def require_possible(budget: float) -> None:
    """Raise LabError for an impossible budget."""
    if not 0 < budget <= LONGEST_SECONDS:
        raise LabError(f"--budget {budget:g}: give seconds above 0 and up to {LONGEST_SECONDS} (a week)")


@dataclass
class Prices:
    """The seconds of earlier runs, by transport and rows: calls, and their overhead."""

    _calls: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    _beside: dict[tuple[str, int], list[float]] = field(default_factory=dict)

    def note(self, transport: str, rows: int, call: float, cost: float | None) -> None:
        """Take in the seconds of a call and of the whole run, if they are known."""
        self._calls.setdefault((transport, rows), []).append(call)
        if cost is not None:
            self._beside.setdefault((transport, rows), []).append(max(cost - call, 0.0))

    def of(self, transport: str, rows: int) -> float:
        """Return the seconds that a run will probably take, with its overhead."""
        return self.call(transport, rows) + self._with_it(transport, rows)

    def call(self, transport: str, rows: int) -> float:
        """Return the seconds that its call will probably take; 0 without an earlier run."""
        nearest = _nearest(self._calls, transport, rows)
        return fmean(self._calls[transport, nearest]) * rows / nearest if nearest else 0.0

    def _with_it(self, transport: str, rows: int) -> float:
        """Return the overhead of a call: that at the nearest rows, plus its growth with other transports.

        Medians count, never a single run: the first run of a number of rows waits until the lab has filled its tables.
        """
        own = _nearest(self._beside, transport, rows)
        if own is None:
            return fmean(map(fmean, self._beside.values())) if self._beside else FIRST_GUESS
        seen = self._beside[transport, own]
        if own == rows and len(seen) > 1:
            return median(seen)
        if own == rows:
            of_all = [cost for (_, size), costs in self._beside.items() if size == rows for cost in costs]
            return min(seen[0], OUTLYING * median(of_all))
        here = [name for name, size in self._beside if size == rows and (name, own) in self._beside]
        more = [fmean(self._beside[name, rows]) - fmean(self._beside[name, own]) for name in here]
        return median(seen) + max(median(more) if more else 0.0, 0.0)


def _nearest(seen: Iterable[tuple[str, int]], transport: str, rows: int) -> int | None:
    """Return the nearest number of rows at which a transport ran; None if it did not run."""
    known = [size for name, size in seen if name == transport]
    return min(known, key=lambda size: abs(size - rows), default=None)


def going_on(costs: Sequence[float], passes: int, left: float) -> int:
    """Return the number of transports in the next pass, such that all passes end in the seconds left.

    `costs` are those of a run of each, the most promising first. The race cuts the field by the same ratio before each
    pass, no more sharply than the budget requires, and never below FEWEST.
    """
    return next(
        (many for many in range(len(costs), FEWEST, -1) if _total(costs, passes, many / len(costs)) <= left),
        min(FEWEST, len(costs)),
    )


def whole_pass_fits(costs: Sequence[float], passes: int, left: float) -> bool:
    """Say whether the seconds left suffice for one more pass of all and for a field that is halved from then on."""
    return sum(costs) + _total(costs, passes - 1, SHARPEST) <= left


def _total(costs: Sequence[float], passes: int, ratio: float) -> float:
    """Return the seconds of this number of passes of a field that is cut by a ratio before each."""
    sizes = (max(FEWEST, round(len(costs) * ratio**number)) for number in range(1, passes + 1))
    return sum(sum(costs[:size]) for size in sizes)
