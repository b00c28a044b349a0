"""The commands about a lab itself: doctor and serve."""

import signal
import sys
from typing import Annotated

import typer

from harness import settings
from harness.cli.app import app, echo, explained, new_console, say

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
    """Keep the embedded lab up in the foreground and print its URIs."""
    from harness.lab import labs

    with labs.embedded(settings.load()) as lab:
        for name, uri in lab.endpoints.items():
            echo(f"{name}\t{uri}")
        sys.stdout.flush()
        while True:
            signal.pause()
