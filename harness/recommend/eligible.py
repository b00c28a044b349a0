"""Who may race: transports of a database, direction and frame that bring these data through and that are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness import registry
from harness.datasets.user_data.data import UserData
from harness.datasets.user_data.losses import lost, why
from harness.model import LabError, Operation, Origin, Transport, unknown
from harness.recommend.blamed import by_declaration, most, nobody
from harness.recommend.script import needed


@dataclass(frozen=True)
class Wish:
    """What is asked: a database, into it or out of it, a frame, and what the person will not have.

    `without` are clients or Python modules; `style` is sync or async, empty for both. `program`: the winner is to be
    a program that runs as it stands.
    """

    system: str
    operation: Operation
    frame: str
    without: tuple[str, ...] = ()
    style: str = ""
    program: bool = False


@dataclass(frozen=True)
class LeftOut:
    """A transport that does not race, and why; `kind` is the kind of values, if it is one."""

    transport: Transport
    reason: str
    kind: str = ""


def all_of(wish: Wish) -> list[Transport]:
    """Return every transport that does what is asked, whatever the data."""
    return [
        entry
        for entry in registry.select(f"{wish.system}.*")
        if entry.operation == wish.operation and entry.frame == wish.frame and entry.moves_a_frame
    ]


def bounds_of(wish: Wish) -> list[Transport]:
    """Return what the server alone can do in this direction: statements over rows that it has, rows thrown away."""
    return [
        entry
        for entry in registry.select(f"{wish.system}.*")
        if entry.operation == wish.operation and entry.origin == Origin.LIMIT and not entry.needs
    ]


def divided(wish: Wish, data: UserData) -> tuple[list[Transport], list[LeftOut]]:
    """Return who may race on these data, and who may not and why. Raises LabError where nobody may."""
    entries = all_of(wish)
    _require_known(wish, entries)
    left_out = [LeftOut(entry, reason, kind) for entry in entries for reason, kind in _first_reason(entry, wish, data)]
    ruled_out = {one.transport.id for one in left_out}
    eligible = [entry for entry in entries if entry.id not in ruled_out]
    if not eligible:
        raise LabError(_nobody(left_out, data))
    return eligible, left_out


def _nobody(left_out: Sequence[LeftOut], data: UserData) -> str:
    """Say why nobody may race: the values of the data, what the person will not have, or both."""
    blamed = {one.transport.id: by_declaration(one.transport, data) for one in left_out if one.kind}
    unwanted = [one for one in left_out if not one.kind]
    if not unwanted:
        return nobody(blamed, data.logical_types, [one.reason for one in left_out])
    first = unwanted[0]
    said = f"none of {len(left_out)} transports is left: {first.reason} ({first.transport.id}) and others; ask for less"
    return f"{said}, or: {most(blamed, data.logical_types)}" if blamed else said


def _require_known(wish: Wish, entries: Sequence[Transport]) -> None:
    known = {entry.client for entry in entries} | {module for entry in entries for module in entry.modules}
    everywhere = {name for entry in registry.select("*") for name in (entry.client, *entry.modules)}
    for name in wish.without:
        if name not in everywhere:
            raise unknown("client or module for --without", name, sorted(known))
    if wish.style and wish.style not in {entry.style for entry in entries}:
        styles = ", ".join(sorted({entry.style for entry in entries}))
        raise LabError(f'expected a style of these transports ({styles}), found "{wish.style}"')


def _first_reason(entry: Transport, wish: Wish, data: UserData) -> Iterable[tuple[str, str]]:
    """Yield at most one reason, with the kind of values that it is about."""
    unwanted = [name for name in wish.without if name in {entry.client, *entry.modules}]
    if unwanted:
        yield f"without {unwanted[0]}", ""
    elif wish.style and entry.style != wish.style:
        yield f"its style is {entry.style}", ""
    elif wish.program and (more := needed(entry)):
        yield f"--script has no program for it: it needs {more}", ""
    elif kind := lost(entry, data):
        yield why(entry, kind, data), kind
