"""How much longer a call takes through the embedded gateway than through ClickHouse's own handlers.

    .venv/bin/python -m benchmarks.gateway RUN RUN [RUN ...] [--write]

Give runs of the same transports, by id or folder: some of the embedded lab, and as many with --external, against a
server of the same version. Each kind has runs of 1 row and of 100,000. Alternate them, because a machine's pace lasts
for minutes:

    .venv/bin/lab run matrix --experiment matrix --only 'clickhouse.*_p*' --rows 1 --passes 5

Prints a paragraph. --write puts it into docs/explanation/limits.md, and its medians into
benchmarks/recorded/gateway.csv.
"""

from __future__ import annotations

import csv
import sys
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from scipy.stats import spearmanr

from benchmarks import put_between
from harness import settings
from harness.model import LabError
from harness.results import folder as folders
from harness.results.folder import StoredRun
from harness.settings import ROOT

PAGE = ROOT / "docs" / "explanation" / "limits.md"
RECORDED = Path(__file__).with_name("recorded") / "gateway.csv"
WIDTH = 120  # of a line of the page
FEW, MANY = 1, 100_000  # rows of a call that shows its fixed cost, and of one that shows the order of the transports


@dataclass(frozen=True)
class Pair:
    """The median seconds of one transport at one number of rows, through either."""

    date: str
    version: str
    transport: str
    rows: int
    gateway: float
    own: float


def pairs(runs: Sequence[StoredRun]) -> list[Pair]:
    """Return the cases that runs of the embedded lab and of own servers share, with the median of all calls of each.

    Raises LabError if the servers differ in their version, or if no case is shared.
    """
    versions = {run.environment["servers"]["clickhouse"]["version"] for run in runs}
    if len(versions) > 1:
        raise LabError(f"servers of ClickHouse {' and '.join(sorted(versions))}: give runs of one version")
    seconds: dict[tuple[int, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for run in runs:
        for row in run.rows:
            if row.ok:
                seconds[int(row.parameters["rows"]), row.transport][run.environment["lab"] != "embedded"].append(
                    row.took
                )
    date, version = min(row.started_at for run in runs for row in run.rows)[:10], versions.pop()
    found = [
        Pair(date, version, name, rows, median(gateway), median(own))
        for (rows, name), (gateway, own) in sorted(seconds.items())
        if gateway and own
    ]
    if not found:
        raise LabError("no case is ok in both labs: give runs of the same transports, with --external and without")
    return found


def paragraph(found: Sequence[Pair]) -> str:
    """Return the paragraph of docs/explanation/limits.md."""
    added = sorted(1e3 * (one.gateway - one.own) for one in found if one.rows == FEW)
    low, _, high = quantiles(added, n=4)
    ordered: dict[str, list[Pair]] = defaultdict(list)
    for one in found:
        if one.rows == MANY:
            operation, frame, *_ = one.transport.rpartition(".")[2].split("_")
            ordered[f"{operation} {frame}"].append(one)
    alike = [
        float(spearmanr([one.gateway for one in group], [one.own for one in group]).statistic)
        for group in ordered.values()
        if len(group) > 2
    ]
    ratios = [one.gateway / one.own for one in found if one.rows == MANY]
    order = " to ".join(dict.fromkeys(f"{one:.2f}" for one in (min(alike), max(alike))))
    first = found[0]
    return (
        f"Through the gateway, a call of {FEW} row took {median(added):.1f} ms longer than through ClickHouse's own "
        f"handlers: the median of {len(added)} transports, of which the middle half took {low:.1f} to {high:.1f} ms "
        f"longer. A call of {MANY:,} rows took {median(ratios):.2f} times as long. Spearman's rank correlation of the "
        f"transports' order is {order} in each direction ({first.date}, ClickHouse {first.version})."
    )


def read(path: Path = RECORDED) -> list[Pair]:
    """Return the recorded medians."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Pair(
                row["date"],
                row["version"],
                row["transport"],
                int(row["rows"]),
                float(row["gateway"]),
                float(row["own"]),
            )
            for row in csv.DictReader(file)
        ]


def page(found: Sequence[Pair]) -> str:
    """Return the page with this paragraph between its marks."""
    return put_between(PAGE, "gateway.py", f"{textwrap.fill(paragraph(found), WIDTH)}\n")


def write(found: Sequence[Pair]) -> None:
    """Record the medians, and put the paragraph into its page."""
    with RECORDED.open("w", newline="", encoding="utf-8") as file:
        lines = csv.DictWriter(file, asdict(found[0]), lineterminator="\n")
        lines.writeheader()
        lines.writerows(map(asdict, found))
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    place = settings.load().results_dir
    made = pairs([folders.read(folders.find(place, name)) for name in sys.argv[1:] if name != "--write"])
    print(paragraph(made))
    if "--write" in sys.argv:
        write(made)
