"""Transports ruled out by the values of the data, and error messages without the values of a user's own data.

Messages of clients and servers often quote the value that caused an error. The lab's own messages about such data do
not quote values; they may name a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from harness.datasets.user_data.losses import undeclared
from harness.model import Case, Outcome, Status
from harness.run.fault_attribution import no_space
from harness.systems import SYSTEMS

_OURS = {Status.OK, Status.TIMEOUT, Status.KILLED, Status.UNAVAILABLE, Status.UNSUPPORTED, Status.AGAIN}
_COUNTED = re.compile(
    r"expected \d+ rows, found \d+"
    r"|.+: \d+ of \d+ values differ( \(and \d+ more columns\))?"
    r"|\d+ of \d+ rows are not there as they should be: .+"
)
_CONVERTED = re.compile(r"(.+?: .+? (?:does not convert to|changes values when converted to) [\w(), ]+)")
_CAME = re.compile(r"(.+?): (.+?) does not convert to ")
_EXCEPTION = re.compile(r"(?:after the run: )?([A-Za-z_][\w.]*): ")
_KEPT_BACK = "its words may have values in them, and are not kept"


@dataclass(frozen=True, kw_only=True)
class DataRules:
    """Which datasets and transports do not fit together, with the reasons, and the user's own columns, if any.

    `columns` has their logical types; their values must not appear in the results.
    """

    ruled_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def unsupported(self, case: Case) -> str:
        """Return why the values of a case's data rule its transport out; empty if they do not."""
        return self.ruled_out.get((case.dataset, case.transport.id), "")

    def failed(self, status: Status, error: str) -> tuple[Status, str]:
        """Return a worker's failure, which may be about types that its transport declares nothing about."""
        return of_types(status, error, undeclared(self.columns))

    def redacted(self, outcome: Outcome) -> Outcome:
        """Return an outcome whose error has no value of the user's own data."""
        if not self.columns:
            return outcome
        return replace(outcome, error=without_values(outcome.status, outcome.error, self.columns))


def without_values(status: Status, error: str, columns: Iterable[str]) -> str:
    """Return the part of an error that results may contain: words of the lab, fixed words of a server, or a column."""
    if status in _OURS or _COUNTED.fullmatch(error):
        return error
    if status is Status.MISMATCH and (known := _CONVERTED.match(error)):
        return known[1].rstrip(": ")
    exception = _EXCEPTION.match(error)
    name = exception[1] if exception else "an error"
    if words := of_server(error):
        return f"{name}: {words}"
    named = _named(error, columns)
    about = f', about column "{named[0]}"' if len(named) == 1 else ""
    return f"{name}{about} ({_KEPT_BACK})"


def of_server(error: str) -> str:
    """Return the part of a server error that cannot contain a value of a row; empty without one."""
    return next((words for system in SYSTEMS.values() if (words := system.without_values(error))), "")


def of_types(status: Status, error: str, columns: Mapping[str, str]) -> tuple[Status, str]:
    """Return a failed outcome: a call that failed on types it declares nothing about, or changed them, is unsupported.

    `columns` are those of such types, with their logical types. The outcome gives an exception's name without its
    message. If the message names no column, any of them may be the cause. A server error about whole rows is not about
    a type.
    """
    came = _CAME.match(error) if status is Status.MISMATCH else None
    if came and came[1] in columns:
        return Status.UNSUPPORTED, f'{columns[came[1]]} (column "{came[1]}"): it came as {came[2]}'
    exception = _EXCEPTION.match(error) if status is Status.ERROR and not no_space(error) else None
    if not columns or not exception or of_server(error):
        return status, error
    suspects = _named(error, columns) or list(columns)
    return Status.UNSUPPORTED, f"{_by_type(suspects, columns)}: {exception[1]}"


def _by_type(columns: Iterable[str], logical_types: Mapping[str, str]) -> str:
    """Name the first column of each type, and how many more columns have it."""
    of_each: dict[str, list[str]] = {}
    for name in columns:
        of_each.setdefault(logical_types[name], []).append(name)
    more = {logical: f" and {len(names) - 1} more" if len(names) > 1 else "" for logical, names in of_each.items()}
    return " or ".join(f'{logical} (column "{names[0]}"{more[logical]})' for logical, names in of_each.items())


def _named(error: str, columns: Iterable[str]) -> list[str]:
    return [name for name in columns if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error)]
