"""The one place that writes a report: everything that can be made of a run's folder, from results/ alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.model import LabError
from harness.report import markdown, recommendation, summarising
from harness.report.sections import Sections, sections
from harness.report.summary import Summary
from harness.results import folder as folders
from harness.results.row import Row
from harness.suites.suite import Suite


@dataclass(frozen=True)
class Report:
    """What was written: the files, and the rows and summaries they were made from.

    `again` is the number of runs that are still to be run again. `unread` says why the
    recommendation of a race is not in it.
    """

    folder: Path
    paths: tuple[Path, ...]
    rows: list[Row]
    summaries: list[Summary]
    sections: Sections
    again: int = 0
    unread: str = ""


def write(folder: Path, suite: Suite) -> Report:
    """Write summary.csv, the pictures, report.md and report.html of a run into its folder, over those of before.

    Raises LabError when the run's files cannot be read, its rows are not all of one environment, or the disk refuses.
    """
    from harness.report.charts import chart, on_white  # not at the top: jinja2 and scipy come with them
    from harness.report.page import page

    run = folders.read(folder)
    environment, rows = run.environment, run.rows
    recommended, unread = recommendation.kept(folder)
    if recommended:  # a race is not what the suite's pictures and comparisons are about
        suite = replace(suite, pictures=(), comparisons=())
    answers = [recommendation.screen(recommended)] if recommended else None
    experiments = [part["name"] for part in environment["plan"].get("experiments", ())]
    summaries = summarising.summarise(rows, suite.published, experiments)
    try:
        summarising.write(folder / "summary.csv", summaries)
        found = (chart(picture, rows, suite.published, folder) for picture in suite.pictures)
        charts = {one: one.svg() for one in found if one}
        (folder / "pictures").mkdir(exist_ok=True)
        for one, svg in charts.items():
            (folder / one.path).write_text(on_white(svg), encoding="utf-8")
        pictures = [(one.title, one.caption, one.path) for one in charts]
        parts = sections(suite, environment, rows, summaries, answers)
        text = markdown.report(suite, environment, parts, pictures)
        (folder / "report.md").write_text(text, encoding="utf-8")
        beside = ("runs.csv", "summary.csv", "environment.json", "report.md")
        html = page(suite, environment, rows, summaries, parts, charts, beside)
        (folder / "report.html").write_text(html, encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the report to {folder}: {error.strerror or error}") from None
    names = [folder / name for name in ("summary.csv", "report.md", "report.html")]
    paths = (*names, *(folder / one.path for one in charts))
    return Report(folder, paths, rows, summaries, parts, run.again, unread)
