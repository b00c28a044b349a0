"""The commands about the catalogue: list and show."""

import sys
from typing import Annotated

import typer
from rich.table import Table

from harness import registry
from harness.cli.app import app, echo, explained, new_console
from harness.model import Origin


@app.command("list")
@explained
def list_(pattern: Annotated[str, typer.Argument(help="glob over ids, e.g. '*.write_polars_*'")] = "*") -> None:
    """Print the catalogue of transports, or a part of it."""
    if not sys.stdout.isatty():
        for entry in registry.select(pattern):
            echo(f"{entry.id}\t{entry.summary}")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("id", no_wrap=True, overflow="ignore", min_width=max(map(len, registry.catalogue())))
    table.add_column("what it does")
    table.add_column("published")
    for entry in registry.select(pattern):
        table.add_row(entry.id, entry.summary, "yes" if entry.origin is Origin.PUBLISHED else "")
    new_console().print(table)


@app.command()
@explained
def show(transport: Annotated[str, typer.Argument(help="id of a transport, see `lab list`")]) -> None:
    """Print one transport as a complete Python script."""
    from harness.show import script

    sys.stdout.write(script(registry.one(transport)))
