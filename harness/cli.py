"""The command `lab`: the only place that prints or exits.

Exit codes: 0 all well; 1 a run is not ok, or a way loses other values than it declares; 2 the command could not be
done, with one line that says why; 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import io
import signal
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from harness import registry, settings
from harness.model import LabError, Origin, Status

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
_FINE = (Status.OK, Status.UNAVAILABLE, Status.UNSUPPORTED)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without † is no reason to lose a table
    app()


def _console() -> Console:
    console = Console()
    # Tables are for reading: a pipe or file has no width of its own.
    return console if console.is_terminal else Console(width=200)


def _command() -> str:
    """Return how this command was called, for a hint that can be pasted."""
    return sys.argv[0] if Path(sys.argv[0]).name == "lab" else "lab"


def _explained(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what the person can act on into one line and exit code 2."""

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except LabError as error:
            typer.echo(f"lab: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            typer.echo("lab: stopped", err=True)
            raise typer.Exit(130) from None

    return wrapper


@app.command("list")
@_explained
def list_(pattern: Annotated[str, typer.Argument(help="glob over ids, e.g. 'clickhouse.*.write_*'")] = "*") -> None:
    """Print the catalogue of transports, or a part of it."""
    if not sys.stdout.isatty():
        for entry in registry.select(pattern):
            typer.echo(f"{entry.id}\t{entry.summary}")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True, overflow="ignore", min_width=max(map(len, registry.catalogue())))
    table.add_column("what it does")
    table.add_column("published")
    for entry in registry.select(pattern):
        table.add_row(entry.id, entry.summary, "yes" if entry.origin is Origin.PUBLISHED else "")
    _console().print(table)


@app.command()
@_explained
def show(transport: Annotated[str, typer.Argument(help="id of a transport, see `lab list`")]) -> None:
    """Print one transport as a complete Python script."""
    from harness.show import script

    sys.stdout.write(script(registry.one(transport)))


@app.command()
@_explained
def run(
    context: typer.Context,
    suite: Annotated[str, typer.Argument(help="name of a suite")] = "matrix",
    size: Annotated[str, typer.Option(help="smoke, default, laptop or full")] = "default",
    rows: Annotated[int | None, typer.Option(help="rows of the data, instead of the size's own")] = None,
    passes: Annotated[int | None, typer.Option(help="full passes over the suite")] = None,
    only: Annotated[str, typer.Option(help="glob over transport ids, or several with commas")] = "*",
    origin: Annotated[str | None, typer.Option(help="published, beyond or limit, or several with commas")] = None,
    experiment: Annotated[str | None, typer.Option(help="one experiment of the suite, or several with commas")] = None,
    external: Annotated[bool, typer.Option("--external", help="use the servers named in the environment")] = False,
    resume: Annotated[str | None, typer.Option(help="complete this earlier run (id or folder)")] = None,
) -> None:
    """Run a suite and leave its results in results/."""
    from harness import suite_files, suites
    from harness.suite_run import Request, resume_request

    chosen = settings.load()
    if resume is not None:
        _refuse_beside_resume(context)
        request = resume_request(chosen, resume, lambda name: suite_files.load(chosen.suites_dir, name).rig)
        known = suite_files.load(chosen.suites_dir, request.plan.suite)
    else:
        known = suite_files.load(chosen.suites_dir, suite)
        plan = suites.plan(known, size, only, chosen.seed, experiment, rows, passes, chosen.time_limit, origin)
        request = Request(plan, known.rig, "external" if external else chosen.kind)
    if not _perform(chosen, replace(request, traces=known.traces), known):
        raise typer.Exit(1)


def _refuse_beside_resume(context: typer.Context) -> None:
    """Raise LabError where a run is to be completed and something else is asked for: it goes on as it was planned."""
    given = [
        parameter.name
        for parameter in context.command.params
        if parameter.name != "resume" and _was_given(context, str(parameter.name))
    ]
    if given:
        raise LabError(
            f"--resume goes on with a run as it was asked for; found {', '.join(map(str, given))} beside it: leave "
            "that out, or start a new run without --resume"
        )


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _perform(chosen: settings.Settings, request: Any, suite: Any) -> bool:
    """Do the runs, write the report, print the tables; return whether nothing went wrong."""
    from harness import progress, runner
    from harness.suite_run import open_run

    console = _console()
    if request.run_id is None:
        typer.echo(_intention(chosen, request))
    with open_run(chosen, request, typer.echo) as suite_run:
        _announce(suite_run, request.plan)
        try:
            with progress.shown(console, len(suite_run.todo)) as on_row:
                runner.perform(suite_run.session, suite_run.todo, on_row)
        except (KeyboardInterrupt, SystemExit):
            with suppress(OSError):  # the terminal may be gone
                typer.echo(f"lab: stopped; go on with: {_command()} run --resume {suite_run.session.name}")
            raise
        folder = suite_run.session.folder
    return _report(console, folder, suite)


def _intention(chosen: settings.Settings, request: Any) -> str:
    """Say at once, before any server is up, what a run will do and how long that took the last time."""
    from harness import estimate, plan, results

    cases = plan.cases(request.plan, registry.select)
    first = f"{request.plan.suite}: {len(cases)} cases, {request.plan.passes} passes"
    runs = sorted(chosen.results_dir.glob("2*/runs.csv"), reverse=True)
    for path in [*runs, chosen.results_dir / "reference" / request.plan.suite / "runs.csv"]:
        try:
            rows = results.load(path)
        except LabError:
            continue
        of_suite = rows if rows and rows[0]["suite"] == request.plan.suite else []
        if expected := estimate.seconds(cases, request.plan.passes, of_suite, request.plan.time_limit):
            return f"{first}, {estimate.in_words(expected)} as run {rows[0]['run_id']} went"
    return f"{first}; how long that takes here is not known yet: the first rows tell"


def _announce(suite_run: Any, plan: Any) -> None:
    """Say what is used, what will be run, and what will be skipped and why."""
    rig = suite_run.session.rig
    cases = {(run.case.transport.id, run.case.label): run.case for run in suite_run.todo}
    typer.echo(rig.headline)
    reasons = {key: reason for key, case in cases.items() if (reason := rig.unavailable(case))}
    skipped = Counter((name, reason) for (name, _), reason in reasons.items())
    done = f", {len(suite_run.done)} runs already done" if suite_run.done else ""
    typer.echo(
        f"{len({name for name, _ in cases.keys() - reasons.keys()})} ways, size {plan.size}, {plan.passes} passes: "
        f"{len(suite_run.todo)} runs{done}; seed {plan.seed}"
    )
    of_all = Counter(name for name, _ in cases)
    for (name, reason), count in sorted(skipped.items()):
        part = "" if count == of_all[name] else f" ({count} of {of_all[name]} cases)"
        typer.echo(f"skipped: {name}{part}: {reason}")


def _report(console: Console, folder: Path, suite: Any) -> bool:
    """Write everything that can be made of a run and print its tables; return whether nothing went wrong."""
    from harness.report import control, findings, tables, writing

    report = writing.write(folder, suite)
    for table in tables.tables(report.summaries, console.width, suite.published):
        console.print(table)
    for finding in [*control.said(report.summaries), *findings.findings(report.rows, suite.comparisons)]:
        typer.echo(finding)
    if suite.citation:
        typer.echo(f"published: {suite.citation}; {suite.conditions}")
    typer.echo(f"results: {folder}/ (report.html, report.md, pictures/, runs.csv, summary.csv, environment.json)")
    if report.again:
        typer.echo(f"{report.again} runs were ended by the machine or a person: {_command()} run --resume {folder}")
    bad = [row for row in report.rows if row["status"] not in _FINE]
    if bad:
        typer.echo(f"{len(bad)} of {len(report.rows)} runs are not ok; see {folder}/logs")
    return not bad and not report.again


@app.command()
@_explained
def report(run: Annotated[str, typer.Argument(help="id or folder of a run")]) -> None:
    """Write the report of a run again and print its tables, from results/ alone."""
    from harness import suite_files
    from harness.suite_run import find_folder, resume_request

    chosen = settings.load()
    request = resume_request(chosen, run, lambda name: suite_files.load(chosen.suites_dir, name).rig)
    _report(_console(), find_folder(chosen, run), suite_files.load(chosen.suites_dir, request.plan.suite))


@app.command()
@_explained
def verify(
    pattern: Annotated[str, typer.Argument(help="glob over transport ids, or several with commas")] = "*",
    kinds: Annotated[str, typer.Option(help="only these kinds of values, with commas")] = "*",
    external: Annotated[bool, typer.Option("--external", help="use the servers named in the environment")] = False,
    to: Annotated[Path | None, typer.Option(help="folder for the matrix in three forms; results/<id>-verify/")] = None,
) -> None:
    """Try hostile values on every way and print what each loses; fail where it is not what the way declares."""
    from harness import fidelity
    from harness.report import fidelity as matrix

    chosen, console = settings.load(), _console()
    with fidelity.opened(chosen, "external" if external else chosen.kind, pattern, kinds, typer.echo) as exam:
        typer.echo(exam.conditions)
        folder = to or chosen.results_dir / exam.run_id
        with matrix.appending(folder) as append:
            findings = fidelity.examine(exam, append)
    paths = matrix.write(folder, findings, exam.conditions)
    for line in (*matrix.grid(findings, console.width), *matrix.corrections(findings), *paths):
        typer.echo(line)
    raise typer.Exit(0 if all(finding.as_wanted for finding in findings) else 1)


@app.command()
@_explained
def merge(
    runs: Annotated[list[str], typer.Argument(help="ids or folders of two or more runs of one suite")],
    to: Annotated[Path | None, typer.Option(help="folder for merged.csv and merged.md; results/merged/")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="also what differs in data or versions, labelled")] = False,
) -> None:
    """Set runs of several machines side by side in one table."""
    from harness import suite_files
    from harness.report import merging, writing
    from harness.suite_run import find_folder

    chosen = settings.load()
    found = [writing.read(find_folder(chosen, run)) for run in runs]
    suite = suite_files.load(chosen.suites_dir, found[0][0]["plan"]["suite"])
    for path in merging.write(to or chosen.results_dir / "merged", suite, merging.merged(suite, found, anyway)):
        typer.echo(path)


@app.command()
@_explained
def compare(
    run_a: Annotated[str, typer.Argument(help="id or folder of a run")],
    run_b: Annotated[str, typer.Argument(help="id or folder of the run to compare it with")],
    to: Annotated[Path | None, typer.Option(help="folder for compared.csv and .md; else none is written")] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="also what differs in data, versions or machine")] = False,
) -> None:
    """Say case by case how many times as long run B takes as run A, and whether that is shown."""
    from harness import suite_files
    from harness.report import comparing, tables, writing
    from harness.suite_run import find_folder

    chosen, console = settings.load(), _console()
    one, other = (writing.read(find_folder(chosen, run)) for run in (run_a, run_b))
    suite = suite_files.load(chosen.suites_dir, one[0]["plan"]["suite"])
    found = comparing.compared(suite, one, other, anyway)
    console.print(tables.printable(comparing.table(found), console.width))
    for path in comparing.write(to, suite, found) if to else ():
        typer.echo(path)


@app.command()
@_explained
def doctor(
    external: Annotated[bool, typer.Option("--external", help="look at the servers named in the environment")] = False,
) -> None:
    """Say of each service whether it is reachable, what it is and offers, and which ways cannot run and why."""
    from harness import doctor as examination
    from harness import labs

    chosen = settings.load()
    well = True
    with labs.OPENED["external" if external else chosen.kind](chosen) as lab:
        typer.echo(f"lab: {lab.kind}")
        for finding in examination.examine(chosen, lab):
            well = well and finding.well
            typer.echo(f"{'ok  ' if finding.well else 'FAIL'} {finding.subject}: {finding.found}")
    if not well:
        raise typer.Exit(1)


@app.command()
@_explained
def serve() -> None:
    """Keep the embedded lab up in the foreground and print its URIs."""
    from harness import labs

    with labs.embedded(settings.load()) as lab:
        for name, uri in lab.endpoints.items():
            typer.echo(f"{name}\t{uri}")
        sys.stdout.flush()
        while True:
            signal.pause()


@app.command()
@_explained
def docs(
    check: Annotated[bool, typer.Option("--check", help="change nothing; fail when a page is stale")] = False,
    reference: Annotated[str | None, typer.Option(help="first make this run the reference of its suite")] = None,
) -> None:
    """Write the generated pages of docs/, .env.example and the tables of README."""
    from harness import docs as pages
    from harness.suite_run import find_folder

    if reference is not None:
        typer.echo(f"written: {pages.adopt(find_folder(settings.load(), reference))}")
    stale = pages.stale() if check else pages.write()
    for path in stale:
        typer.echo(f"{'stale' if check else 'written'}: {path}")
    if check and stale:
        raise LabError('generated pages are stale; run "lab docs" and commit them')


if __name__ == "__main__":
    main()
