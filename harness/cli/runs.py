"""The commands run and report: perform a suite, show its progress, print its answers."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harness import registry, settings
from harness.cli import user_data as user_data_options
from harness.cli.app import app, called, command_line, end, explained, new_console, put, say, short_path
from harness.machine.shortage import require_threads
from harness.model import FINE, LabError, Status
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.model import Case
    from harness.report.sections import Report
    from harness.results.row import Row
    from harness.run.estimate import Judge
    from harness.run.plan import Plan
    from harness.run.progress import OnRow
    from harness.run.rigs.rig import RunRequest
    from harness.run.runner import SuiteRun
    from harness.suites.suite import Suite

_WITH_RESUME = (
    "resume",
    "data",
    "query",
    "query_from",
    "key",
    "names",
    *user_data_options.CSV_OPTIONS,
)  # own data are not kept: they are read again
_ELSEWHERE = ("not-ok", "cases")  # sections of a report whose tables are not printed
_FIRST, _LONGEST = 3, 300  # runs that are not ok, and characters of each, below the answers


@app.command()
@explained
def run(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="Name of a suite")] = "matrix",
    size: Annotated[str, typer.Option(help="smoke, default, laptop or full")] = "default",
    rows: Annotated[int | None, typer.Option(help="Rows of the data [default: of the size]")] = None,
    passes: Annotated[int | None, typer.Option(help="Full passes over the suite [default: of the size]")] = None,
    only: Annotated[str, typer.Option(help="Globs over ids of transports, comma-separated")] = "*",
    origin: Annotated[
        str | None, typer.Option(help="all, or some of published, beyond, limit, control, comma-separated")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="Experiments of the suite, comma-separated [default: all]")
    ] = None,
    external: Annotated[bool, typer.Option("--external", help="Use the servers named in the environment")] = False,
    resume: Annotated[str | None, typer.Option(help="Complete this earlier run (id or folder)")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Your data: a file of Parquet, CSV, JSON lines or Arrow, a folder, or -")
    ] = None,
    query: Annotated[str | None, typer.Option(help="Your data as a query to the database of --query-from")] = None,
    query_from: Annotated[str, typer.Option(help="Database that answers the query")] = next(iter(SYSTEMS)),
    key: Annotated[str, typer.Option(help="Key columns, comma-separated [default: none]")] = "",
    names: Annotated[bool, typer.Option("--names/--no-names", help="Keep the names of your columns in results")] = True,
    separator: user_data_options.Separator = "",
    encoding: user_data_options.Encoding = "",
    decimal: user_data_options.DecimalMark = "",
    skip_rows: user_data_options.SkipRows = 0,
    null_values: user_data_options.NullValues = "",
    date_format: user_data_options.DateFormat = "",
    schema: user_data_options.Schema = "",
) -> None:
    """Run a suite and leave its results in results/."""
    from harness.datasets.user_data import options
    from harness.run import plan as plans
    from harness.suites import suite_files

    chosen = settings.load()
    if resume is not None:
        _refuse_with_resume(context)
    user_data = None
    csv = options.of(separator, encoding, decimal, skip_rows, null_values, date_format, schema)
    own = data is not None or query is not None
    if not own and (given := csv.given()):
        raise LabError(f"{', '.join(given)}: only with --data FILE")
    if resume is None:  # reading the data, and the imports below, take longer than finding a wrong word in the command
        known = suite_files.load(chosen.suites_dir, suite)
        origin = plans.origins_on_user_data(known, origin) if own else origin

        def planned(rows: int | None) -> "Plan":
            return plans.of_size(known, size, only, chosen.seed, experiment, rows, passes, chosen.time_limit, origin)

        plan = planned(rows)
        plans.cases(plan, registry.select)
    require_threads()
    if external and own:
        from harness.lab import labs

        labs.addresses(chosen)
    if own:
        user_data = user_data_options.user_data(chosen, data, query, key, rows, names, query_from, csv)
    if resume is not None:
        from harness.run.suite_run import resume_request

        request = resume_request(chosen, resume, lambda name: suite_files.load(chosen.suites_dir, name).rig)
        known = suite_files.load(chosen.suites_dir, request.plan.suite)
    else:
        from harness.run.rigs.rig import RunRequest

        if user_data:
            from harness.datasets.user_data.data import NAME

            plan = plans.on_user_data(planned(user_data.rows), NAME)
        lab = "external" if external else chosen.name
        request = RunRequest(settings=chosen, plan=plan, rig=known.rig, lab=lab)
    if not perform(replace(request, user_data=user_data, traces=known.traces), known):
        raise typer.Exit(1)


def _refuse_with_resume(context: typer.Context) -> None:
    """Raise LabError if options change the plan of a run to resume: it goes on as planned."""
    given = [
        parameter.name
        for parameter in context.command.params
        if parameter.name not in _WITH_RESUME and _was_given(context, str(parameter.name))
    ]
    if given:
        raise LabError(
            f"{', '.join(map(str, given))} with --resume: a run continues as it was planned; leave that out, or start "
            "a new run without --resume"
        )


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def perform(request: "RunRequest", suite: "Suite") -> bool:
    """Do the runs, write the report, print the answers; return whether all went well."""
    from harness.run import estimate, lock, progress, runner
    from harness.run.plan import cases
    from harness.run.suite_run import open_run

    chosen = request.settings
    lock.require_free(chosen.lock_folder)  # open_run takes it, after all that is said before
    console, of_each = new_console(), cases(request.plan, registry.select)
    tell, judge, expected = partial(say, console), _judge(chosen, request.plan.suite, of_each), None
    if not request.run_id:
        earlier = judge.run.rows if judge else []
        expected = estimate.seconds(of_each, request.plan.passes, earlier, request.plan.time_limit)
        tell(_intention(request.plan, of_each, judge, expected))
        if left_out := {name for part in request.plan.experiments for name in part.left_out}:
            tell(f"skipped: {len(left_out)} transports that are not contenders; --origin all includes them")
    folder, go_on = None, ""
    try:
        with open_run(replace(request, say=tell)) as suite_run:
            _announce(suite_run, tell)
            if judge and expected and (corrected := judge.corrected(expected, suite_run.calibration)):
                tell(corrected)
            work = {run.key for run in suite_run.work}
            folder, again = suite_run.folder, " with the same --data or --query" if request.user_data else ""
            go_on = f"continue with: {command_line()} run --resume {suite_run.name}{again}"
            rows, slowdown = (judge.run.rows, judge.slowdown(suite_run.calibration)) if judge else ([], 1.0)
            pace = estimate.pace(suite_run.work, rows, request.plan.time_limit, slowdown)
            try:
                with progress.shown(console, work, pace) as on_row:
                    of_all = f"this is after pass 1 of {request.plan.passes}, from one run each"
                    after_pass_1 = partial(
                        _answers_so_far, console, folder, suite, f"{of_all}: the answers may still change"
                    )
                    runner.perform(suite_run, suite_run.todo, _telling(suite_run, on_row, after_pass_1))
            except (KeyboardInterrupt, SystemExit):
                with suppress(OSError):  # the terminal may be gone
                    tell(f"lab: stopped; {go_on}")
                raise
    except KeyboardInterrupt:  # by a user, who waits for an answer; the servers have ended by now
        with suppress(OSError):
            if folder:
                _answers_so_far(console, folder, suite, f"stopped: these answers are of the runs so far; {go_on}")
        raise
    return report(console, suite_run.folder, suite, chosen.pictures)


def _judge(chosen: settings.Settings, suite: str, of_each: "Sequence[Case]") -> "Judge | None":
    """Return the earlier run of a suite from which to estimate the time of these cases; None without one."""
    from harness.machine.inventory import describe_machine
    from harness.results import folder as folders
    from harness.run import estimate

    known = folders.newest_first(chosen.results_dir, suite)
    return estimate.judge(known, folders.reference(chosen.results_dir, suite), describe_machine(), of_each)


def _intention(plan: "Plan", of_each: "Sequence[Case]", judge: "Judge | None", expected: float | None) -> str:
    """Print at once, before any server starts, the plan of a run and the time of the last such run."""
    from harness.run import estimate

    first = f"{plan.suite}: size {plan.size}, {_passes(plan)}"
    if judge is None or expected is None:
        return f"{first}; no run that has ended tells how long that takes: the first rows do"
    scaled = estimate.scaled(of_each, judge.run.rows)
    lacking = f"; it did not have {scaled} of the {len(of_each)} cases: from similar ones" if scaled else ""
    return f"{first}; {estimate.in_words(expected)}, {judge.whose}{lacking}"


def _passes(plan: "Plan") -> str:
    return f"{plan.passes} pass{'es' if plan.passes > 1 else ''}"


def _announce(suite_run: "SuiteRun", tell: Callable[[str], None]) -> None:
    """Print the lab used, each reason why some cases cannot run, and the plan."""
    plan = suite_run.request.plan
    tell(suite_run.rig.headline)
    cases = {run.key[:3] for run in suite_run.todo}
    skipped: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for key, reason in suite_run.reasons.items():
        skipped[reason].add(key[:3])
    for reason, of_reason in sorted(skipped.items()):
        names = sorted({name for name, *_ in of_reason})
        whose = names[0] if len(names) == 1 else f"{len(names)} transports"
        of_all = sum(name in names for name, *_ in cases)
        part = "" if len(of_reason) == of_all else f" ({len(of_reason)} of {of_all} cases)"
        tell(f"skipped: {whose}{part}: {reason}")
    done = sum(row.status is not Status.UNAVAILABLE for row in suite_run.done)
    tell(
        f"{len(suite_run.work)} runs of {len({run.case.transport.id for run in suite_run.work})} transports, "
        f"size {plan.size}, {_passes(plan)}{f', {done} runs already done' if done else ''}"
    )


def _telling(suite_run: "SuiteRun", on_row: "OnRow", after_pass_1: Callable[[], None]) -> "OnRow":
    """Return the function called with every row: it shows it, and answers after the first of several passes."""
    more = any(run.pass_number > 1 for run in suite_run.work)
    waiting = {run.key for run in suite_run.work if run.pass_number == 1} if more else set()

    def told(row: "Row") -> None:
        on_row(row)
        if row.key in waiting:
            waiting.remove(row.key)
            if not waiting:
                after_pass_1()

    return told


def _answers_so_far(console: Console, folder: Path, suite: "Suite", said: str) -> None:
    """Print the answers from the rows so far, in the form of the final ones; nothing without answers."""
    from harness.report.sections import closing
    from harness.report.summary import summarise
    from harness.report.terminal import LINES, lines_of
    from harness.results import folder as folders

    if not (folder / folders.RUNS).exists():
        return
    run = folders.read(folder)
    summaries = summarise(run.rows, suite.published)
    if any(one.n for one in summaries):
        room = LINES - lines_of([said], console.width)
        ending = closing(suite, run.rows, summaries, console.width, room, named=called)
        end(console, ending, said)


def report(console: Console, folder: Path, suite: "Suite", pictures: bool, every_table: bool = False) -> bool:
    """Write the results and reports of a run and print its answers; return whether all went well.

    With `every_table`, print all tables of the run before its answers.
    """
    from harness.report.sections import closing, write
    from harness.report.terminal import LINES, lines_of, printable

    report = write(folder, suite if pictures else replace(suite, pictures=()))
    if every_table:
        every = (table for one in report.sections[1:] if one.name not in _ELSEWHERE for table in one.tables)
        put(console, *(printable(table, console.width) for table in every))
    bad = [row for row in report.rows if row.status not in FINE]
    last = _last(folder, report, bad)
    room = LINES - lines_of(last, console.width)
    of_published = [f"published: {suite.citation}; {suite.conditions}"] if suite.citation else []
    more = [*report.machine, *of_published]
    ending = closing(suite, report.rows, report.summaries, console.width, room, every_table, more, called)
    end(console, ending, *last)
    return not bad and not report.again


def _last(folder: Path, report: "Report", bad: "Sequence[Row]") -> list[str]:
    """Return the lines printed below the answers: the report, the command for all tables, and failures."""
    run = folder.name if folder.parent == settings.load().results_dir.resolve() else folder
    found = [f"Report: {short_path(folder / 'report.html')}", f"All tables: {command_line()} report {run} --tables"]
    found += [report.unread] if report.unread else []
    if report.again:
        ended = "1 run was" if report.again == 1 else f"{report.again} runs were"
        found.append(f"{ended} ended by the machine or a person: {command_line()} run --resume {run}")
    return found + (_not_ok(bad, len(report.rows), folder) if bad else [])


def _not_ok(bad: "Sequence[Row]", runs: int, folder: Path) -> list[str]:
    """Return how many runs are not ok, and the first of them with their reasons."""
    lines = [f"{row.transport}, pass {row.pass_number}: {row.status}: {row.error}" for row in bad[:_FIRST]]
    return [f"{len(bad)} of {runs} runs are not ok; see {folder}/logs", *(f"  {line[:_LONGEST]}" for line in lines)]
