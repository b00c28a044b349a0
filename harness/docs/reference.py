"""The pages generated from the reference runs: the page of results, and README's answer table."""

from dataclasses import fields
from functools import cache
from pathlib import Path

from harness import report
from harness.docs import sources
from harness.docs.words import COMMENT
from harness.model import LabError
from harness.report import markdown
from harness.report.answers import NoContender, no_contenders
from harness.report.sections import sections
from harness.report.summary import Summary, summarise
from harness.report.table import Table
from harness.results import folder as folders
from harness.results.folder import StoredRun
from harness.results.runs_csv import as_text
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import Suite


def adopt(folder: Path) -> Path:
    """Make a run the committed reference run of its suite, and return its new folder.

    Raises LabError for a run without the default size or without all transports, or of uncommitted code.
    """
    environment = folders.environment(folder)
    asked, code = environment["plan"], environment["code"]
    contenders_alone = any(part.get("left_out") for part in asked.get("experiments", ()))
    transports = "contenders alone" if contenders_alone else asked["select"]
    if (asked["size"], transports) != ("default", "*") or code["modified"] is not False:
        raise LabError(
            f"{folder.name}: size {asked['size']}, transports {transports}, code "
            f"{'changed' if code['modified'] else 'committed'}; a reference run has the default size, all transports "
            "and committed code"
        )
    report.write(folder, suite_files.load(ROOT / "suites", asked["suite"]))  # with the current code
    place = ROOT / "results" / "reference" / asked["suite"]
    folders.adopt(folder, place)
    sources.write(place, dict.fromkeys(row.transport for row in folders.read(place).rows))
    return place


def folder(name: str) -> Path:
    """Return the folder of a suite's reference run."""
    return ROOT / "results" / "reference" / name


@cache
def of(name: str) -> tuple[Suite, StoredRun, list[Summary]]:
    """Return the suite of a reference run, the run, and its summaries, computed from its runs.csv."""
    suite = suite_files.load(ROOT / "suites", name)
    run = folders.read(ROOT / "results" / "reference" / name)
    return suite, run, summarise(run.rows, suite.published)


@cache
def tables(name: str) -> list[Table]:
    """Return all tables of the report of a reference run."""
    suite, run, summaries = of(name)
    return [table for one in sections(suite, run.environment, run.rows, summaries) for table in one.tables]


def results() -> str:
    """Return the index of the reference runs; each has a report with its tables and pictures."""
    first = "Each suite has one committed run of its default size: its report, every run as CSV, and how it was made."
    parts = [f"# Reference runs\n\n{COMMENT}\n\n{first}\n"]
    for path in sorted((ROOT / "results" / "reference").iterdir()):
        suite, run, summaries = of(path.name)
        runs = sum(case.n for case in summaries)
        source = f"\n\nPublished figures: {suite.citation}. Their conditions: {suite.conditions}."
        published = source if suite.citation else ""
        parts.append(
            f"## {path.name}: {suite.title}\n\n"
            f"{len(summaries):,} cases, {runs:,} ok runs: "
            f"[the whole report](../../results/reference/{path.name}/report.md), "
            f"[every run as CSV](../../results/reference/{path.name}/runs.csv).\n\n"
            f"{markdown.conditions(run.environment)}{published}\n"
        )
    return "\n".join(parts)


def left_out(name: str) -> str:
    """Return as CSV the transports of a suite that are not contenders, according to its reference run."""
    suite, _, summaries = of(name)
    assert suite.answers
    names = [field.name for field in fields(NoContender)]
    lines = [",".join(names)]
    for one in no_contenders(suite.answers, summaries):
        lines.append(",".join(as_text(getattr(one, column)) for column in names))
    return "\n".join([*lines, ""])
