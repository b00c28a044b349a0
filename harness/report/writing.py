"""The one place that writes a report: everything that can be made of a run's folder, from results/ alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import LabError
from harness.report import machine, markdown, recommendation, summarising
from harness.report.summary import Summary
from harness.results import folder as folders
from harness.results.row import Row
from harness.suites.suite import Suite

if TYPE_CHECKING:
    from harness.report.pictures import Drawn


@dataclass(frozen=True)
class Report:
    """What was written: the files, and the rows and summaries they were made from.

    `again` is the number of runs that are still to be run again, `cores` that of the machine. `unread` says why the
    recommendation of a race is not in it. `machine` are sentences about it.
    """

    folder: Path
    paths: tuple[Path, ...]
    rows: list[Row]
    summaries: list[Summary]
    again: int = 0
    cores: int | None = None
    unread: str = ""
    machine: tuple[str, ...] = ()


def write(folder: Path, suite: Suite) -> Report:
    """Write summary.csv, the pictures, report.md and report.html of a run into its folder, over those of before.

    Raises LabError when the run's files cannot be read, its rows are not all of one environment, or the disk refuses.
    """
    from harness.report.page import page

    run = folders.read(folder)
    environment, rows = run.environment, run.rows
    recommended, unread = recommendation.kept(folder)
    if recommended:  # a race is not what the suite's pictures and comparisons are about
        suite = replace(suite, pictures=(), comparisons=())
    answers = [recommendation.screen(recommended)] if recommended else None
    experiments = [part["name"] for part in environment["plan"].get("experiments", ())]
    summaries = summarising.summarise(rows, suite.published, experiments)
    said = tuple(machine.said(environment, rows, summaries))
    try:
        summarising.write(folder / "summary.csv", summaries)
        (folder / "pictures").mkdir(exist_ok=True)
        drawn = _drawn(suite, rows, folder / "pictures") if suite.pictures else []
        pictures = [(one.title, one.caption, one.png.relative_to(folder).as_posix()) for one in drawn]
        text = markdown.report(suite, environment, rows, summaries, pictures, answers)
        (folder / "report.md").write_text(text, encoding="utf-8")
        beside = ("runs.csv", "summary.csv", "environment.json", "report.md")
        html = page(suite, environment, rows, summaries, drawn, beside, answers)
        (folder / "report.html").write_text(html, encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the report to {folder}: {error.strerror or error}") from None
    names = [folder / name for name in ("summary.csv", "report.md", "report.html")]
    paths = (*names, *(path for one in drawn for path in (one.png, one.svg)))
    return Report(folder, paths, rows, summaries, run.again, environment["machine"]["cores"], unread, said)


def _drawn(suite: Suite, rows: list[Row], folder: Path) -> list[Drawn]:
    from harness.report.pictures import draw  # with it comes matplotlib, which takes a second

    found = (draw(picture, rows, suite.published, folder) for picture in suite.pictures)
    return [one for one in found if one is not None]
