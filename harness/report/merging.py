"""Runs of several machines side by side: a table of figures, a table of machines, and the differences that matter."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model import LabError
from harness.report import markdown
from harness.report.figures import significant, titled, volume
from harness.report.summary import Summary, case_name, summarise
from harness.report.table import Section, Table
from harness.results.environment import server_in_words
from harness.results.folder import Facts, StoredRun
from harness.results.runs_csv import as_cell
from harness.suites.suite import Suite

COLUMNS = (
    "environment",
    "experiment",
    "transport",
    "parameters",
    "n",
    "median s",
    "min",
    "max",
    "rows",
    "MB/s",
    "source",
    "output",
    "differs",
)
_WITHOUT_VALUES = ("data", "commit of the lab", "version of the lab")
MACHINE = ("environment", "system", "kernel", "CPU", "cores", "memory", "disk", "filesystem", "maker", "run")


@dataclass(frozen=True)
class MergedRun:
    """One of the runs side by side: its environment, its summaries, and its differences from the first run."""

    environment: Facts
    summaries: list[Summary]
    differs: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.environment["machine"].get("host") or self.environment["run_id"])


def merged(suite: Suite, runs: Sequence[StoredRun], anyway: bool) -> list[MergedRun]:
    """Return the runs, each with the differences that make it incomparable with the first.

    Raises LabError: fewer than two runs, another suite among them, or (without `anyway`) other data or versions.
    """
    if len(runs) < 2:
        raise LabError(f"{len(runs)} run to merge; name two or more")
    suites = {run.suite for run in runs}
    if suites != {suite.name}:
        raise LabError(f"runs of different suites: {', '.join(sorted(suites))}; merge those of one suite")
    first = runs[0]
    found = []
    for run in runs:
        differs = tuple(differing(first.environment, run.environment, packages(run)))
        if differs and not anyway:
            raise LabError(
                f"{run.name} and {first.name} differ in {'; '.join(differs)}: their figures are not "
                "comparable; --anyway shows them side by side, with a label"
            )
        found.append(MergedRun(run.environment, summarise(run.rows, suite.published), differs))
    return found


def packages(*runs: StoredRun) -> set[str]:
    """Return the packages that the transports of these runs use: other versions would falsify a comparison.

    A run of an earlier version of the lab does not name these packages: there all packages count.
    """
    return {name for run in runs for name in _used(run.environment, {row.transport for row in run.rows})}


def _used(facts: Facts, transports: set[str]) -> Iterable[str]:
    if "uses" not in facts:
        return facts.get("packages", {})
    return (name for transport in transports for name in facts["uses"].get(transport, ()))


def differing(first: Facts, other: Facts, needed: set[str], machine: bool = False) -> Iterator[str]:
    """Name the data, versions and commits in which two environments differ; of packages only those needed count.

    With `machine` also the labs, Pythons and machines count.
    """
    ours, theirs = (_comparable(facts, needed, machine) for facts in (first, other))
    for name in dict.fromkeys((*ours, *theirs)):
        known = ours.get(name), theirs.get(name)
        if known[0] != known[1]:
            yield name if name in _WITHOUT_VALUES else f"{name} ({known[0]} and {known[1]})"


def _comparable(facts: Facts, needed: set[str], machine: bool) -> dict[str, object]:
    packages, code = facts.get("packages", {}), facts.get("code", {})
    found = {"data": facts.get("data")} | {name: packages.get(name) for name in sorted(needed)}
    found |= {f"{name} server": server_in_words(one) for name, one in sorted(facts.get("servers", {}).items())}
    if machine:
        found |= {"lab": facts["lab"], "python": facts["python"]}
        found |= {f"machine: {name.replace('_', ' ')}": facts["machine"][name] for name in sorted(facts["machine"])}
    return found | {"commit of the lab": code.get("commit"), "version of the lab": code.get("version")}


def figures(runs: Sequence[MergedRun]) -> Table:
    """Return a table with a line for each case of each run, cases side by side."""
    everything = [(place, run, one) for place, run in enumerate(runs) for one in run.summaries]
    everything.sort(key=lambda found: (found[2].experiment, found[2].transport, found[2].label, found[0]))
    rows = tuple(
        (
            run.name,
            titled(one.experiment),
            case_name(one),
            one.label,
            str(one.n),
            *map(significant, (one.median_seconds, one.min_seconds, one.max_seconds)),
            f"{one.rows:,}" if one.rows else "",
            significant(one.mb_per_s),
            *(volume(size) if size else "" for size in (one.bytes, one.details.get("output_bytes"))),
            "; ".join(run.differs) or ("" if one.n else one.status),
        )
        for _, run, one in everything
    )
    notes = [
        "MB/s are bytes of the source by the median of wall time, in which everything is: reading, parsing, "
        "transforming, writing."
    ]
    if any(run.differs for run in runs):
        notes.append("A run that differs in what is named is listed because it was asked for.")
    words = {COLUMNS.index(name) for name in ("environment", "experiment", "transport", "parameters", "differs")}
    return Table("Figures", COLUMNS, rows, tuple(notes), wide=frozenset(words))


def machines(runs: Sequence[MergedRun]) -> Table:
    """Return a table with a line for each machine."""
    rows = []
    for run in runs:
        facts, environment = run.environment["machine"], run.environment
        memory, virtual = f"{facts['memory_bytes'] / 2**30:.0f} GiB", "virtual machine" if facts.get("virtual") else ""
        known = (run.name, facts["system"], facts["kernel"], facts["cpu"] or facts["architecture"], str(facts["cores"]))
        disk = (environment.get("disk") or "", environment.get("server_filesystem") or "")
        maker = " ".join(filter(None, (facts.get("maker"), virtual)))
        rows.append((*known, memory, *disk, maker, environment["run_id"]))
    return Table("Machines", MACHINE, tuple(rows), wide=frozenset(range(len(MACHINE))))


def write(folder: Path, suite: Suite, runs: Sequence[MergedRun]) -> tuple[Path, Path]:
    """Write merged.csv and merged.md into a folder and return their paths. Raises LabError: it cannot be written."""
    found = figures(runs)
    parts = [Section("figures", "Runs", (found,)), Section("machines", "Machines", (machines(runs),))]
    title = f"{suite.title}: {len(runs)} runs side by side"
    return written(folder, "merged", COLUMNS, found.rows, markdown.document(title, parts))


def written(
    folder: Path, name: str, head: Sequence[str], lines: Iterable[Sequence[object]], text: str
) -> tuple[Path, Path]:
    """Write a table as CSV and a document next to it into a folder and return their paths. Raises LabError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(head)
            writer.writerows([as_cell(value) for value in line] for line in lines)
    except OSError as error:
        raise LabError(f"cannot write to {folder}: {error.strerror or error}") from None
    return folder / f"{name}.csv", folder / f"{name}.md"
