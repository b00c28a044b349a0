"""Suites are data: reading suites/*.toml and the figures of the published benchmarks."""

import csv
import difflib
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

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
    path = folder / f"{name}.toml"
    try:
        return _suite(path, tomllib.loads(path.read_text(encoding="utf-8")))
    except KeyError as error:
        raise LabError(f"{path}: expected an entry {error}, found none") from None
    except (OSError, ValueError) as error:
        raise LabError(f"{path}: {error}") from None


def _suite(path: Path, data: dict[str, Any]) -> Suite:
    published, defaults = data["published"], data["defaults"]
    if data["name"] != path.stem:
        raise ValueError(f'expected name = "{path.stem}" as the file is called, found "{data["name"]}"')
    for entry, types in (("rows", (int,)), ("passes", (int,)), ("time_limit_seconds", (int, float))):
        if type(defaults[entry]) not in types or defaults[entry] <= 0:
            raise ValueError(f"expected {entry} to be a number above 0, found {defaults[entry]!r}")
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
        published=_figures(path.parent / published["figures"]),
    )


def _figures(path: Path) -> dict[str, PublishedFigure]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    numbers = [field.name for field in fields(PublishedFigure)][1:]
    try:
        found = {
            row["description"]: PublishedFigure(row["description"], *(float(row[n]) for n in numbers)) for row in rows
        }
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path}: expected a description and {', '.join(numbers)} in every row: {error}") from None
    if not found:
        raise LabError(f"{path}: expected the figures of a published benchmark, found none")
    return found
