"""The commands about runs that were made: report, merge and compare."""

from pathlib import Path
from typing import Annotated

import typer

from harness import settings
from harness.cli.app import app, echo, explained, new_console, put, short_path


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
    from harness.cli import recommend, runs
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

    Says of each factor whether it is a difference that so many runs show.
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
