"""Make a report of a run: its sections once, and from them report.md, report.html and the charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.model import LabError
from harness.report import markdown, recommendation
from harness.report.answers import opening
from harness.report.conclusions import conclusions, control_sentences, round_trip_tables
from harness.report.crossings import Curves, crossing_sentences, crossing_tables, curves
from harness.report.grids import outcome_sentences, outcome_tables, winner_tables
from harness.report.page import headline
from harness.report.rankings import NOT_OK, losses, not_ok, published_tables, text_tables
from harness.report.summary import Summary, summarise, write_summaries
from harness.report.table import Section, Sections, Table
from harness.results import folder as folders
from harness.results.folder import Facts
from harness.results.row import Row
from harness.suites.suite import Suite


def sections(
    suite: Suite,
    environment: Facts,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    answers: Sequence[Table] | None = None,
) -> Sections:
    """Return the sections of one run. It opens with `answers`; without, with those of its suite."""
    found = curves(suite, rows, summaries)
    opened = opening(suite, rows, summaries) if answers is None else answers
    bad, lines = sum(not row.ok for row in rows), not_ok(rows)
    failed = Table("Runs that are not ok", NOT_OK, tuple(lines), wide=frozenset(range(len(NOT_OK))))
    fine = f"All {len(rows):,} runs are ok." if rows else "No run is there yet."
    told = f"{bad:,} of {len(rows):,} runs are not ok:" if bad else fine
    results = (*_of_no_experiment(suite, rows, found), *text_tables(summaries), *losses(summaries))
    return Sections(
        Section(suite.title, tuple(opened), tuple(headline(environment, rows, summaries))),
        Section("What did not run, and why", (failed,) if lines else (), (told,)),
        Section("What this run shows", sentences=tuple(sentences(suite, rows, summaries, found))),
        Section("Results", results, () if summaries else ("No run is there yet.",)),
        Section("The published figures beside ours", tuple(published_tables(summaries, suite.published))),
    )


def sentences(
    suite: Suite,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    known: Curves | None = None,
) -> list[str]:
    """Return the sentences of "What this run shows"."""
    return [
        *control_sentences(summaries),
        *crossing_sentences(known or curves(suite, rows, summaries)),
        *conclusions(rows, suite.comparisons),
        *outcome_sentences(suite, rows),
    ]


def _of_no_experiment(suite: Suite, rows: Sequence[Row], found: Curves) -> list[Table]:
    """Return the tables of no single experiment: grids of pictures, crossings, round trips."""
    return [
        *outcome_tables(suite, rows),
        *winner_tables(suite, rows),
        *crossing_tables(found),
        *round_trip_tables(rows),
    ]


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
    summaries = summarise(rows, suite.published, experiments)
    try:
        write_summaries(folder / "summary.csv", summaries)
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
