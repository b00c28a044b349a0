"""The command recommend: one screen about one frame, and programs of the transports it recommends."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.console import Console

from harness import settings
from harness.cli import user_data as user_data_options
from harness.cli.app import app, called, command_line, echo, end, explained, new_console, say, short_path
from harness.machine.shortage import require_threads
from harness.model import LabError, printable
from harness.recommend import direction, require_known, transports
from harness.recommend.budget import BUDGET, require_possible
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.datasets.user_data.data import UserData
    from harness.recommend.racing import Racing
    from harness.report.recommendation import Recommendation
    from harness.results.row import Row

_FIGURES = 24  # columns of the ETA and the budget
_WIDE = 140  # columns of a terminal that is wide enough for a bar
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
    without: Annotated[str, typer.Option(help="Clients or modules to skip, comma-separated")] = "",
    style: Annotated[str, typer.Option(help="sync or async [default: both]")] = "",
    max_memory: Annotated[str | None, typer.Option(help="Most memory a transport may take, such as 1GB")] = None,
    key: Annotated[str, typer.Option(help="Key columns, comma-separated [default: none]")] = "",
    rows: Annotated[
        int | None, typer.Option(help="Race a sample of this many rows; without data: answer for this many")
    ] = None,
    over: Annotated[str, typer.Option("--network", help="Without data: answer for a network such as 10ms,1Gbit")] = "",
    names: Annotated[bool, typer.Option("--names/--no-names", help="Keep the names of your columns in results")] = True,
    script: Annotated[
        Path | None, typer.Option(help="Write the fastest from PyPI to this file, as a program that runs")
    ] = None,
    script_fastest: Annotated[
        Path | None, typer.Option(help="Write the fastest of all to this file, as a program that runs")
    ] = None,
    share: Annotated[bool, typer.Option("--share", help="Print the answer as five lines of Markdown")] = False,
    table: Annotated[str, typer.Option(help="Table of the script [default: the file's name, or frame]")] = "",
    resume: Annotated[str | None, typer.Option(help="Continue this race (id or folder) on the same data")] = None,
    separator: user_data_options.Separator = "",
    encoding: user_data_options.Encoding = "",
    decimal: user_data_options.DecimalMark = "",
    skip_rows: user_data_options.SkipRows = 0,
    null_values: user_data_options.NullValues = "",
    date_format: user_data_options.DateFormat = "",
    schema: user_data_options.Schema = "",
) -> None:
    """Find the fastest transport for your data by measuring it here.

    Without data: print the answers of the newest run of this machine.
    """
    started, chosen, console = time.monotonic(), settings.load(), new_console()
    if data is None and query is None:
        _without_data(chosen, console, rows, to, of, frame, over)
        return
    if over:
        raise LabError("--network works only without data: a race runs over loopback, or to your servers as they are")
    from harness.datasets.user_data import options
    from harness.results import folder as folders

    wanted = tuple(name.strip() for name in without.split(",") if name.strip())
    system, operation = direction(to, of, frame)
    scripts = {"--script": script, "--script-fastest": script_fastest}
    for option, file in scripts.items():
        if file is not None:
            _require_writable(option, file, data, query, of, table)
    require_possible(budget)
    if wanted or style:
        require_known(transports(system, operation, frame), wanted, style)
    most_memory = _bytes(max_memory)
    csv = options.of(separator, encoding, decimal, skip_rows, null_values, date_format, schema)
    require_threads()
    folder = folders.find(chosen.results_dir, resume) if resume is not None else None  # reading the data takes longer
    if external:
        from harness.lab import labs

        labs.addresses(chosen, [system])
    user_data = user_data_options.user_data(chosen, data, query, key, rows, names, system, csv)
    # Imports that take longer than finding a wrong word in the command.
    from harness.recommend import judging
    from harness.recommend.eligible import Asked

    asked = Asked(
        data=user_data,
        system=system,
        operation=operation,
        frame=frame,
        lab="external" if external else chosen.name,
        without=wanted,
        style=style,
        program=script_fastest is not None,
        budget=budget,
        started=started,
        max_memory=most_memory,
        run_id=folders.environment(folder)["run_id"] if folder else "",
        folder=folder,
        source=printable(data.name) if data and names and str(data) != "-" else "",
    )
    try:
        found, folder = judging.answered(chosen, asked, partial(say, console), lambda racing: _shown(console, racing))
    except judging.Stopped as stop:
        source = "--data" if data is not None else "--query"
        show(
            console,
            stop.found,
            [f"continue with: {command_line()} recommend --resume {stop.folder.name} and the same {source}"],
        )
        raise
    last = _written(found, scripts, user_data, data, table)
    show(console, found, [*last, f"Report: {short_path(folder / 'report.html')}"])
    if share:
        from harness.report.recommendation import share_lines

        for line in ["", *share_lines(found, folders.environment(folder))]:
            echo(line)


def _without_data(
    chosen: settings.Settings, console: Console, rows: int | None, to: str, of: str, frame: str, over: str
) -> None:
    direction(to if to or of else next(iter(SYSTEMS)), of, frame)  # all databases if none is named
    from harness.cli import newest  # takes longer than finding a wrong word in the command

    if over:
        newest.over_network(chosen, console, over, rows, to, of, frame)
    elif rows is not None:
        newest.show_at(chosen, console, rows, to, of, frame)
    else:
        newest.show(chosen, console)


def _written(
    found: "Recommendation", scripts: Mapping[str, Path | None], user_data: "UserData", data: Path | None, table: str
) -> list[str]:
    """Write the programs that are asked for, and say which one is where."""
    from harness.recommend.script import Source, write

    source, said = Source(data, user_data.query, user_data.program.pattern), []
    for option, figure in {"--script": found.from_pypi, "--script-fastest": found.fastest}.items():
        file = scripts[option]
        if file is not None and figure is None:
            said.append(f"Script: none from PyPI moves these data, so {file} is not written; see --script-fastest")
        elif file is not None and figure is not None:
            write(file, figure, user_data.with_names(), source, table)
            said.append(f"Script: {file} ({figure.name})")
    return said


def _require_writable(option: str, script: Path, data: Path | None, query: str | None, of: str, table: str) -> None:
    """Raise LabError before the race if no script can result from it."""
    place = script if script.exists() else script.parent
    if script.is_dir() or not script.parent.is_dir() or not os.access(place, os.W_OK):
        raise LabError(
            f"{script}: cannot write the script there; name a file in a folder that exists and that you may write to"
        )
    if str(data) == "-":
        raise LabError(f"{option} with --data -: a program cannot read standard input again; save it as a file first")
    if query is not None and of and not table:
        raise LabError(f"{option} with --query and --from: add --table NAME, because a program reads a whole table")


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        raise LabError(f'--max-memory "{text}": give an amount such as 500MB or 1GB') from None


def show(console: Console, found: "Recommendation", last: Sequence[str] = ()) -> None:
    """Print a recommendation on one screen: the answer, its table, notes, and the last lines."""
    from harness.report.terminal import LINES, lines_of, recommended

    last = [f"Code: {command_line()} show {found.taken.transport}", *last]
    ending = recommended(found, console.width, LINES - lines_of(last, console.width) - 1)
    end(console, ending, "", *last)


@contextmanager
def _shown(console: Console, racing: "Racing") -> Iterator[Callable[["Row"], None]]:
    """Show the progress of the race: the last transport, the number still in, and the time of its end."""
    from harness.run.progress import clock, progress_bar

    asked = racing.asked

    def told(row: "Row", name: str) -> str:
        return f"{row.rows:,} rows, pass {row.pass_number}, {len(racing.race.contenders)} in the race: {name}"

    if not console.is_terminal:

        def plain(row: "Row") -> None:
            took = f"{row.took:.4f} s" if row.ok else f"{row.status}: {row.error}"
            left = max(asked.budget - (time.monotonic() - asked.started), 0)
            echo(f"[ETA {clock(racing.eta)}, at most {clock(left)}] {told(row, row.transport)}  {took}")

        yield plain
        return
    with progress_bar(console, "ETA {task.fields[eta]} of {task.total:.0f} s", wide=_WIDE) as progress:
        task = progress.add_task("racing", total=asked.budget, eta=clock(asked.budget))

        def bar(row: "Row") -> None:
            spent, name = time.monotonic() - asked.started, called(row.transport)
            whole = told(row, name)
            description = whole if len(whole) <= console.width - _FIGURES else name
            progress.update(task, completed=spent, description=description, eta=clock(racing.eta))

        yield bar


@app.command()
@explained
def example(
    name: Annotated[str, typer.Argument(help="trips, web_log, sensors, orders or documents")],
    file: Annotated[Path, typer.Argument(help="Parquet file to write")],
    rows: Annotated[int, typer.Option(help="Rows to write")] = 100_000,
) -> None:
    """Write a sample Parquet file to try lab recommend with."""
    from harness.datasets import examples

    made = examples.example(name, rows, settings.load().seed)
    content = BytesIO()
    made.write_parquet(content)
    try:
        file.write_bytes(content.getvalue())  # polars has other exceptions for a full disk, and for names not in UTF-8
    except OSError as error:
        raise LabError(f"cannot write {file}: {error.strerror or error}") from None
    echo(f"{file}: {made.height:,} rows of {made.width} columns")
