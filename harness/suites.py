"""Suites are data: reading suites/*.toml and the figures of the published benchmarks."""

import csv
import difflib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from harness.model import LabError


@dataclass(frozen=True)
class PublishedFigure:
    """One row of a published benchmark, as its author printed it: mean seconds and rows/s (mean, min, max)."""

    description: str
    mean_seconds: float
    mean_rows_per_s: float
    min_rows_per_s: float
    max_rows_per_s: float


@dataclass(frozen=True)
class Suite:
    """What a suite runs by default, and the published benchmark it reproduces with its figures by description."""

    name: str
    title: str
    citation: str
    conditions: str
    select: str
    dataset: str
    rows: int
    passes: int
    time_limit: float
    published: dict[str, PublishedFigure]


def load(folder: Path, name: str) -> Suite:
    """Read a suite by name. Raises LabError naming the nearest one when there is none."""
    names = sorted(path.stem for path in folder.glob("*.toml"))
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)
        raise LabError(
            f'no suite "{name}" in {folder}; nearest: "{nearest[0]}"' if nearest else f"no suites in {folder}"
        )
    data = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
    published, defaults = data["published"], data["defaults"]
    return Suite(
        name=data["name"],
        title=data["title"],
        citation=f'{published["author"]}, "{published["title"]}", {published["date"]}',
        conditions=published["conditions"],
        select=defaults["select"],
        dataset=defaults["dataset"],
        rows=defaults["rows"],
        passes=defaults["passes"],
        time_limit=defaults["time_limit_seconds"],
        published=_figures(folder / published["figures"]),
    )


def _figures(path: Path) -> dict[str, PublishedFigure]:
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row["description"]: PublishedFigure(
                row["description"],
                float(row["mean_seconds"]),
                float(row["mean_rows_per_s"]),
                float(row["min_rows_per_s"]),
                float(row["max_rows_per_s"]),
            )
            for row in csv.DictReader(file)
        }
