"""The A/A control: one function under two ids. Their ratio is 1; what the run makes of it is its noise."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import CONTROL, Origin
from harness.report.cells import significant
from harness.report.intervals import around, leaves_out_one, ratio
from harness.report.points import described
from harness.report.summary import Summary


def said(summaries: Sequence[Summary]) -> list[str]:
    """Return one line for each control: the ratio of the two with its interval, loudly where that leaves out 1."""
    cases = {(case.experiment, case.label, case.transport): case for case in summaries}
    return [
        _line(cases.get((case.experiment, case.label, case.transport.removesuffix(CONTROL))), case)
        for case in summaries
        if case.origin == Origin.CONTROL
    ]


def _line(one: Summary | None, other: Summary) -> str:
    where = ", ".join(described(*part) for part in other.parameters.items())
    subject = f"{other.transport.removesuffix(CONTROL)}{f', {where}' if where else ''}"
    if one is None or not one.n or not other.n:
        return f"A/A control of {subject}: not judged, the two do not both have an ok run."
    figures = f"{significant(one.took)} and {significant(other.took)} s, {one.n} and {other.n} runs"
    factor = other.took / one.took
    if one.estimate is None or other.estimate is None:
        return (
            f"A/A control of {subject}: {factor:.3f} times as long as itself; no interval of so few runs ({figures})."
        )
    found = around(factor, ratio(other.estimate, one.estimate))
    times = f"{factor:.3f} times as long as itself (95 % interval {found[0]:.3f} to {found[1]:.3f}; {figures})"
    if not leaves_out_one(found):
        return f"A/A control of {subject}: {times}."
    return (
        f"A/A CONTROL FAILED, {subject}: one function under two ids came out as different, {times}. Do not believe "
        "differences of this size between transports of this run; chance does this to about every twentieth control."
    )
