"""Figures as texts, for every table: what is missing is an empty text, never 0."""

import math
import re
from collections.abc import Callable, Iterable, Mapping

from harness.model import CONTROL, Fate, Origin
from harness.report import ranks
from harness.report.summary import Summary

CHANGES, REFUSES = "†", "‡"
_MEANING = {CHANGES: "silently changes", REFUSES: "refuses"}


def marks(lossy: Mapping[str, str]) -> str:
    """Return the marks of what a transport is declared to lose: a silent change and a refusal are never one mark.

    A call that hangs or crashes hands nothing over either: it is marked as a refusal.
    """
    fates = set(lossy.values())
    return (CHANGES if Fate.CHANGED in fates else "") + (REFUSES if fates - {Fate.CHANGED} else "")


def marked(name: str, lossy: Mapping[str, str]) -> str:
    """Return the name of a transport with its marks."""
    return f"{name} {marks(lossy)}".rstrip()


def legend(of: Iterable[Mapping[str, str]]) -> str:
    """Say what the marks of these transports mean; empty where none has a mark."""
    found = {mark for lossy in of for mark in marks(lossy)}
    said = ", ".join(f"{mark} {meaning}" for mark, meaning in _MEANING.items() if mark in found)
    return said and f"{said} some kinds of values"


def apart(transport: str) -> str:
    """Return what sets a transport apart from its client's others in its direction: the end of its id."""
    return transport.rpartition(".")[2].split("_", 2)[-1]


def spelled(transport: str, summary: str) -> str:
    """Return the call that people write, as the summary of its transport spells it: `insert_df` of `write_pandas_df`.

    The name of the function ends as the call does; where its summary has no such word, that end is the name.
    """
    found = re.search(rf"\b\w*{apart(transport)}\b", summary)
    return found[0] if found else apart(transport)


def called(transport: str, summary: str = "") -> str:
    """Return a transport's client and its call, where its direction is known: `psycopg tuned`."""
    return f"{transport.split('.')[1]} {spelled(transport, summary)}"


def cells(summary: Summary) -> dict[str, str]:
    """Return a summary's figures as text, by the head of their column in a ranking."""
    peak = summary.peak_of_all_bytes
    values = (summary.fidelity).partition(":")[0]
    status = summary.status
    return {
        "#": ranks.shown(summary),
        "transport": name(summary),
        "workers": summary.workers,
        "median s": with_interval(summary),
        "avg s": _number(summary.mean_seconds, ".4f"),
        "rows/s": _number(summary.mean_rows_per_s, ",.0f"),
        "min": _number(summary.min_rows_per_s, ",.0f"),
        "max": _number(summary.max_rows_per_s, ",.0f"),
        "peak MB": megabytes(peak, lambda value: _number(value, ",.0f")),
        "of limit": _number(summary.share_of_limit, ".0%"),
        "published": _number(summary.published_mean_rows_per_s, ",.0f"),
        "published s": significant(summary.published_mean_seconds),
        "ratio": _number(summary.ratio_to_published, ".2f"),
        "values": values if status == "ok" else f"{values} ({status})".strip() if values else status,
    }


def name(summary: Summary) -> str:
    """Return what a table calls a transport: its name in the published benchmark, else its id; of what it is a control.

    A control is called so wherever it stands: it is no transport of its own. Marks at the end of a name say what it is
    declared to lose; see `marks`.
    """
    if summary.origin == Origin.CONTROL:
        return f"A/A control of {summary.transport.removesuffix(CONTROL)}"
    return marked(summary.published_row or summary.transport, summary.lossy)


def in_words(case: Summary) -> str:
    """Return the client and what sets the transport apart from its others: `psycopg copy_binary`, `psycopg read_tuned`.

    One word alone says too little: there the operation stays.
    """
    apart = case.transport.rpartition(".")[2].removeprefix(f"{case.operation}_{case.frame}_")
    return f"{case.client} {apart if '_' in apart else f'{case.operation}_{apart}'}"


def with_interval(summary: Summary) -> str:
    """Return the median seconds with their interval: `0.48 (0.46-0.60)`."""
    ends = [significant(end) for end in summary.interval or ()]
    return f"{significant(summary.median_seconds)}" + (f" ({'-'.join(ends)})" if any(ends) else "")


def significant(value: float | None, digits: int = 3) -> str:
    """Return a number to so many significant digits without an exponent: 0.0123, 1.23, 123, 12,345."""
    if value is None or value == 0:
        return "" if value is None else "0"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return format(value, f",.{max(0, decimals)}f")


def as_printed(value: float | None) -> str:
    """Return an author's figure with the digits it was printed with, up to six: 45, 1,300, 0.0332002."""
    return "" if value is None else format(value, ",.6g")


def times(value: float | None, digits: int = 2) -> str:
    """Return a ratio to two significant digits, as precise as few runs make it: ×0.58, ×1.3, ×13, ×130."""
    return "" if value is None else f"×{significant(value, digits)}"


def megabytes(value: float | None, shown: Callable[[float | None], str] = significant) -> str:
    """Return bytes as MB (10^6), to three significant digits or as `shown` has it; below one it is "<1"."""
    return "<1" if value is not None and value < 1e6 else shown(None if value is None else value / 1e6)


def gigabytes(value: float | None) -> str:
    """Return bytes as GB (10^9) to three significant digits."""
    return significant(None if value is None else value / 1e9)


def volume(value: float) -> str:
    """Return a number of bytes with the unit that suits it: 1.72 GB, 210 MB."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{significant(value / size)} {unit}"
    return f"{value:,.0f} B"


def detail(name: str, value: float) -> str:
    """Return a further fact of a run with the unit that its name ends in: seconds, bytes, bytes per second."""
    if name.endswith("bytes_per_s"):
        return f"{volume(value)}/s"
    if name.endswith("bytes"):
        return volume(value)
    if name.endswith("seconds"):
        return f"{significant(value)} s"
    return f"{value:,.0f}" if float(value).is_integer() else significant(value)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
