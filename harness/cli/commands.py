"""The application with all of its commands: `recommend.py` and `runs.py` have the largest ones."""

import signal
import sys
from pathlib import Path
from shlex import quote
from textwrap import shorten
from typing import Annotated

import typer

from harness import registry, settings
from harness.cli import recommend, runs
from harness.cli.app import app, echo, explained, new_console, put, say, short_path
from harness.model import Fate, Finding, LabError, Origin

__all__ = ["app"]


@app.command()
@explained
def verify(
    pattern: Annotated[str, typer.Argument(help="Globs over ids of transports, comma-separated")] = "*",
    kinds: Annotated[str, typer.Option(help="Only these kinds of values, comma-separated")] = "*",
    external: Annotated[bool, typer.Option("--external", help="Use the servers named in the environment")] = False,
    update: Annotated[bool, typer.Option("--update", help="Declare the losses that are found")] = False,
    to: Annotated[
        Path | None, typer.Option(help="Folder for the matrix in three forms [default: results/<id>-verify/]")
    ] = None,
) -> None:
    """Send hostile values through transports and print the changes.

    It fails if a transport loses other kinds than it declares; --update declares what it loses.
    """
    from harness.fidelity import select, select_kinds

    chosen, console = settings.load(), new_console()
    tried, transports = select_kinds(kinds), select(pattern)
    # Imports that take longer than finding a wrong word in the command.
    from harness.fidelity import examination, snapshot, trials
    from harness.report import fidelity as matrix
    from harness.run.progress import counted

    with examination.opened(chosen, "external" if external else chosen.name, transports, tried, echo) as exam:
        say(console, exam.conditions)
        folder = to or chosen.results_dir / exam.run_id
        total = sum(len(examination.pairs(entry, exam.kinds)) for entry in exam.chosen)
        try:
            with matrix.appending(folder) as append, counted(console, total) as count:

                def on_finding(finding: Finding) -> None:
                    append(finding)
                    count(finding.transport.id)

                findings = trials.examine(exam, on_finding)
        except (KeyboardInterrupt, SystemExit):
            say(console, f"stopped: the pairs so far are in {short_path(folder)}/fidelity.csv")
            raise
    paths = matrix.write(folder, findings, exam.conditions)
    wrong = [finding for finding in findings if not finding.as_wanted]
    for line in (*matrix.grid(findings, console.width), *matrix.deviations(findings), *paths):
        echo(line)
    if update:
        for file in snapshot.update(findings):
            echo(f"updated: {file}")
        wrong = [finding for finding in wrong if finding.fate is Fate.UNVERIFIABLE]
    elif wrong:
        echo("To declare what was found: the same command with --update.")
    raise typer.Exit(1 if wrong else 0)


@app.command()
@explained
def docs(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; fail if a page, or a figure in README, is stale")
    ] = False,
    reference: Annotated[
        list[str] | None,
        typer.Option(help="First make this run the reference of its suite; repeat it for runs hours apart"),
    ] = None,
) -> None:
    """Write the generated pages, .env.example and README's answers."""
    if not settings.CHECKOUT:
        raise LabError(
            '"lab docs" writes docs/ and README.md of a checkout, and this lab is an installed package; '
            "run it in a clone of the repository"
        )
    from harness import docs as pages
    from harness.results import folder as folders

    if reference:
        results = settings.load().results_dir
        echo(f"written: {pages.adopt(*(folders.find(results, run) for run in reference))}")
    stale = pages.stale(app) if check else pages.write(app)
    for path in stale:
        echo(f"{'stale' if check else 'written'}: {path}")
    if check and stale:
        raise LabError('generated pages are stale; run "lab docs" and commit them')
    if check and (names := pages.outdated()):
        raise LabError(
            f"README's figures are older than the code of {', '.join(names)}; "
            "replace the reference run (docs/dev/maintain.md)"
        )


_MARKS = {True: "ok  ", None: "--  ", False: "FAIL"}


@app.command()
@explained
def doctor(
    external: Annotated[bool, typer.Option("--external", help="Look at the servers named in the environment")] = False,
) -> None:
    """Check the servers, and say what cannot run here and why."""
    from harness.lab import doctor as examination
    from harness.lab import labs

    chosen = settings.load()
    well = True
    with labs.OPENED["external" if external else chosen.name](chosen) as lab:
        console = new_console()
        say(console, f"lab: {lab.name}")
        for diagnosis in examination.examine(chosen, lab):
            well = well and diagnosis.well is not False
            say(console, f"{_MARKS[diagnosis.well]} {diagnosis.subject}: {diagnosis.found}")
    if not well:
        raise typer.Exit(1)


@app.command()
@explained
def serve() -> None:
    """Keep the embedded lab up in the foreground and print its URIs.

    A terminal gets them as variables for your programs.
    """
    from harness.lab import labs
    from harness.systems import SYSTEMS

    variables = {address.name: address.variable for system in SYSTEMS.values() for address in system.addresses}
    with labs.embedded(settings.load()) as lab:
        for name, uri in lab.endpoints.items():
            echo(f"export {variables[name]}={quote(uri)}" if sys.stdout.isatty() else f"{name}\t{uri}")
        if sys.stdout.isatty():
            say(new_console(), "The servers run until Ctrl-C, which removes their data.")
        sys.stdout.flush()
        while True:
            signal.pause()


@app.command("list")
@explained
def list_(pattern: Annotated[str, typer.Argument(help="Glob over ids, such as '*.write_polars_*'")] = "*") -> None:
    """Print the catalogue of transports, or a part of it."""
    if not sys.stdout.isatty():
        for entry in registry.select(pattern):
            echo(f"{entry.id}\t{entry.summary}")
        return
    console = new_console()
    for entry in registry.select(pattern):
        published = " (published)" if entry.origin is Origin.PUBLISHED else ""
        say(console, f"{entry.id}{published}")
        say(console, f"    {shorten(entry.summary, console.width - 4, placeholder=' ...')}")


@app.command()
@explained
def show(transport: Annotated[str, typer.Argument(help="Id of a transport, as lab list prints it")]) -> None:
    """Print one transport as a complete Python script.

    Standard error lists its known losses.
    """
    entry = registry.one(transport)
    from harness.report.fidelity import loses
    from harness.show import script

    sys.stdout.write(script(entry))
    if entry.lossy:
        echo(f"known losses: {loses(entry.lossy)}", err=True)


@app.command()
@explained
def report(
    run: Annotated[str, typer.Argument(help="Id or folder of a run, or latest")],
    tables: Annotated[bool, typer.Option("--tables", help="Print all tables as well")] = False,
) -> None:
    """Print the answers of a run, and write its report again."""
    from harness.results import folder as folders

    chosen = settings.load()
    folder = folders.find(chosen.results_dir, run)
    from harness.report import recommendation
    from harness.report.sections import write
    from harness.suites import suite_files

    suite, console = suite_files.load(chosen.suites_dir, folders.read(folder).suite), new_console()
    recommended, _ = recommendation.kept(folder)
    if recommended:
        write(folder, suite)
        recommend.show(console, recommended, [f"Report: {short_path(folder / 'report.html')}"])
    else:
        runs.report(console, folder, suite, chosen.pictures, tables)


@app.command()
@explained
def merge(
    runs: Annotated[list[str], typer.Argument(help="Ids or folders of two or more runs of one suite")],
    to: Annotated[
        Path | None, typer.Option(help="Folder for merged.csv and merged.md [default: results/merged/]")
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Merge runs that differ in data or versions, labelled")
    ] = False,
) -> None:
    """Put the runs of several machines into one table."""
    from harness.report import merging
    from harness.results import folder as folders
    from harness.suites import suite_files

    chosen = settings.load()
    found = [folders.read(folders.find(chosen.results_dir, run)) for run in runs]
    suite = suite_files.load(chosen.suites_dir, found[0].suite)
    for path in merging.write(to or chosen.results_dir / "merged", suite, merging.merged(suite, found, anyway)):
        echo(path)


@app.command()
@explained
def compare(
    run_a: Annotated[str, typer.Argument(help="Id or folder of a run, or latest")],
    run_b: Annotated[str, typer.Argument(help="Id or folder of the run to compare it with, or latest")],
    to: Annotated[Path | None, typer.Option(help="Folder for compared.csv and compared.md [default: none]")] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare runs that differ in data, versions or machine")
    ] = False,
) -> None:
    """Compare two runs case by case: how much slower is B than A.

    For each factor it says whether so many runs show a difference.
    """
    from harness.report import comparing
    from harness.report.terminal import printable
    from harness.results import folder as folders
    from harness.suites import suite_files

    chosen, console = settings.load(), new_console()
    one, other = (folders.read(folders.find(chosen.results_dir, run)) for run in (run_a, run_b))
    suite = suite_files.load(chosen.suites_dir, one.suite)
    found = comparing.compared(suite, one, other, anyway)
    put(console, printable(comparing.table(found), console.width))
    for path in comparing.write(to, suite, found) if to else ():
        echo(path)


_FIRST = ("recommend", "example", "run", "report", "compare", "merge", "list", "show", "doctor", "serve")
_names = [*_FIRST, "verify", "docs"]  # the last two are for the lab's developers
app.registered_commands.sort(key=lambda one: _names.index(str(one.name or getattr(one.callback, "__name__", ""))))
