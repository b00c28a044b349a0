"""Why no transport is left: the columns that rule out the most, and the cause that most failures share. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from harness.check.logical_types import plain
from harness.datasets.user_data.data import UserData
from harness.datasets.user_data.losses import each_lost
from harness.model import Status, Transport
from harness.run.redaction import of_server

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


def why_none(
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
