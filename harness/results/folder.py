"""The folder of a run: find it, create it, read it, and the traces in it."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, PositiveFloat, ValidationError

from harness.model import Facts, LabError, Status, printable
from harness.results import runs_csv
from harness.results.row import Row

# The facts that environment.json must have for a run to be readable, and the shape of its other facts.

_Text = Annotated[str, Field(min_length=1)]


class _PartFacts(BaseModel):
    name: str


class _PlanFacts(BaseModel):
    suite: _Text
    passes: int
    experiments: list[_PartFacts] = []
    time_limit: float = 0.0


class _MachineFacts(BaseModel):
    cores: int
    cpu: str
    architecture: str
    memory_bytes: int
    system: str
    kernel: str


class _ServerFacts(BaseModel):
    version: str
    program: str = ""
    settings: dict[str, object] = {}


class _CodeFacts(BaseModel):
    commit: str | None = None
    version: str | None = None


class _MemberFacts(BaseModel):
    run_id: _Text
    fingerprint: _Text


class _CalibrationFacts(BaseModel):
    now: dict[str, PositiveFloat]
    best: dict[str, PositiveFloat]


class _AllFacts(BaseModel):
    """The facts that reports and comparisons use; those with a default may be missing in an old run."""

    run_id: _Text
    fingerprint: _Text
    lab: str
    python: str
    plan: _PlanFacts
    runs: int | None = None
    machine: _MachineFacts
    data: list[dict[str, object]] = []
    servers: dict[str, _ServerFacts] = {}
    packages: dict[str, str] = {}
    uses: dict[str, list[str]] = {}
    code: _CodeFacts = _CodeFacts()
    sources: dict[str, str] = {}
    together: list[_MemberFacts] = []
    calibrations: list[_CalibrationFacts] = []
    measurement: dict[str, object] = {}
    load_average_at_start: list[float] = []


def require(path: Path, facts: Facts) -> None:
    """Raise LabError for the first entry of an environment that is missing or has another shape."""
    try:
        _AllFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        wanted = first["msg"].removeprefix("Input should be ")
        wrong = "is missing" if first["type"] == "missing" else f"is {first['input']!r:.60} instead of {wanted}"
        raise LabError(f"{path}: the entry '{place}' {wrong}; was it made by another version?") from None


__all__ = ["Facts"]  # re-exported for readers of runs

ENVIRONMENT, RUNS, SUMMARY = "environment.json", "runs.csv", "summary.csv"
LATEST = "latest"  # instead of an id: means the newest run


@dataclass(frozen=True)
class StoredRun:
    """A run as its folder describes it: its environment and all of its rows, even those that do not count.

    A folder may keep several runs together: `members`.
    """

    folder: Path
    environment: Facts
    every: list[Row]

    @property
    def name(self) -> str:
        """The id of the run, or those of runs kept together."""
        return ids(self.environment)

    @property
    def suite(self) -> str:
        """The name of its suite."""
        return str(self.environment["plan"]["suite"])

    @property
    def rows(self) -> list[Row]:
        """The rows that count."""
        return [row for row in self.every if row.status is not Status.AGAIN]

    @property
    def ended(self) -> bool:
        """Whether every planned run has a row; runs of an early version of the lab do not record the number planned."""
        planned = self.environment.get("runs")
        return planned is not None and len({row.key for row in self.rows}) >= planned

    @property
    def again(self) -> int:
        """The number of runs that the machine or a person ended, and that have not been repeated yet."""
        done = {row.key for row in self.rows}
        return len({row.key for row in self.every} - done)


def find(results: Path, run: str) -> Path:
    """Return the folder of a run given its id or path, or of the newest run for `latest`. Raises LabError."""
    if run == LATEST:
        newest = max(results.glob(f"2*/{ENVIRONMENT}"), default=None)
        if newest is None:
            raise LabError(f"no run in {results} yet: lab run or lab recommend makes one")
        return newest.parent.resolve()
    for folder in (results / run, Path(run)):
        if (folder / ENVIRONMENT).is_file():
            return folder.resolve()
    said = printable(run)
    raise LabError(f'no run "{said}" in {results} or at this path; give a folder with environment.json, or latest')


def newest_first(results: Path, suite: str) -> Iterator[StoredRun]:
    """Yield a suite's readable runs with rows, the newest first and the reference run last."""
    for path in [*sorted(results.glob(f"2*/{RUNS}"), reverse=True), reference(results, suite) / RUNS]:
        try:
            run = read(path.parent)
        except LabError:
            continue
        if run.rows and run.suite == suite:
            yield run


def reference(results: Path, suite: str) -> Path:
    """Return the folder of a suite's reference run, which comes with the lab."""
    return results / "reference" / suite


def begin(folder: Path, run_id: str, facts: Facts) -> None:
    """Create the folder of a new run and write its environment. Raises LabError."""
    try:
        folder.mkdir(parents=True)
        text = json.dumps({"run_id": run_id, **facts}, indent=2)
        (folder / ENVIRONMENT).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write results to {folder}: {error.strerror}; set LAB_RESULTS_DIR") from None


def amend(folder: Path, fact: str, more: object) -> None:
    """Add an item to a list among the facts of a run. Raises LabError."""
    facts = environment(folder)
    try:
        text = json.dumps({**facts, fact: [*facts.get(fact, ()), more]}, indent=2)
        (folder / f"{ENVIRONMENT}.new").write_text(text + "\n", encoding="utf-8")
        (folder / f"{ENVIRONMENT}.new").replace(folder / ENVIRONMENT)
    except OSError as error:
        raise LabError(f"cannot write to {folder}: {error.strerror or error}") from None


def members(facts: Facts) -> list[Facts]:
    """Return the environments of the runs that a folder keeps together, or of its one run."""
    return [{**facts, **own} for own in facts.get("together", ({},))]


def ids(facts: Facts) -> str:
    """Return the id of a run, or the ids of runs kept together, with commas."""
    return ", ".join(str(one["run_id"]) for one in members(facts))


def join(runs: Sequence[StoredRun], folder: Path) -> None:
    """Keep runs of one plan together in a folder: the passes and the order of each go on from those before it.

    The environment is that of the first run; `together` has the facts in which the runs differ.
    """
    every = [run.environment for run in runs]
    first, passes, begun = every[0], 0, 0
    facts = dict(first)
    if len(runs) > 1:
        own = [
            name
            for name in dict.fromkeys(name for one in every for name in one)
            if name in ("run_id", "fingerprint") or any(one.get(name) != first.get(name) for one in every)
        ]
        facts |= {
            "plan": first["plan"] | {"passes": sum(one["plan"]["passes"] for one in every)},
            "runs": sum(one["runs"] for one in every),
            "calibrations": [each for one in every for each in one.get("calibrations", ())],
            "together": [{name: one.get(name) for name in own} for one in every],
        }
    (folder / ENVIRONMENT).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    for run in runs:
        rows = [
            replace(row, pass_number=(row.pass_number or 0) + passes, order=(row.order or 0) + begun)
            for row in run.every
        ]
        runs_csv.append(folder / RUNS, *rows)
        for row, before in zip(rows, run.every, strict=True):
            if (trace := trace_path(run.folder, before.order or 0, before.transport)).is_file():
                (folder / "traces").mkdir(exist_ok=True)
                shutil.copyfile(trace, trace_path(folder, row.order or 0, row.transport))
        passes += run.environment["plan"]["passes"]
        begun = max(row.order or 0 for row in rows)


def environment(folder: Path) -> Facts:
    """Read environment.json. Raises LabError."""
    path = folder / ENVIRONMENT
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LabError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not isinstance(facts, dict):
        raise LabError(f"cannot read {path}: its JSON is a {type(facts).__name__} instead of an object")
    return facts


def interrupted(folder: Path) -> list[Row]:
    """Return the rows of an interrupted run, after removing an incomplete last row.

    Raises LabError, and leaves the file unchanged, if it has any other fault.
    """
    path = folder / RUNS
    if not path.exists():
        return []
    rows, torn = runs_csv.load_interrupted(path)
    _refuse_mixed(folder, rows, environment(folder))
    if torn is not None:
        runs_csv.cut(path, torn)
    return rows


def read(folder: Path) -> StoredRun:
    """Read a run. Raises LabError if it cannot be read, lacks facts, or its rows do not match its environment."""
    facts = environment(folder)
    require(folder / ENVIRONMENT, facts)
    if not (folder / RUNS).exists():
        raise LabError(f"run {folder.name} ended before its first call; continue it with --resume, or name another run")
    rows = runs_csv.load(folder / RUNS)
    _refuse_mixed(folder, rows, facts)
    return StoredRun(folder, facts, rows)


def _refuse_mixed(folder: Path, rows: Iterable[Row], facts: Facts) -> None:
    """Raise LabError if rows belong to another run or environment than environment.json describes."""
    for column, fact, what in (("run_id", "run_id", "runs"), ("environment", "fingerprint", "environments")):
        known = dict.fromkeys(one[fact] for one in members(facts))
        found = known | dict.fromkeys(getattr(row, column) for row in rows)
        if len(found) > len(known):
            names = ", ".join(str(name or "none") for name in found)
            raise LabError(
                f"{folder.name} has rows of {len(found)} {what} ({names}), and environment.json is of {facts[fact]}; "
                "keep its rows in runs.csv, and report on the others in a separate folder"
            )


def adopt(folder: Path, place: Path) -> None:
    """Copy the kept files of a run, all that its report links to, to another folder, replacing its files."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "pictures").mkdir(parents=True)
    pictures = sorted(path.relative_to(folder) for path in (folder / "pictures").glob("*.svg"))
    traces = sorted(path.relative_to(folder) for path in (folder / "traces").glob("*.csv"))
    for name in (*map(Path, (ENVIRONMENT, RUNS, SUMMARY, "report.md")), *pictures, *traces):
        (place / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(folder / name, place / name)


def trace_path(folder: Path, order: int, transport: str) -> Path:
    """Return the path of one run's trace in a run folder."""
    return folder / "traces" / f"{order:04d}-{transport}.csv"


def write_trace(path: Path, trace: Iterable[tuple[float, float]]) -> None:
    """Write the number of cores in use over time, in seconds since the start of the call."""
    path.parent.mkdir(exist_ok=True)
    lines = ["seconds,cpu_cores_used", *(f"{seconds:.3f},{cores:.3f}" for seconds, cores in trace)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def load_trace(path: Path) -> list[tuple[float, float]]:
    """Read a trace back; empty without one. Raises LabError for a damaged file."""
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [(float(row["seconds"]), float(row["cpu_cores_used"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise LabError(f"cannot read {path}: {error}; is the file damaged?") from None
