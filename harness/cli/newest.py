"""What `lab recommend` says without data: the answers of the newest run of this machine, else of the reference run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.console import Console

from harness import settings
from harness.cli.app import command_line
from harness.model import LabError
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.report.summary import Summary
    from harness.results.folder import StoredRun
    from harness.suites.suite import Suite

_SUITE = "matrix"


def show(chosen: settings.Settings, console: Console) -> None:
    """Print the answers of the newest run of this machine that has some, or of the one that comes with the lab.

    Raises LabError where there is none.
    """
    from harness.report import closing
    from harness.suites import suite_files

    suite = suite_files.load(chosen.suites_dir, _SUITE)
    run, summaries = _found(chosen, suite)
    last = [*_said(chosen, suite, run), _your_own()]
    room = closing.LINES - closing.lines(last, console.width)
    for one in closing.closing(suite, run.rows, summaries, console.width, room, short=True).tables:
        console.print(one)
    for line in last:
        typer.echo(line)


def _found(chosen: settings.Settings, suite: Suite) -> tuple[StoredRun, list[Summary]]:
    """Return the newest run with answers that was made here, whatever came from elsewhere since; else the reference."""
    from harness.machine.inventory import describe_machine
    from harness.report.answers import answers
    from harness.report.summarising import summarise
    from harness.results import folder as folders
    from harness.results.environment import made_on

    machine = describe_machine()
    reference = folders.reference(chosen.results_dir, suite.name)
    for run in folders.newest_first(chosen.results_dir, suite.name):
        if run.folder == reference or made_on(run.environment, machine):
            summaries = summarise(run.rows, suite.published)
            if suite.answers and answers(suite.answers, run.rows, summaries):
                return run, summaries
    raise LabError(
        f"expected a run of suite {suite.name} of this machine in {chosen.results_dir}, found none; lab run makes one"
    )


def _said(chosen: settings.Settings, suite: Suite, run: StoredRun) -> list[str]:
    """Return what these answers are of: which run, made where, on which data."""
    from harness.report import markdown
    from harness.results import folder as folders

    data = _data(suite, run)
    if run.folder != folders.reference(chosen.results_dir, suite.name):
        return [f"from run {run.name}, the newest of this machine, lab {run.environment['lab']}, on {data}"]
    where = markdown.machine(run.environment["machine"])
    return [
        f"no run of this machine has answers yet: these are of the reference run that comes with the lab ({run.name}), "
        f"made on {where}, lab {run.environment['lab']}, on {data}",
        f"to measure here: {command_line()} run",
    ]


def _data(suite: Suite, run: StoredRun) -> str:
    """Name the data of the answers: the lab's own table, or a person's frame with its columns."""
    from harness.datasets.own.data import NAME

    experiment = suite.answers.experiment if suite.answers else ""
    sizes: dict[str, int] = {}
    for row in run.rows:
        if row.ok and row.experiment == experiment:
            sizes[row.dataset] = max(sizes.get(row.dataset, 0), row.rows or 0)
    return " and ".join(
        f"{rows:,} rows of {_own(run) if name == NAME else f'the table {name} of the lab'}"
        for name, rows in sizes.items()
    )


def _own(run: StoredRun) -> str:
    columns: dict[str, str] = next(
        (data["columns"] for data in run.environment.get("data", ()) if "columns" in data), {}
    )
    shown = ", ".join(list(columns)[:4]) + (", ..." if len(columns) > 4 else "")
    return f"somebody's own data ({len(columns)} columns: {shown})"


def _your_own() -> str:
    return f"about your own: {command_line()} recommend --data FILE --to {next(iter(SYSTEMS))} --frame polars"
