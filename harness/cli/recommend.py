"""The command recommend: one screen about one frame, and the script of the winner."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from harness import settings
from harness.cli.app import app, command_line, explained, new_console
from harness.model import LabError
from harness.recommend.budget import BUDGET
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.recommend.racing import Racing
    from harness.report.recommendation import Recommendation
    from harness.results.row import Row

_DATABASES = " or ".join(SYSTEMS)


@app.command()
@explained
def recommend(
    data: Annotated[Path | None, typer.Option(help="your frame: a file of Parquet, CSV or Arrow")] = None,
    query: Annotated[str | None, typer.Option(help="or a query to the database of --from, else of --to")] = None,
    to: Annotated[str, typer.Option(help=f"database to write to: {_DATABASES}")] = "",
    of: Annotated[str, typer.Option("--from", help=f"database to read from: {_DATABASES}")] = "",
    frame: Annotated[str, typer.Option(help="what your frame is: polars or pandas")] = "polars",
    external: Annotated[bool, typer.Option("--external", help="use the servers named in the environment")] = False,
    budget: Annotated[float, typer.Option(help="seconds that it may take")] = BUDGET,
    without: Annotated[str, typer.Option(help="clients or modules to do without, with commas")] = "",
    style: Annotated[str, typer.Option(help="sync or async; both if not given")] = "",
    max_memory: Annotated[str | None, typer.Option(help="what a transport may take, such as 1GB")] = None,
    key: Annotated[str, typer.Option(help="columns of the table's key, with commas; none if not given")] = "",
    rows: Annotated[int | None, typer.Option(help="a sample of so many rows")] = None,
    names: Annotated[bool, typer.Option("--names/--no-names", help="keep names of columns in results")] = True,
    script: Annotated[Path | None, typer.Option(help="write the winner here, as a program that runs")] = None,
    table: Annotated[str, typer.Option(help="table that the script is for; else as the file is called")] = "",
    resume: Annotated[str | None, typer.Option(help="go on with this race (id or folder) on the same data")] = None,
) -> None:
    """Say which transport is the fastest for your frame, by a race; without data, from the newest run."""
    chosen, console = settings.load(), new_console()
    if data is None and query is None:
        _from_newest(chosen, console)
        return
    from harness.cli.own import own_data
    from harness.recommend import asking

    wanted = tuple(name.strip() for name in without.split(",") if name.strip())
    wish = asking.wish(to, of, frame, wanted, style)
    own = own_data(chosen, data, query, key, rows, names, wish.system)
    asked = asking.asked(chosen, wish, own, external, budget, _bytes(max_memory), resume)
    found, folder = asking.answered(chosen, asked, typer.echo, lambda racing: _shown(console, racing))
    show(console, found)
    if script is not None:
        from harness.recommend.script import write

        write(script, found, own.with_names(), data, table)
        typer.echo(f"the winner as a program: {script}")
    typer.echo(f"results: {folder}/ (recommendation.json, report.html, runs.csv)")


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise LabError(f'expected an amount of memory such as 500MB or 1GB, found "{text}"') from None


def show(console: Console, found: "Recommendation") -> None:
    """Print a recommendation: its table, and what else there is to say."""
    from harness.report import recommendation, tables

    console.print(tables.printable(recommendation.table(found), console.width))
    for line in recommendation.sentences(found):
        typer.echo(line)


def _from_newest(chosen: settings.Settings, console: Console) -> None:
    """Print the answers of the newest run on this machine that has some. Raises LabError where there is none."""
    from harness.report import closing, summarising
    from harness.results import folder as folders
    from harness.suites import suite_files

    suite = suite_files.load(chosen.suites_dir, "matrix")
    for rows in folders.newest_first(chosen.results_dir, suite.name):
        if suite.answers is None or not any(row.ok and row.experiment == suite.answers.experiment for row in rows):
            continue
        said = closing.closing(suite, rows, summarising.summarise(rows, suite.published), console.width, short=True)
        for one in said.tables:
            console.print(one)
        typer.echo(f"from run {rows[0].run_id}, lab {rows[0].lab}, about the lab's own table")
        typer.echo(f"about your own: {command_line()} recommend --data FILE --to {next(iter(SYSTEMS))} --frame polars")
        return
    raise LabError(f"expected a run of suite matrix in {chosen.results_dir}, found none; lab run makes one")


@contextmanager
def _shown(console: Console, racing: "Racing") -> Iterator[Callable[["Row"], None]]:
    """Show how the race goes: who ran, how many are still in, and what is left of the budget."""
    started, budget = racing.started, racing.asked.budget

    def told(row: "Row") -> str:
        return f"{row.rows:,} rows, pass {row.pass_number}, {len(racing.race.contenders)} in the race: {row.transport}"

    if not console.is_terminal:

        def plain(row: "Row") -> None:
            took = f"{row.took:.4f} s" if row.ok else f"{row.status}: {row.error}"
            left = max(budget - (time.monotonic() - started), 0)
            typer.echo(f"[at most {left:.0f} s left] {told(row)}  {took}")

        yield plain
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("of {task.total:.0f} s"))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("racing", total=budget)
        yield lambda row: progress.update(task, completed=time.monotonic() - started, description=told(row))


@app.command()
@explained
def example(
    name: Annotated[str, typer.Argument(help="trips, web_log, sensors, orders or documents")],
    file: Annotated[Path, typer.Argument(help="Parquet file to make")],
    rows: Annotated[int, typer.Option(help="rows of it")] = 100_000,
) -> None:
    """Make a frame of a shape that people have, to try recommend on."""
    from harness.datasets import examples

    made = examples.example(name, rows, settings.load().seed)
    try:
        made.write_parquet(file)
    except OSError as error:
        raise LabError(f"cannot write {file}: {error.strerror or error}") from None
    typer.echo(f"{file}: {made.height:,} rows of {made.width} columns")
