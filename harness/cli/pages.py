"""The command docs: the generated pages."""

from typing import Annotated

import typer

from harness import settings
from harness.cli.app import app, echo, explained
from harness.model import LabError


@app.command()
@explained
def docs(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a page is stale")] = False,
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
