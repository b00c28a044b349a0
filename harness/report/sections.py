"""Make a report of a run: its sections once, and from them report.md, report.html and the charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.model import LabError, Status
from harness.report import machine, markdown, recommendation
from harness.report.answers import HERO, NO_DIFFERENCE, lanes, opening, shapes
from harness.report.conclusions import conclusions, control_sentences, round_trip_tables
from harness.report.crossings import crossing_tables, curves, fastest
from harness.report.figures import numbered, short_name
from harness.report.grids import outcome_sentences, outcome_tables, winner_tables
from harness.report.rankings import every_case, losses, not_ok, published_tables, rankings
from harness.report.summary import Summary, summarise, write_summaries
from harness.report.table import Chart, Section, Table, ever_smaller
from harness.report.terminal import LINES, Closing, fitting
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
    charts: Sequence[Chart] = (),
) -> list[Section]:
    """Return the sections of one run, `answers` first, or else the answers of its suite."""
    by_rows, costs = crossing_tables(curves(suite, summaries))
    opened = tuple(answers if answers is not None else by_rows or opening(suite, summaries))
    failed, others = not_ok(rows), rankings(summaries)
    bad = sum(not row.ok for row in rows)
    ended = f"{bad:,} of {len(rows):,} runs are not ok" if bad else f"All {len(rows):,} runs are ok."
    none = () if rows else ("No run is there yet.",)
    several = (*outcome_tables(suite, rows), *winner_tables(suite, rows), *costs, *round_trip_tables(rows))
    drawn = {one.title for one in charts}
    missing = "; ".join(one.title for one in suite.pictures if one.drawn and one.title not in drawn)
    lines = headline(environment, rows, summaries)
    results = (*several, *(one for one in others if not one.minor), *losses(summaries))
    return [
        Section("short", "In short", opened, tuple(lines), tuple(one for one in charts if one.name == HERO)),
        Section("shown", "What this run shows", sentences=tuple(sentences(suite, rows, summaries))),
        Section("tables", "Results", results, none),
        Section("published", "The published figures next to ours", tuple(published_tables(summaries, suite.published))),
        Section(
            "pictures",
            "Pictures",
            sentences=(f"Not drawn, because no ok run fits them: {missing}.",) if missing else (),
            charts=tuple(one for one in charts if one.name != HERO),
        ),
        Section("minor", "Memory and stages", tuple(one for one in others if one.minor), folded=True),
        Section("cases", "Every case, with all its figures", tuple(every_case(summaries)), folded=True),
        Section("not-ok", "What did not run, and why", tuple(failed), (ended,) if rows else ()),
    ]


def headline(environment: Facts, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[str]:
    """Return sentences that say how much was run, how it ended, and whether anything is missing."""
    plan, passes = environment["plan"], environment["plan"]["passes"]
    counts = Counter(str(row.status) for row in rows)
    endings = ", ".join(f"{count:,} {status}" for status, count in counts.most_common())
    size = f" of size {plan['size']}" if "size" in plan else ""
    runs = Counter(row.case for row in rows).values()
    planned = plan.get("size") != "race" and max(runs, default=0) <= passes
    in_passes = f" in {numbered(passes, 'pass', 'passes')}{size}" if planned else ""
    cases = f"{numbered(len(summaries), 'case')}{in_passes}"
    found = [f"{cases}: {numbered(len(rows), 'run')}{f' ({endings})' if rows else ''}."]
    if compared := environment.get("compared"):
        found.append(f"The data were compared before the run: {compared}.")
    if any(status != Status.OK for status in counts):
        found.append("Only ok runs have figures; why the others have none is listed below.")
    if short := sum(count < passes for count in runs):
        few = f"{numbered(short, 'case')} of those below have fewer than {numbered(passes, 'run')}"
        found.append(f"This run is not complete: {few}.")
    return [*found, *machine.said(environment, rows, summaries)]


def sentences(suite: Suite, rows: Sequence[Row], summaries: Sequence[Summary]) -> list[str]:
    """Return the sentences of "What this run shows", those that show a difference first."""
    found = sorted(conclusions(rows, suite.comparisons), key=lambda said: NO_DIFFERENCE in said)
    return [*control_sentences(summaries), *found, *outcome_sentences(suite, rows)]


def closing(
    suite: Suite,
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    width: int,
    room: int = LINES,
    short: bool = False,
    more: Sequence[str] = (),
    named: Callable[[str], str] = short_name,
) -> Closing:
    """Return a run's last screen: no tables but its answers if it is `short`, otherwise also all of a few transports.

    A suite that is not about frames has its crossings, or its fastest and lowest memory, and its conclusions. `more`
    are sentences below these, as far as there is room; a `short` one without them has none. `named` names a transport
    where its id does not fit.
    """
    of_rows = curves(suite, summaries)
    first = [fastest(of_rows, of) for of in (str, named)] if of_rows.winners else opening(suite, summaries)[:1]
    found = shapes(suite, summaries, named) or [one for table in first for one in ever_smaller(table)]
    whole = () if short else (*rankings(summaries), *published_tables(summaries, suite.published))
    said = [*sentences(suite, rows, summaries), *more] if more or not short else []
    return fitting(said, whole, found, width, room, answers_first=bool(suite.answers or of_rows.winners))


@dataclass(frozen=True)
class Report:
    """What a written report is made of: the rows of a run, their summaries and its sections.

    `again` is the number of runs that are still to be run again. `unread` says why the recommendation of a race is not
    in it. `machine` are sentences about it.
    """

    rows: list[Row]
    summaries: list[Summary]
    sections: list[Section]
    machine: tuple[str, ...] = ()
    again: int = 0
    unread: str = ""


def write(folder: Path, suite: Suite) -> Report:
    """Write summary.csv, the pictures, report.md and report.html of a run into its folder, over those of before.

    Raises LabError when the run's files cannot be read, its rows are not all of one environment, or the disk refuses.
    """
    # Not at the top: jinja2 and scipy come with them.
    from harness.report.charts import chart, directions_chart, on_its_own
    from harness.report.page import page

    run = folders.read(folder)
    environment, rows = run.environment, run.rows
    recommended, unread = recommendation.kept(folder)
    answers = None
    if recommended:  # the suite's pictures and comparisons are not about a race
        title = recommendation.title(recommended)
        suite = replace(suite, title=title, pictures=(), comparisons=(), published=(), citation="")
        more = (*recommendation.so_far(recommended), *recommendation.excluded(recommended))
        answers = [recommendation.screen(recommended), *more]
    experiments = [part["name"] for part in environment["plan"].get("experiments", ())]
    summaries = summarise(rows, suite.published, experiments)
    try:
        write_summaries(folder / folders.SUMMARY, summaries)
        found = (chart(picture, rows, suite.published, folder) for picture in suite.pictures if picture.drawn)
        opened = [recommendation.picture(recommended)] if recommended else lanes(suite, summaries)
        first = directions_chart(opened)
        drawn = [one for one in (first, *found) if one]
        (folder / "pictures").mkdir(exist_ok=True)
        for one in drawn:
            (folder / one.path).write_text(on_its_own(one.svg), encoding="utf-8")
        parts = sections(suite, environment, rows, summaries, answers, drawn)
        (folder / "report.md").write_text(markdown.report(suite, environment, parts), encoding="utf-8")
        files = (folders.RUNS, folders.SUMMARY, folders.ENVIRONMENT, "report.md")
        (folder / "report.html").write_text(page(suite, environment, rows, parts, files), encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the report to {folder}: {error.strerror or error}") from None
    said = tuple(machine.said(environment, rows, summaries))
    return Report(rows, summaries, parts, said, run.again, unread)
