"""The command verify: hostile values through every transport."""

from pathlib import Path
from typing import Annotated

import typer

from harness import settings
from harness.cli.app import app, echo, explained, new_console


@app.command()
@explained
def verify(
    pattern: Annotated[str, typer.Argument(help="glob over transport ids, or several with commas")] = "*",
    kinds: Annotated[str, typer.Option(help="only these kinds of values, with commas")] = "*",
    external: Annotated[bool, typer.Option("--external", help="use the servers named in the environment")] = False,
    to: Annotated[Path | None, typer.Option(help="folder for the matrix in three forms; results/<id>-verify/")] = None,
) -> None:
    """Send hostile values through transports and print the changes.

    Fails where a transport declares something else.
    """
    from harness.fidelity import examination, trials
    from harness.report import fidelity as matrix

    chosen, console = settings.load(), new_console()
    with examination.opened(chosen, "external" if external else chosen.name, pattern, kinds, echo) as exam:
        echo(exam.conditions)
        folder = to or chosen.results_dir / exam.run_id
        with matrix.appending(folder) as append:
            findings = trials.examine(exam, append)
    paths = matrix.write(folder, findings, exam.conditions)
    for line in (*matrix.grid(findings, console.width), *matrix.corrections(findings), *paths):
        echo(line)
    raise typer.Exit(0 if all(finding.as_wanted for finding in findings) else 1)
