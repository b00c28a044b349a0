"""The commands about the catalogue: list and show."""

import sys
from textwrap import shorten
from typing import Annotated

import typer

from harness import registry
from harness.cli.app import app, echo, explained, new_console, say
from harness.model import Origin


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
