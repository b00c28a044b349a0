"""The commands run and report: perform a suite, say what is done, print what came out."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from harness import registry, settings
from harness.cli.app import app, command_line, explained, new_console
from harness.model import LabError, Status
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.datasets.own.data import OwnData
    from harness.results.row import Row
    from harness.run.plan import Plan
    from harness.run.suite_run import RunRequest
    from harness.suites.suite import Suite

_BESIDE_RESUME = ("resume", "data", "query", "query_from", "key", "names")  # own data are not kept: they are read again
_FINE = (Status.OK, Status.UNAVAILABLE, Status.UNSUPPORTED)
_FIRST, _LONGEST = 3, 300  # runs that are not ok, and characters of each, below the answers


@app.command()
@explained
def run(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="name of a suite")] = "matrix",
    size: Annotated[str, typer.Option(help="smoke, default, laptop or full")] = "default",
    rows: Annotated[int | None, typer.Option(help="rows of the data, instead of the size's own")] = None,
    passes: Annotated[int | None, typer.Option(help="full passes over the suite")] = None,
    only: Annotated[str, typer.Option(help="glob over transport ids, or several with commas")] = "*",
    origin: Annotated[
        str | None, typer.Option(help="all, or published, beyond, limit, control, or several of these with commas")
    ] = None,
    experiment: Annotated[str | None, typer.Option(help="one experiment of the suite, or several with commas")] = None,
    external: Annotated[bool, typer.Option("--external", help="use the servers named in the environment")] = False,
    resume: Annotated[str | None, typer.Option(help="complete this earlier run (id or folder)")] = None,
    data: Annotated[Path | None, typer.Option(help="your own data: a file of Parquet, CSV or Arrow")] = None,
    query: Annotated[str | None, typer.Option(help="or a query to the database of --query-from")] = None,
    query_from: Annotated[str, typer.Option(help="database that is asked the query")] = next(iter(SYSTEMS)),
    key: Annotated[str, typer.Option(help="columns of the key of your data, with commas; none if not given")] = "",
    names: Annotated[bool, typer.Option("--names/--no-names", help="keep names of your columns in results")] = True,
) -> None:
    """Run a suite and leave its results in results/."""
    from harness.cli.own import own_data
    from harness.run import plan as plans
    from harness.run.suite_run import resume_request
    from harness.suites import suite_files

    chosen = settings.load()
    if resume is not None:
        _refuse_beside_resume(context)
    own = own_data(chosen, data, query, key, rows, names, query_from) if data is not None or query is not None else None
    if resume is not None:
        request = resume_request(chosen, resume, lambda name: suite_files.load(chosen.suites_dir, name).rig)
        request = replace(request, own=own)
        known = suite_files.load(chosen.suites_dir, request.plan.suite)
    else:
        known, rows = suite_files.load(chosen.suites_dir, suite), own.rows if own else rows
        if own:
            origin = plans.origins_on_own_data(known, origin)
        plan = plans.of_size(known, size, only, chosen.seed, experiment, rows, passes, chosen.time_limit, origin)
        request = _new(plan, known, "external" if external else chosen.name, own)
    if not perform(chosen, replace(request, traces=known.traces), known):
        raise typer.Exit(1)


def _new(plan: "Plan", suite: "Suite", lab: str, own: "OwnData | None") -> "RunRequest":
    """Return what is asked for by a run that no earlier one has begun, of a suite or of a person's own data."""
    from harness.datasets.own.data import NAME
    from harness.run import plan as plans
    from harness.run.suite_run import RunRequest

    if own:
        plan = plans.on_own_data(plan, NAME)
    return RunRequest(plan, suite.rig, lab, own=own)


def _refuse_beside_resume(context: typer.Context) -> None:
    """Raise LabError where a run is to be completed and something else is asked for: it goes on as it was planned."""
    given = [
        parameter.name
        for parameter in context.command.params
        if parameter.name not in _BESIDE_RESUME and _was_given(context, str(parameter.name))
    ]
    if given:
        raise LabError(
            f"--resume goes on with a run as it was asked for; found {', '.join(map(str, given))} beside it: leave "
            "that out, or start a new run without --resume"
        )


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def perform(chosen: settings.Settings, request: Any, suite: Any) -> bool:
    """Do the runs, write the report, print the answers; return whether nothing went wrong."""
    from harness.run import progress, runner
    from harness.run.suite_run import open_run

    console = new_console()
    if request.run_id is None:
        typer.echo(_intention(chosen, request))
        if left_out := {name for part in request.plan.experiments for name in part.left_out}:
            typer.echo(f"left out: {len(left_out)} transports that are no contenders; --origin all has them, too")
    with open_run(chosen, request, typer.echo) as suite_run:
        _announce(suite_run, request.plan)
        try:
            with progress.shown(console, len(suite_run.todo)) as on_row:
                runner.perform(suite_run.session, suite_run.todo, on_row)
        except (KeyboardInterrupt, SystemExit):
            with suppress(OSError):  # the terminal may be gone
                again = " with the same --data or --query" if request.own else ""
                typer.echo(f"lab: stopped; go on with: {command_line()} run --resume {suite_run.session.name}{again}")
            raise
        folder = suite_run.session.folder
    return _report(console, folder, suite, chosen.pictures)


def _intention(chosen: settings.Settings, request: Any) -> str:
    """Say at once, before any server is up, what a run will do and how long that took the last time."""
    from harness.results import folder as folders
    from harness.run import estimate, plan

    cases = plan.cases(request.plan, registry.select)
    first = f"{request.plan.suite}: {len(cases)} cases, {request.plan.passes} passes"
    for known in folders.newest_first(chosen.results_dir, request.plan.suite):
        if expected := estimate.seconds(cases, request.plan.passes, known.rows, request.plan.time_limit):
            return f"{first}, {estimate.in_words(expected)} as run {known.name} went"
    return f"{first}; how long that takes here is not known yet: the first rows tell"


def _announce(suite_run: Any, plan: Any) -> None:
    """Say what is used, what will be run, and what will be skipped and why."""
    rig = suite_run.session.rig
    cases = {(run.case.transport.id, run.case.experiment, run.case.label): run.case for run in suite_run.todo}
    typer.echo(rig.headline)
    ruled_out = suite_run.session.ruled_out
    reasons = {
        key: reason
        for key, case in cases.items()
        if (reason := rig.unavailable(case) or ruled_out.get((case.dataset, case.transport.id)))
    }
    skipped = Counter((name, reason) for (name, *_), reason in reasons.items())
    done = f", {len(suite_run.done)} runs already done" if suite_run.done else ""
    typer.echo(
        f"{len({name for name, *_ in cases.keys() - reasons.keys()})} transports, size {plan.size}, "
        f"{plan.passes} passes: "
        f"{len(suite_run.todo)} runs{done}; seed {plan.seed}"
    )
    of_all = Counter(name for name, *_ in cases)
    for (name, reason), count in sorted(skipped.items()):
        part = "" if count == of_all[name] else f" ({count} of {of_all[name]} cases)"
        typer.echo(f"skipped: {name}{part}: {reason}")


def _report(console: Console, folder: Path, suite: Any, pictures: bool, every_table: bool = False) -> bool:
    """Write everything that can be made of a run and print its answers; return whether nothing went wrong.

    With `every_table` all of its tables stand before them.
    """
    from harness.report import closing, shown, tables, writing

    report = writing.write(folder, suite if pictures else replace(suite, pictures=()))
    if every_table:
        for table in tables.tables(report.summaries, console.width, suite.published):
            console.print(table)
        for others in shown.tables(suite, report.rows, report.summaries, report.cores):
            console.print(tables.printable(others, console.width))
    bad = [row for row in report.rows if row.status not in _FINE]
    last = _last(suite, folder, report, bad)
    room = closing.LINES - closing.lines(last, console.width)
    ending = closing.closing(suite, report.rows, report.summaries, console.width, room, every_table, report.cores)
    for table in ending.tables:
        console.print(table)
    for line in [*ending.sentences, *last]:
        typer.echo(line)
    return not bad and not report.again


def _last(suite: Any, folder: Path, report: Any, bad: "Sequence[Row]") -> list[str]:
    """Return what stands below the answers: whose benchmark it is, where the results are, what went wrong."""
    found = [f"published: {suite.citation}; {suite.conditions}"] if suite.citation else []
    found.append(f"results: {folder}/ (report.html, report.md, pictures/, runs.csv, summary.csv, environment.json)")
    found.append(f"all tables: {command_line()} report {folder} --tables")
    if report.unread:
        found.append(report.unread)
    if report.again:
        found.append(
            f"{report.again} runs were ended by the machine or a person: {command_line()} run --resume {folder}"
        )
    return found + (_not_ok(bad, len(report.rows), folder) if bad else [])


def _not_ok(bad: "Sequence[Row]", runs: int, folder: Path) -> list[str]:
    """Return how many runs are not ok, and the first of them with their reasons."""
    lines = [f"{row.transport}, pass {row.pass_number}: {row.status}: {row.error}" for row in bad[:_FIRST]]
    return [f"{len(bad)} of {runs} runs are not ok; see {folder}/logs", *(f"  {line[:_LONGEST]}" for line in lines)]


@app.command()
@explained
def report(
    run: Annotated[str, typer.Argument(help="id or folder of a run")],
    tables: Annotated[bool, typer.Option("--tables", help="print all tables, too")] = False,
) -> None:
    """Write the report of a run again and print its answers, from results/ alone."""
    from harness.cli.recommend import show
    from harness.report import recommendation, writing
    from harness.results import folder as folders
    from harness.suites import suite_files

    chosen = settings.load()
    folder = folders.find(chosen.results_dir, run)
    suite, console = suite_files.load(chosen.suites_dir, folders.read(folder).suite), new_console()
    recommended, _ = recommendation.kept(folder)
    if recommended:
        writing.write(folder, suite)
        show(console, recommended)
    else:
        _report(console, folder, suite, chosen.pictures, tables)
