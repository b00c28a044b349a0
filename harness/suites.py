"""Suites are data: reading suites/*.toml and the figures of the published benchmarks."""

import csv
import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.comparisons import AnyComparison, comparison
from harness.machine import cores
from harness.model import Experiment, LabError, Origin
from harness.plan import Plan

SIZES = ("smoke", "default", "laptop", "full")
KINDS_OF_PICTURES = ("bars", "lines", "scatter", "traces")
STATISTICS = ("median and range", "mean and deviation")


@dataclass(frozen=True)
class PublishedFigure:
    """One figure of a published benchmark, as its author printed it; None where the author does not say.

    `description` is the author's name of the way; `experiment`, `rows`, `bytes` and `parameters` (some of a case's, as
    they stand in the results) say under which conditions.
    Times are means in seconds, rates in rows/s, memory the mean peak resident memory above the start in bytes. `detail`
    names a further figure as transports call it in the column `details`, and `detail_value` is that.
    """

    description: str
    experiment: str | None = None
    rows: int | None = None
    bytes: int | None = None
    mean_seconds: float | None = None
    mean_rows_per_s: float | None = None
    min_rows_per_s: float | None = None
    max_rows_per_s: float | None = None
    peak_rss_bytes: float | None = None
    parameters: str | None = None
    detail: str | None = None
    detail_value: float | None = None


@dataclass(frozen=True)
class Picture:
    """One picture of a suite's report, made from the rows of runs.csv that `where` keeps (column -> its values).

    `bars`: one bar a transport, as long as the median of `y`, coloured by the column `colour`.
    `lines`: `y` over `x`, one line for each value of `colour` and (drawn otherwise) of `dash`.
    `scatter`: one mark a transport at the medians of `x` and `y`.
    `traces`: cores in use over time, one line for each run of the last pass (of suites that ask for traces).
    `inset` adds the same lines on logarithmic axes; `log` makes the axes themselves logarithmic. `published` sets the
    author's figures beside ours.
    """

    name: str
    title: str
    kind: str
    y: str
    x: str = ""
    colour: str = "transport"
    dash: str = ""
    where: dict[str, list[str]] | None = None
    statistic: str = STATISTICS[0]
    inset: bool = False
    log: bool = False
    published: bool = False


@dataclass(frozen=True)
class Size:
    """One size of a suite: its experiments, passes, and how long a worker may live in seconds."""

    passes: int
    time_limit: float
    experiments: tuple[Experiment, ...]


@dataclass(frozen=True)
class Suite:
    """A suite: what its transports work on (`rig`), its sizes, pictures, and the published benchmark it reproduces.

    `traces` asks for the CPU time of every run over time.
    """

    name: str
    title: str
    rig: str
    citation: str
    conditions: str
    sizes: dict[str, Size]
    published: tuple[PublishedFigure, ...]
    pictures: tuple[Picture, ...]
    comparisons: tuple[AnyComparison, ...] = ()
    traces: bool = False

    def size(self, name: str) -> Size:
        """Return a size by name. Raises LabError naming the nearest one."""
        if name not in self.sizes:
            raise _unknown(f"size of suite {self.name}", name, self.sizes)
        return self.sizes[name]


def load(folder: Path, name: str) -> Suite:
    """Read a suite by name. Raises LabError naming the nearest one when there is none."""
    names = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        raise LabError(
            f'no suite "{name}" in {folder}; nearest: "{nearest[0]}"' if nearest else f"no suites in {folder}"
        )
    path = folder / f"{name}.toml"
    try:
        return _suite(path, tomllib.loads(path.read_text(encoding="utf-8")))
    except KeyError as error:
        raise LabError(f"{path}: expected an entry {error}, found none") from None
    except (AttributeError, OSError, TypeError, ValueError) as error:
        raise LabError(f"{path}: {error}") from None


def plan(
    suite: Suite,
    size: str,
    only: str,
    seed: int,
    experiments: str | None = None,
    rows: int | None = None,
    passes: int | None = None,
    time_limit: float | None = None,
    origins: str | None = None,
) -> Plan:
    """Return the plan of a size of a suite, with what the person wants otherwise. Raises LabError."""
    chosen = suite.size(size)
    return Plan(
        suite=suite.name,
        size=size,
        select=only,
        experiments=tuple(
            _with_origins(_with_rows(part, rows), origins) for part in _named(chosen.experiments, experiments)
        ),
        passes=chosen.passes if passes is None else passes,
        seed=seed,
        time_limit=chosen.time_limit if time_limit is None else time_limit,
    )


def _named(experiments: tuple[Experiment, ...], names: str | None) -> list[Experiment]:
    if names is None:
        return list(experiments)
    known = {experiment.name: experiment for experiment in experiments}
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise _unknown("experiment", name, known)
    return [experiment for name, experiment in known.items() if name in wanted]


def _unknown(what: str, name: str, known: Iterable[str]) -> LabError:
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)[0]
    return LabError(f'no {what} is called "{name}"; nearest: "{nearest}"; there are: {", ".join(names)}')


def _with_rows(experiment: Experiment, rows: int | None) -> Experiment:
    if rows is None:
        return experiment
    if rows < 1:
        raise LabError(f"expected rows to be a whole number of at least 1, found {rows}")
    if "rows" not in experiment.parameters:
        raise LabError(f"experiment {experiment.name} has no parameter rows; choose its amount of data with --size")
    return replace(experiment, parameters=experiment.parameters | {"rows": [rows]})


def _with_origins(experiment: Experiment, origins: str | None) -> Experiment:
    if origins is None:
        return experiment
    wanted = [name.strip() for name in origins.split(",")]
    for name in wanted:
        if name not in list(Origin):
            raise _unknown("origin", name, list(Origin))
    return replace(experiment, origins=wanted)


def _suite(path: Path, data: dict[str, Any]) -> Suite:
    published = data["published"]
    if data["name"] != path.stem:
        raise ValueError(f'expected name = "{path.stem}" as the file is called, found "{data["name"]}"')
    if unknown := data["sizes"].keys() - set(SIZES):
        raise ValueError(f"expected sizes among {', '.join(SIZES)}, found {', '.join(sorted(unknown))}")
    pictures = tuple(_picture(part) for part in data.get("pictures", []))
    if len({picture.name for picture in pictures}) < len(pictures):
        raise ValueError("expected pictures of different names, found one twice")
    return Suite(
        name=data["name"],
        title=data["title"],
        rig=data["rig"],
        citation=f'{published["author"]}, "{published["title"]}", {published["date"]}',
        conditions=published["conditions"],
        sizes={name: _size(data["defaults"] | data["sizes"][name]) for name in SIZES if name in data["sizes"]},
        published=_figures(path.parent / published["figures"]),
        pictures=pictures,
        comparisons=tuple(comparison(part) for part in data.get("comparisons", [])),
        traces=data.get("traces", False),
    )


def _size(entries: dict[str, Any]) -> Size:
    for entry, types in (("passes", (int,)), ("time_limit_seconds", (int, float))):
        if type(entries[entry]) not in types or entries[entry] <= 0:
            raise ValueError(f"expected {entry} to be a number above 0, found {entries[entry]!r}")
    experiments = tuple(_experiment(entries | part) for part in entries["experiments"])
    if not experiments:
        raise ValueError("expected at least one experiment in every size, found none")
    if len({experiment.name for experiment in experiments}) < len(experiments):
        raise ValueError("expected experiments of different names, found one twice")
    return Size(entries["passes"], entries["time_limit_seconds"], experiments)


def _experiment(entries: dict[str, Any]) -> Experiment:
    parameters = {name: _expanded(values) for name, values in entries["parameters"].items()}
    for name, values in parameters.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"expected a list of values for the parameter {name}, found {values!r}")
        if any(value in values[:place] for place, value in enumerate(values)):
            raise ValueError(f"expected different values for the parameter {name}, found {values!r}")
        if name == "rows" and not all(type(value) is int and value > 0 for value in values):
            raise ValueError(f"expected rows to be numbers above 0, found {values!r}")
    origins = entries.get("origins", [])
    if unknown := set(origins) - set(Origin):
        raise ValueError(f"expected origins among {', '.join(Origin)}, found {', '.join(sorted(unknown))}")
    return Experiment(entries["name"], entries["select"], entries["dataset"], parameters, origins)


def _expanded(values: Any) -> Any:
    """Return `1..cores` as 1, 2, 4 and so on, the cores of this machine and twice as many; `cores` as their number."""
    if values == "cores":
        return [cores()]
    if values != "1..cores":
        return values
    powers = [2**power for power in range(cores().bit_length()) if 2**power < cores()]
    return [*powers, cores(), 2 * cores()]


def _picture(entries: dict[str, Any]) -> Picture:
    picture = Picture(**entries)
    for found, known in ((picture.kind, KINDS_OF_PICTURES), (picture.statistic, STATISTICS)):
        if found not in known:
            raise ValueError(f'picture {picture.name}: expected one of {", ".join(known)}, found "{found}"')
    if not all(isinstance(values, list) for values in (picture.where or {}).values()):
        raise ValueError(f"picture {picture.name}: expected lists of values in where, found {picture.where}")
    return picture


def _figures(path: Path) -> tuple[PublishedFigure, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = {field.name for field in fields(PublishedFigure)}
    try:
        found = tuple(_figure({name: text for name, text in row.items() if name in names}) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path}: expected a description and numbers in every row: {error}") from None
    if not found:
        raise LabError(f"{path}: expected the figures of a published benchmark, found none")
    return found


def _figure(texts: dict[str, str]) -> PublishedFigure:
    numbers: dict[str, Any] = {name: int(text) for name, text in texts.items() if name in ("rows", "bytes") and text}
    figures: dict[str, Any] = {name: float(text) for name, text in texts.items() if "_" in name and text}
    if not figures:
        raise ValueError(f"no figure of {texts['description']!r}")
    named: dict[str, Any] = {name: texts.get(name) or None for name in ("experiment", "parameters", "detail")}
    return PublishedFigure(texts["description"], **named, **numbers, **figures)
