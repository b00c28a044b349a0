"""The command verify: hostile values through every transport."""

from pathlib import Path
from typing import Annotated

import typer

from harness import settings
from harness.cli.app import app, echo, explained, new_console
from harness.model import Fate


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

    Fails where a transport declares something else, unless --update changes the declaration.
    """
    from harness.fidelity import select, select_kinds

    chosen, console = settings.load(), new_console()
    tried, transports = select_kinds(kinds), select(pattern)
    # Imports that take longer than finding a wrong word in the command.
    from harness.fidelity import examination, snapshot, trials
    from harness.report import fidelity as matrix

    with examination.opened(chosen, "external" if external else chosen.name, transports, tried, echo) as exam:
        echo(exam.conditions)
        folder = to or chosen.results_dir / exam.run_id
        with matrix.appending(folder) as append:
            findings = trials.examine(exam, append)
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
