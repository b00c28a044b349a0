"""The A/A control: one function under two ids. What is not the same of the two is noise of this machine and run."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from harness.model import CONTROL, Origin
from harness.report.cells import with_interval
from harness.report.intervals import called, overlap
from harness.report.points import described
from harness.report.summary import Summary


def said(summaries: Sequence[Summary]) -> list[str]:
    """Return one line for each control: whether the two came out as a tie, and loudly where they did not."""
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
    interval = called((one.n, other.n))
    figures = f"{with_interval(one)} and {with_interval(other)} s" + (
        f"; in brackets the {interval}" if interval else ""
    )
    if one.interval is None or other.interval is None:
        return f"A/A control of {subject}: not judged, fewer than 3 runs ({figures})."
    if overlap(one.interval, other.interval):
        first, second = sorted((one.took, other.took))
        return (
            f"A/A control of {subject}: a tie, as it must be ({figures}); the medians of one function under "
            f"two ids are {second / first - 1:.0%} apart by chance alone."
        )
    return (
        f"A/A CONTROL FAILED, {subject}: one function under two ids came out as different ({figures}). "
        "Do not believe differences of this size between transports of this run"
        f"{_by_chance(one.n, other.n)}."
    )


def _by_chance(one: int, other: int) -> str:
    """Say how often that happens to equal transports: all runs of one, so their interval, below all of the other."""
    if max(one, other) > 5:  # of more runs the interval is less than their range
        return ""
    return f"; {one} and {other} runs of equal transports come out so in {2 / comb(one + other, one):.0%} of all cases"
