"""Runs of several machines side by side: one table of figures, one of machines, and what makes them incomparable."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model import LabError
from harness.report import cells, markdown, summary
from harness.report.points import parameters
from harness.report.text_tables import titled
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
Run = tuple[dict[str, Any], list[dict[str, Any]]]  # its environment and rows
MACHINE = ("environment", "system", "kernel", "CPU", "cores", "memory", "disk", "filesystem", "maker", "run")


@dataclass(frozen=True)
class MergedRun:
    """One run of those that are set side by side: its environment, summaries, and what differs from the first run's."""

    environment: dict[str, Any]
    summaries: list[dict[str, Any]]
    differs: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.environment["machine"]["host"])


def merged(suite: Suite, runs: Sequence[Run], anyway: bool) -> list[MergedRun]:
    """Return the runs with what makes each incomparable with the first; `runs` are environments and rows.

    Raises LabError: fewer than two runs, another suite among them, or (without `anyway`) other data or versions.
    """
    if len(runs) < 2:
        raise LabError(f"expected two or more runs to set side by side, found {len(runs)}")
    suites = {environment["plan"]["suite"] for environment, _ in runs}
    if suites != {suite.name}:
        raise LabError(f"expected runs of one suite, found {', '.join(sorted(suites))}")
    first = runs[0][0]
    found = []
    for environment, rows in runs:
        differs = tuple(differing(first, environment, packages((environment, rows))))
        if differs and not anyway:
            raise LabError(
                f"{environment['run_id']} and {first['run_id']} differ in {'; '.join(differs)}: their figures are not "
                "comparable; --anyway sets them side by side all the same, labelled"
            )
        found.append(MergedRun(environment, summary.summarise(rows, suite.published), differs))
    return found


def packages(*runs: Run) -> set[str]:
    """Return the packages that the transports of these runs use: the versions that make a comparison lie.

    A run of an earlier version of the lab does not say what its transports use: there all packages count.
    """
    return {name for facts, rows in runs for name in _used(facts, {row["transport"] for row in rows})}


def _used(facts: dict[str, Any], transports: set[str]) -> Iterable[str]:
    if "uses" not in facts:
        return facts["packages"]
    return (name for transport in transports for name in facts["uses"].get(transport, ()))


def differing(first: dict[str, Any], other: dict[str, Any], needed: set[str]) -> Iterator[str]:
    """Name the data and versions in which two environments differ; of packages only those needed count."""
    if first["data"] != other["data"]:
        yield "data"
    for name in sorted(needed):
        ours, theirs = (facts["packages"].get(name) for facts in (first, other))
        if ours != theirs:
            yield f"{name} ({ours} and {theirs})"
    for name in sorted(first["servers"].keys() | other["servers"].keys()):
        ours, theirs = (facts["servers"].get(name, {}).get("version") for facts in (first, other))
        if ours != theirs:
            yield f"{name} server ({ours} and {theirs})"
    if first["code"]["commit"] != other["code"]["commit"]:
        yield "commit of the lab"


def figures(runs: Sequence[MergedRun]) -> Iterator[dict[str, str]]:
    """Yield a line for each case of each run, cases side by side: as text, by COLUMNS."""
    everything = [(run, one) for run in runs for one in run.summaries]
    order = {run.environment["run_id"]: place for place, run in enumerate(runs)}
    everything.sort(
        key=lambda both: (
            both[1]["experiment"],
            both[1]["transport"],
            both[1]["parameters"],
            order[both[0].environment["run_id"]],
        )
    )
    for run, one in everything:
        output = parameters(one["details"] or "").get("output_bytes")
        yield {
            "environment": run.name,
            "experiment": titled(one["experiment"]),
            "transport": cells.name(one),
            "parameters": one["parameters"],
            "n": str(one["n"]),
            "median s": cells.significant(one["median_seconds"]),
            "min": cells.significant(one["min_seconds"]),
            "max": cells.significant(one["max_seconds"]),
            "rows": f"{one['rows']:,}" if one["rows"] else "",
            "MB/s": cells.significant(one["mb_per_s"]),
            "source": cells.volume(one["bytes"]) if one["bytes"] else "",
            "output": cells.volume(float(output)) if output else "",
            "differs": "; ".join(run.differs) or ("" if one["n"] else one["status"]),
        }


def machines(runs: Sequence[MergedRun]) -> Iterator[dict[str, str]]:
    """Yield a line for each machine, as text, by MACHINE."""
    for run in runs:
        facts, environment = run.environment["machine"], run.environment
        virtual = "virtual machine" if facts.get("virtual") else ""
        yield {
            "environment": run.name,
            "system": facts["system"],
            "kernel": facts["kernel"],
            "CPU": facts["cpu"] or facts["architecture"],
            "cores": str(facts["cores"]),
            "memory": f"{facts['memory_bytes'] / 2**30:.0f} GiB",
            "disk": environment.get("disk") or "",
            "filesystem": environment.get("server_filesystem") or "",
            "maker": " ".join(filter(None, (facts.get("maker"), virtual))),
            "run": environment["run_id"],
        }


def write(folder: Path, suite: Suite, runs: Sequence[MergedRun]) -> tuple[Path, Path]:
    """Write merged.csv and merged.md into a folder and return their paths. Raises LabError: it cannot be written."""
    lines = list(figures(runs))
    numbers = [COLUMNS.index(name) for name in ("n", "median s", "min", "max", "rows", "MB/s", "source", "output")]
    text = "\n".join(
        (
            f"# {suite.title}: {len(runs)} runs side by side\n",
            markdown.table(COLUMNS, (list(line.values()) for line in lines), numbers),
            "## Machines\n",
            markdown.table(MACHINE, (list(line.values()) for line in machines(runs))),
            "MB/s are bytes of the source by the median of wall time, in which everything is: reading, parsing, "
            "transforming, writing.",
            *(
                ["A run that differs in what is named stands here because it was asked for."]
                if any(r.differs for r in runs)
                else []
            ),
        )
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "merged.md").write_text(text + "\n", encoding="utf-8")
        with (folder / "merged.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise LabError(f"cannot write to {folder}: {error.strerror or error}") from None
    return folder / "merged.csv", folder / "merged.md"
