"""The transports that may race: those of a database, direction and frame that the user wants and that lose no value."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness import registry
from harness.datasets.user_data.data import UserData
from harness.datasets.user_data.losses import lost, why
from harness.model import LabError, Operation, Origin, Transport
from harness.recommend import require_known, transports
from harness.recommend.budget import BUDGET, REPORT_SECONDS
from harness.recommend.none_left import by_declaration, most, why_none
from harness.recommend.script import needed


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A user's request: the data, a database, into it or out of it, a frame, the lab, and exclusions.

    `without` are excluded clients or Python modules; `style` is sync or async, empty for both. With `program` the
    winner must be a program that runs without further arguments. `budget` is the time limit in seconds, from `started`
    on by the monotonic clock. `max_memory` is the number of bytes that a transport may use. `defaults` are transports
    that are timed in any case, the default of a direction first. `ranked` are transports by their times in an earlier
    run. `run_id` is a race to resume in `folder`. `source` is the name of the data's file, if it has one and may be
    shown. `reserve` are the seconds of the budget for all that follows the last run.
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
    ranked: tuple[str, ...] = ()
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
        raise LabError(_none_eligible(left_out, asked.data))
    return eligible, left_out


def _none_eligible(left_out: Sequence[LeftOut], data: UserData) -> str:
    """Say why no transport may race: the values of the data, the user's exclusions, or both."""
    blamed = {one.transport.id: by_declaration(one.transport, data) for one in left_out if one.kind}
    unwanted = [one for one in left_out if not one.kind]
    if not unwanted:
        return why_none(blamed, data.logical_types, [one.reason for one in left_out])
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
