"""The fidelity matrix: how every kind of values fares with every transport, for a terminal, as CSV and as Markdown."""

from __future__ import annotations

import csv
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from harness.model import Fate, Finding, LabError
from harness.report.markdown import table
from harness.report.page import templates

COLUMNS = ("transport", "kind", "outcome", "declared", "detail")
_MARKS = {
    Fate.EXACT: "·",
    Fate.CONVERTED: "c",
    Fate.CHANGED: "X",
    Fate.REFUSED: "r",
    Fate.HANGS: "H",
    Fate.CRASHES: "K",
    Fate.UNAVAILABLE: "-",
    Fate.UNVERIFIABLE: "?",
}
LEGEND = (
    "· exact; c converted: every value came through, in another dtype; X changed, silently; r refused with an error; "
    "H hangs; K the process dies; - unavailable here; ? the reference client cannot vouch for it; "
    "! not what the transport declares"
)


def loses(lossy: dict[str, str]) -> str:
    """Return the declared losses of a transport in one line: `changed nulls, nan; refused arrays`."""
    by_fate = {fate: [kind for kind in lossy if lossy[kind] == fate] for fate in Fate}
    return "; ".join(f"{fate} {', '.join(kinds)}" for fate, kinds in by_fate.items() if kinds)


def grid(findings: Sequence[Finding], width: int) -> list[str]:
    """Return the matrix as lines of at most `width` characters where that is possible: kinds above, one mark a pair."""
    kinds = list(dict.fromkeys(finding.kind for finding in findings))
    names = list(dict.fromkeys(finding.transport.id for finding in findings))
    left = max(map(len, names))
    room = max(1, (width - left - 1) // 2)
    lines: list[str] = []
    for start in range(0, len(kinds), room):
        lines += [*_block(findings, names, kinds[start : start + room], left), ""]
    return [*lines, *textwrap.wrap(LEGEND, max(width, 40))]


def _block(findings: Sequence[Finding], names: Sequence[str], kinds: Sequence[str], left: int) -> list[str]:
    marks = {
        (found.transport.id, found.kind): _MARKS[found.fate] + (" " if found.as_wanted else "!") for found in findings
    }
    tall = max(map(len, kinds))
    head = [" " * left + " " + " ".join(kind.rjust(tall)[row] for kind in kinds).rstrip() for row in range(tall)]
    rows = [f"{name:<{left}} " + "".join(marks.get((name, kind), "  ") for kind in kinds).rstrip() for name in names]
    return [*head, *rows]


def deviations(findings: Iterable[Finding]) -> list[str]:
    """Return each pair that is not as declared, one a line."""
    return [
        f"{found.transport.id}: {found.kind}: declared {found.wanted or 'exact or converted'}, found {found.fate}"
        + (f": {found.detail}" if found.detail else "")
        for found in findings
        if not found.as_wanted
    ]


@contextmanager
def appending(folder: Path) -> Iterator[Callable[[Finding], None]]:
    """Yield a function that appends a finding to fidelity.csv, so that a stopped run keeps its findings.

    Raises LabError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "fidelity.csv").open("w", newline="", encoding="utf-8", buffering=1) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            yield lambda f: writer.writerow((f.transport.id, f.kind, f.fate, f.wanted, f.detail))
    except OSError as error:
        raise LabError(f"cannot write to {folder}: {error.strerror or error}") from None


def write(folder: Path, findings: Sequence[Finding], conditions: str) -> list[Path]:
    """Write fidelity.csv in the order of the findings, fidelity.md and report.html; return their paths.

    Raises LabError.
    """
    strings = {"fidelity.md": markdown(findings, conditions), "report.html": page(findings, conditions)}
    with appending(folder) as append:
        for finding in findings:
            append(finding)
        for name, text in strings.items():
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / "fidelity.csv", *(folder / name for name in strings)]


def page(findings: Sequence[Finding], conditions: str) -> str:
    """Return the matrix as a self-contained HTML page: a line a transport, a column a kind, the detail on hover."""
    return (
        templates()
        .get_template("fidelity.html")
        .render(
            conditions=conditions,
            kinds=list(dict.fromkeys(finding.kind for finding in findings)),
            lines={name: {f.kind: f for f in found} for name, found in groupby(findings, lambda f: f.transport.id)},
            marks=_MARKS,
            legend=LEGEND,
            counts={fate: len(found) for fate, found in _by_fate(findings).items() if found},
            deviations=deviations(findings),
        )
    )


def markdown(findings: Sequence[Finding], conditions: str) -> str:
    """Return the matrix as a Markdown page: one line a transport, with the fate of each kind of values."""
    rows = []
    for name, group in groupby(findings, key=lambda finding: finding.transport.id):
        of_it = list(group)
        if all(finding.fate is Fate.UNAVAILABLE for finding in of_it):
            rows.append((f"`{name}`", "", f"unavailable: {of_it[0].detail}"))
            continue
        by_fate = {fate: [_flagged(one) for one in found] for fate, found in _by_fate(of_it).items()}
        came = [f"{len(by_fate[fate])} {fate}" for fate in (Fate.EXACT, Fate.CONVERTED) if by_fate[fate]]
        lost = [f"{fate}: {', '.join(kinds)}" for fate, kinds in by_fate.items() if kinds and fate not in _FINE]
        rows.append((f"`{name}`", ", ".join(came), "; ".join(lost)))
    wrong = [f"- {line.replace('*', chr(92) + '*')}" for line in deviations(findings)]
    parts = [
        "# Which values does each transport keep?",
        "One line a transport: the kinds of values that it keeps and loses ([every pair](fidelity.csv)).",
        table(("transport", "kinds kept", "kinds lost"), rows),
        *(("Not as declared (`!`):\n", "\n".join(wrong)) if wrong else ("All as declared.",)),
        f"{conditions}.",
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


_FINE = (Fate.EXACT, Fate.CONVERTED)


def _by_fate(findings: Iterable[Finding]) -> dict[Fate, list[Finding]]:
    found = list(findings)
    return {fate: [finding for finding in found if finding.fate is fate] for fate in Fate}


def _flagged(finding: Finding) -> str:
    return finding.kind + ("" if finding.as_wanted else "!")
