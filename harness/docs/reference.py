"""The pages generated from the reference runs: the page of results, and README's answer table."""

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import report
from harness.docs.tables import COMMENT
from harness.model import LabError
from harness.report import markdown
from harness.report.answers import NoContender, no_contenders
from harness.report.merging import packages
from harness.report.sections import sections
from harness.report.summary import Summary, summarise
from harness.report.table import Table
from harness.results import folder as folders
from harness.results.environment import differing, made_on
from harness.results.folder import Facts, StoredRun
from harness.results.runs_csv import as_text
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import Suite

PASSES, RUNS = 5, 3  # the fewest of a suite that answers (docs/explanation/statistics.md)
APART = timedelta(hours=2)  # between the beginnings of runs whose range is published: a machine's pace lasts for hours
_MAY_DIFFER = ("code", "machine")  # judged by what of them a figure depends on


def adopt(*given: Path) -> Path:
    """Make a run, or several together, the committed reference of their suite, and return its new folder.

    Raises LabError for a run that has not ended, lacks the default size, all transports or enough passes, or is of
    uncommitted code. Several runs must have the same plan but for its passes, and the same data, machine, transports'
    code and versions of what the transports use, and must not begin too near to each other.
    """
    runs = sorted(map(folders.read, given), key=_begun)
    suite = suite_files.load(ROOT / "suites", runs[0].suite)
    for fault in (*(fault for run in runs for fault in _faults(run, suite)), *_faults_together(runs, suite)):
        raise LabError(fault)
    place = ROOT / "results" / "reference" / suite.name
    with TemporaryDirectory() as made:
        folders.join(runs, Path(made))
        report.write(Path(made), suite)  # with the current code
        folders.adopt(Path(made), place)
    return place


def _begun(run: StoredRun) -> datetime:
    return min((datetime.fromisoformat(row.started_at) for row in run.rows), default=datetime.min.replace(tzinfo=UTC))


def _faults(run: StoredRun, suite: Suite) -> Iterator[str]:
    """Yield why a run is no reference run."""
    asked, code = run.environment["plan"], run.environment["code"]
    # The contenders of a suite that answers are made from its reference run.
    contenders_alone = suite.answers and any(part.get("left_out") for part in asked.get("experiments", ()))
    transports = "contenders alone" if contenders_alone else asked["select"]
    if (asked["size"], transports) != ("default", "*") or code["modified"] is not False:
        yield (
            f"{run.name}: size {asked['size']}, transports {transports}, code "
            f"{'changed' if code['modified'] else 'committed'}; a reference run has the default size, all transports "
            "and committed code"
        )
    if suite.answers and asked["passes"] < PASSES:
        yield f"{run.name}: {asked['passes']} passes; a reference run of {suite.name} has at least {PASSES} (--passes)"
    if not run.ended:
        yield f"{run.name}: not all of its runs are there; lab run --resume {run.name} ends it"


def _faults_together(runs: list[StoredRun], suite: Suite) -> Iterator[str]:
    """Yield why runs, the earliest first, are not published together."""
    if suite.answers and len(runs) < RUNS:
        yield f"{len(runs)} of {suite.name}: a reference has at least {RUNS} runs; give --reference for each"
    first, needed = runs[0].environment, packages(*runs)
    for before, run in pairwise(runs):
        other = run.environment
        found = differing(_comparable(first, needed), _comparable(other, needed))
        found = [name for name in found if name not in _MAY_DIFFER]
        found += [] if made_on(other, first["machine"]) else ["machine"]
        ours, theirs = (facts.get("sources", {}) for facts in (first, other))
        found += [f"code of {name}" for name in sorted(ours.keys() | theirs) if ours.get(name) != theirs.get(name)][:3]
        if found:
            yield f"{runs[0].name} and {run.name} differ in {', '.join(found)}; runs of a reference agree in these"
        if _begun(run) - _begun(before) < APART:
            yield (
                f"{before.name} and {run.name} began within two hours; runs of a reference begin at least two hours "
                "apart, so that a slow spell of the machine is not in all of them"
            )


def _comparable(facts: Facts, needed: set[str]) -> Facts:
    plan = {name: value for name, value in facts["plan"].items() if name != "passes"}
    versions = facts.get("packages", {})
    return facts | {"plan": plan, "packages": {name: versions.get(name) for name in sorted(needed)}}


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
    first = "Each suite has a committed run of its default size, or several: report, every call as CSV, and conditions."
    parts = [f"# Reference runs\n\n{COMMENT}\n\n{first}\n"]
    for path in sorted((ROOT / "results" / "reference").iterdir()):
        suite, run, summaries = of(path.name)
        runs = sum(case.n for case in summaries)
        source = f"\nPublished figures: {suite.citation}. Their conditions: {suite.conditions}.\n"
        conditions = "".join(f"- {markdown.plain(one)}.\n" for one in markdown.in_short(run.environment))
        parts.append(
            f"## {path.name}: {suite.title}\n\n"
            f"{len(summaries):,} cases, {runs:,} ok runs: "
            f"[the whole report](../../results/reference/{path.name}/report.md), "
            f"[every run as CSV](../../results/reference/{path.name}/runs.csv).\n\n"
            f"{conditions}{source if suite.citation else ''}"
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
