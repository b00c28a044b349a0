"""The one place that writes a report: everything that can be made of a run's folder, from results/ alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import results
from harness.model import LabError, Status
from harness.report import markdown, summary
from harness.suites.suite import Suite


@dataclass(frozen=True)
class Report:
    """What was written: the files, and the rows and summaries they were made from.

    `again` is the number of runs that are still to be run again.
    """

    folder: Path
    paths: tuple[Path, ...]
    rows: list[dict[str, Any]]
    summaries: list[dict[str, Any]]
    again: int = 0


def write(folder: Path, suite: Suite) -> Report:
    """Write summary.csv, the pictures, report.md and report.html of a run into its folder, over those of before.

    Raises LabError when the run's files cannot be read, its rows are not all of one environment, or the disk refuses.
    """
    from harness.report.page import page  # not at the top: with them comes matplotlib, which takes a second
    from harness.report.pictures import draw

    environment, every = _read(folder)
    rows = _counting(every)
    experiments = [part["name"] for part in environment["plan"].get("experiments", ())]
    summaries = summary.summarise(rows, suite.published, experiments)
    try:
        summary.write(folder / "summary.csv", summaries)
        (folder / "pictures").mkdir(exist_ok=True)
        drawn = [
            found
            for picture in suite.pictures
            if (found := draw(picture, rows, suite.published, folder / "pictures")) is not None
        ]
        pictures = [(one.title, one.caption, one.png.relative_to(folder).as_posix()) for one in drawn]
        text = markdown.report(suite, environment, rows, summaries, pictures)
        (folder / "report.md").write_text(text, encoding="utf-8")
        beside = ("runs.csv", "summary.csv", "environment.json", "report.md")
        html = page(suite, environment, rows, summaries, drawn, beside)
        (folder / "report.html").write_text(html, encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the report to {folder}: {error.strerror or error}") from None
    names = [folder / name for name in ("summary.csv", "report.md", "report.html")]
    paths = (*names, *(path for one in drawn for path in (one.png, one.svg)))
    return Report(folder, paths, rows, summaries, _again(rows, every))


def _again(rows: Sequence[dict[str, Any]], every: Sequence[dict[str, Any]]) -> int:
    names = ("transport", "experiment", "parameters", "pass")
    done, begun = ({tuple(row[name] for name in names) for row in some} for some in (rows, every))
    return len(begun - done)


def read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the environment of a run and those of its rows that count.

    Raises LabError: they cannot be read, or are not of each other.
    """
    environment, every = _read(folder)
    return environment, _counting(every)


def _read(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    environment = _environment(folder / "environment.json")
    rows = results.load(folder / "runs.csv")
    _refuse_mixed(folder, rows, environment)
    return environment, rows


def _counting(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["status"] is not Status.AGAIN]


def _environment(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        markdown.conditions(facts)  # says whether everything is there that a report needs
        if not facts["fingerprint"]:
            raise KeyError("fingerprint")
    except KeyError as error:
        raise LabError(f"{path}: expected an entry {error}, found none; was it made by another version?") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise LabError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return facts


def _refuse_mixed(folder: Path, rows: Sequence[dict[str, Any]], environment: dict[str, Any]) -> None:
    """Raise LabError where rows are of another run or environment than environment.json tells of."""
    for column, fact, what in (("run_id", "run_id", "runs"), ("environment", "fingerprint", "environments")):
        found = dict.fromkeys([environment[fact], *(row[column] for row in rows)])
        if len(found) > 1:
            names = ", ".join(str(name or "none") for name in found)
            raise LabError(
                f"{folder.name} has rows of {len(found)} {what} ({names}): expected those of {environment[fact]} only, "
                "as environment.json says; keep these in runs.csv, and report on the others in a folder of their own"
            )
