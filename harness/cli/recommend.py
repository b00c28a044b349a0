"""The command recommend: one screen about one frame, and the script of the winner."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from harness import settings
from harness.cli import network, newest
from harness.cli import own as own_options
from harness.cli.app import app, command_line, echo, explained, new_console
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
    data: Annotated[
        Path | None, typer.Option(help="Your data: a file of Parquet, CSV, JSON lines or Arrow, a folder, or -")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="Your data as a query to the database of --from, else of --to")
    ] = None,
    to: Annotated[str, typer.Option(help=f"Database to write to: {_DATABASES}")] = "",
    of: Annotated[str, typer.Option("--from", help=f"Database to read from: {_DATABASES}")] = "",
    frame: Annotated[str, typer.Option(help="Library of your frame: polars or pandas")] = "polars",
    external: Annotated[bool, typer.Option("--external", help="Use the servers named in the environment")] = False,
    budget: Annotated[float, typer.Option(help="Time budget in seconds")] = BUDGET,
    without: Annotated[str, typer.Option(help="Clients or modules to leave out, comma-separated")] = "",
    style: Annotated[str, typer.Option(help="sync or async [default: both]")] = "",
    max_memory: Annotated[str | None, typer.Option(help="Most memory a transport may take, such as 1GB")] = None,
    key: Annotated[str, typer.Option(help="Key columns, comma-separated [default: none]")] = "",
    rows: Annotated[
        int | None, typer.Option(help="Race a sample of so many rows; without data: answer for so many")
    ] = None,
    over: Annotated[str, typer.Option("--network", help="Without data: answer for a network such as 10ms,1Gbit")] = "",
    names: Annotated[bool, typer.Option("--names/--no-names", help="Keep the names of your columns in results")] = True,
    script: Annotated[Path | None, typer.Option(help="Write the winner to this file, as a program that runs")] = None,
    table: Annotated[str, typer.Option(help="Table of the script [default: the file's name, or frame]")] = "",
    resume: Annotated[str | None, typer.Option(help="Go on with this race (id or folder) on the same data")] = None,
    separator: own_options.Separator = "",
    encoding: own_options.Encoding = "",
    decimal: own_options.DecimalMark = "",
    skip_rows: own_options.SkipRows = 0,
    null_values: own_options.NullValues = "",
    date_format: own_options.DateFormat = "",
    schema: own_options.Schema = "",
) -> None:
    """Find the fastest transport for your data by measuring it here.

    Without data: print the answers of the newest run of this machine.
    """
    started, chosen, console = time.monotonic(), settings.load(), new_console()
    if data is None and query is None:
        _without_data(chosen, console, rows, to, of, frame, over)
        return
    if over:
        raise LabError("expected --network without data: a race is run over loopback, or to the servers as they are")
    from harness.datasets.own import options
    from harness.recommend import asking

    wanted = tuple(name.strip() for name in without.split(",") if name.strip())
    wish = asking.wish(to, of, frame, wanted, style, script is not None)
    if script is not None:
        _require_writable(script, data, query, of, table)
    csv = options.of(separator, encoding, decimal, skip_rows, null_values, date_format, schema)
    own = own_options.own_data(chosen, data, query, key, rows, names, wish.system, csv)
    asked = asking.asked(chosen, wish, own, external, budget, _bytes(max_memory), resume, started)
    try:
        found, folder = asking.answered(chosen, asked, echo, lambda racing: _shown(console, racing))
    except asking.Stopped as stop:
        source = "--data" if data is not None else "--query"
        show(
            console,
            stop.found,
            [f"go on with: {command_line()} recommend --resume {stop.folder.name} and the same {source}"],
        )
        raise
    last = [f"results: {folder}/ (recommendation.json, report.html, runs.csv)"]
    if script is not None:
        from harness.recommend.loading import Source
        from harness.recommend.script import write

        write(script, found, own.with_names(), Source(data, own.query, own.program.pattern), table)
        last.insert(0, f"the winner as a program: {script}")
    show(console, found, last)


def _without_data(
    chosen: settings.Settings, console: Console, rows: int | None, to: str, of: str, frame: str, over: str
) -> None:
    from harness.recommend import asking

    if over or rows is not None:  # before anything is run: all databases where none is named
        asking.wish(to if to or of else next(iter(SYSTEMS)), of, frame)
    if over:
        network.show(chosen, console, over, rows, to, of, frame)
    elif rows is not None:
        newest.show_at(chosen, console, rows, to, of, frame)
    else:
        newest.show(chosen, console)


def _require_writable(script: Path, data: Path | None, query: str | None, of: str, table: str) -> None:
    """Raise LabError where there would be no script in the end: before the race."""
    from harness.recommend.script import require_place

    require_place(script)
    if str(data) == "-":
        raise LabError("--script with --data -: a program cannot read standard input again; save it as a file first")
    if query is not None and of and not table:
        raise LabError(
            "expected --table with --script, --query and --from: a program reads a whole table, and a query has no name"
        )


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise LabError(f'expected an amount of memory such as 500MB or 1GB, found "{text}"') from None


def show(console: Console, found: "Recommendation", last: Sequence[str] = ()) -> None:
    """Print a recommendation on one screen: its table, what else there is to say, and what is to be said at last."""
    from harness.report import closing

    ending = closing.recommended(found, console.width, closing.LINES - closing.lines(last, console.width))
    for one in ending.tables:
        console.print(one)
    for line in [*ending.sentences, *last]:
        echo(line)


@contextmanager
def _shown(console: Console, racing: "Racing") -> Iterator[Callable[["Row"], None]]:
    """Show how the race goes: who ran, how many are still in, and when it will end: at the latest with its budget."""
    from harness.run.progress import clock

    asked = racing.asked

    def told(row: "Row") -> str:
        return f"{row.rows:,} rows, pass {row.pass_number}, {len(racing.race.contenders)} in the race: {row.transport}"

    if not console.is_terminal:

        def plain(row: "Row") -> None:
            took = f"{row.took:.4f} s" if row.ok else f"{row.status}: {row.error}"
            left = max(asked.budget - (time.monotonic() - asked.started), 0)
            echo(f"[ETA {clock(racing.eta)}, at most {clock(left)}] {told(row)}  {took}")

        yield plain
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("ETA {task.fields[eta]}"))
    with Progress(*columns, TextColumn("of {task.total:.0f} s"), console=console) as progress:
        task = progress.add_task("racing", total=asked.budget, eta=clock(asked.budget))

        def bar(row: "Row") -> None:
            spent = time.monotonic() - asked.started
            progress.update(task, completed=spent, description=told(row), eta=clock(racing.eta))

        yield bar


@app.command()
@explained
def example(
    name: Annotated[str, typer.Argument(help="trips, web_log, sensors, orders or documents")],
    file: Annotated[Path, typer.Argument(help="Parquet file to write")],
    rows: Annotated[int, typer.Option(help="Rows of it")] = 100_000,
) -> None:
    """Write a sample Parquet file to try lab recommend with."""
    from harness.datasets import examples

    made = examples.example(name, rows, settings.load().seed)
    try:
        made.write_parquet(file)
    except OSError as error:
        raise LabError(f"cannot write {file}: {error.strerror or error}") from None
    echo(f"{file}: {made.height:,} rows of {made.width} columns")
