"""The transports that may race: those of a database, direction and frame that the user wants and that lose no value."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import registry
from harness.check.logical_types import plain
from harness.datasets.user_data.data import UserData
from harness.datasets.user_data.losses import each_lost, lost, why
from harness.model import LabError, Operation, Origin, Status, Transport
from harness.recommend import require_known, transports
from harness.recommend.budget import BUDGET, REPORT_SECONDS
from harness.recommend.script import needed
from harness.run.redaction import of_server

# The columns that rule out the most transports, if no transport is left. Pure.

_LIMITED = f"{Status.TIMEOUT}: "


def by_declaration(entry: Transport, data: UserData) -> set[str]:
    """Return the columns with values that a transport declares to lose."""
    return {name for hostile in each_lost(entry, data) for name in data.found[hostile]}


def by_failure(reason: str, columns: Collection[str]) -> set[str]:
    """Return the one column that the reason of a failure names; None if it names none of these, or several."""
    named = {name for name in columns if f'(column "{name}"' in reason}
    named |= {name for name in columns if re.match(rf"(mismatch: )?{re.escape(name)}: ", reason)}
    return named if len(named) == 1 else set()


def most(blamed: Mapping[str, Collection[str]], logical_types: Mapping[str, str]) -> str:
    """Say which two columns rule the most transports out, and how many; empty if no column is known to rule any out.

    `blamed` has the columns that each transport fails at alone, `logical_types` the logical types of the columns.
    """
    counted = Counter(name for columns in blamed.values() for name in columns)
    order = list(logical_types)
    ranked = sorted(counted.items(), key=lambda one: (-one[1], order.index(one[0])))
    said = ", ".join(
        f'column "{name}" ({plain(logical_types[name])}) alone rules out {count}' for name, count in ranked[:2]
    )
    return said and f"{said}; leave it out or cast it"


def shared(reasons: Iterable[str], columns: Collection[str]) -> tuple[str, int]:
    """Return the one cause of most failures that are about no column, and the number of transports with it.

    Equal words of a server are one cause, even if clients name the exception differently. Empty without such a cause.
    """
    causes = [of_server(reason) or reason for reason in reasons if not by_failure(reason, columns)]
    if not causes:
        return "", 0
    (cause, count), *_ = Counter(causes).most_common(1)
    return (cause, count) if count > 1 and 2 * count > len(causes) else ("", 0)


def nobody(
    blamed: Mapping[str, Collection[str]], logical_types: Mapping[str, str], reasons: Sequence[str], more: str = ""
) -> str:
    """Say that no transport is left: the cause that most share, and the columns that rule the most out.

    `reasons` are those of transports, `more` is the advice if the cause is the time limit of a run.
    """
    cause, count = shared(reasons, logical_types)
    found = [f"{count} say: {cause}" if cause else "", most(blamed, logical_types)]
    said = "; ".join(filter(None, found))
    helps = more if cause.startswith(_LIMITED) else ""
    return (
        f"none of {len(blamed)} transports keeps every value of these data"
        f"{f': {said}{helps}' if said else f', such as: {reasons[0]}'}"
    )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A user's request: the data, a database, into it or out of it, a frame, the lab, and exclusions.

    `without` are excluded clients or Python modules; `style` is sync or async, empty for both. With `program` the
    winner must be a program that runs without further arguments. `budget` is the time limit in seconds, from `started`
    on by the monotonic clock. `max_memory` is the number of bytes that a transport may use. `defaults` are transports
    that are timed in any case, the default of a direction first. `run_id` is a race to resume in `folder`. `source` is
    the name of the data's file, if it has one and may be shown. `reserve` are the seconds of the budget for all that
    follows the last run.
    """

    data: UserData
    system: str
    operation: Operation
    frame: str
    lab: str = "embedded"
    without: tuple[str, ...] = ()
    style: str = ""
    program: bool = False
    budget: float = BUDGET
    started: float = field(default_factory=time.monotonic)
    max_memory: int | None = None
    defaults: tuple[str, ...] = ()
    run_id: str = ""
    folder: Path | None = None
    source: str = ""
    reserve: float = REPORT_SECONDS


@dataclass(frozen=True)
class LeftOut:
    """A transport that does not race, and why; `kind` is the kind of values, if it is one."""

    transport: Transport
    reason: str
    kind: str = ""


def all_of(asked: Asked) -> list[Transport]:
    """Return every transport that fits the request, whatever the data."""
    return transports(asked.system, asked.operation, asked.frame)


def bounds_of(asked: Asked) -> list[Transport]:
    """Return the server's bound in this direction: statements over rows that it has, or rows that it discards."""
    return [
        entry
        for entry in registry.select(f"{asked.system}.*")
        if entry.operation == asked.operation and entry.origin == Origin.LIMIT and not entry.needs
    ]


def divided(asked: Asked) -> tuple[list[Transport], list[LeftOut]]:
    """Return the transports that may race on the data, and the excluded ones with reasons. Raises LabError if empty."""
    entries = all_of(asked)
    require_known(entries, asked.without, asked.style)
    left_out = [LeftOut(entry, reason, kind) for entry in entries for reason, kind in _first_reason(entry, asked)]
    ruled_out = {one.transport.id for one in left_out}
    eligible = [entry for entry in entries if entry.id not in ruled_out]
    if not eligible:
        raise LabError(_nobody(left_out, asked.data))
    return eligible, left_out


def _nobody(left_out: Sequence[LeftOut], data: UserData) -> str:
    """Say why no transport may race: the values of the data, the user's exclusions, or both."""
    blamed = {one.transport.id: by_declaration(one.transport, data) for one in left_out if one.kind}
    unwanted = [one for one in left_out if not one.kind]
    if not unwanted:
        return nobody(blamed, data.logical_types, [one.reason for one in left_out])
    first = unwanted[0]
    said = f"none of {len(left_out)} transports is left: {first.reason} ({first.transport.id}) and others; ask for less"
    return f"{said}, or: {most(blamed, data.logical_types)}" if blamed else said


def _first_reason(entry: Transport, asked: Asked) -> Iterable[tuple[str, str]]:
    """Yield at most one reason, with the kind of values that causes it."""
    unwanted = [name for name in asked.without if name in {entry.client, *entry.modules}]
    if unwanted:
        yield f"without {unwanted[0]}", ""
    elif asked.style and entry.style != asked.style:
        yield f"its style is {entry.style}", ""
    elif asked.program and (more := needed(entry)):
        yield f"--script has no program for it: it needs {more}", ""
    elif kind := lost(entry, asked.data):
        yield why(entry, kind, asked.data), kind
