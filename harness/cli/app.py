"""Shared by all commands: the application, where tables are printed, and how an error is printed."""

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer
from rich.console import Console, RenderableType

from harness.lab.packages import PROJECT
from harness.machine.shortage import missing
from harness.model import LabError, printable

if TYPE_CHECKING:
    from harness.report.terminal import Closing

_HELP = "Find out which transport moves a dataframe into and out of a database fastest here, every value verified."
_Options = ParamSpec("_Options")
_CODES = (
    "Exit codes. 0: all is well. 1: a run is not ok, or a transport does not lose exactly what it declares. 2: the "
    "command failed, and one line says why. 130, 143 and 129: stopped by Ctrl-C, SIGTERM and SIGHUP."
)
app = typer.Typer(
    help=_HELP,
    epilog=_CODES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        echo(f"lab {version(PROJECT)}")
        raise typer.Exit


@app.callback()
def lab(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options before a command."""


def new_console() -> Console:
    """Return where tables are printed: as wide as the terminal, or 200 columns."""
    found = Console()
    # Tables are for reading: a pipe or file has no width.
    return found if found.is_terminal else Console(width=200)


def say(console: Console, *strings: str) -> None:
    """Print sentences without breaking a word: a terminal itself breaks lines wherever its width ends.

    A word that is longer than a line, such as a path, is alone on its line. Elsewhere a sentence is one line.
    """
    if console.is_terminal:
        from harness.report.terminal import Sentence

        put(console, *map(Sentence, strings))
    else:
        for text in strings:
            echo(text)


def end(console: Console, ending: "Closing", *last: str) -> None:
    """Print the answers that a command ends with, and the last lines."""
    put(console, *ending.tables)
    say(console, *ending.sentences, *last)


def put(console: Console, *tables: RenderableType) -> None:
    """Print tables, each as wide as it is: words too long for a line are not cut off."""
    for table in tables:
        console.print(table, crop=False)


def echo(text: object, err: bool = False) -> None:
    """Print a line without control characters: a terminal must not obey the strings of a user or a server."""
    shown = printable(str(text), keep="\n\t")
    if err and sys.stderr.isatty():  # which would break a line wherever its width ends
        shown = fill(shown, get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)
    typer.echo(shown, err=err)


def command_line() -> str:
    """Return how this command was called, for a hint that can be pasted."""
    return sys.argv[0] if Path(sys.argv[0]).name == "lab" else "lab"


def called(transport: str) -> str:
    """Return a transport's client and its call, in the spelling of its summary: a run may know some that are gone."""
    from harness import registry
    from harness.report.figures import short_name

    known = registry.catalogue().get(transport)
    return short_name(transport, known.summary if known else "")


def short_path(path: Path) -> Path:
    """Return a path relative to the working folder if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def explained(command: Callable[_Options, None]) -> Callable[_Options, None]:
    """Turn an error that the user can act on into one line and exit code 2."""

    @wraps(command)
    def wrapper(*args: _Options.args, **kwargs: _Options.kwargs) -> None:
        try:
            try:
                command(*args, **kwargs)
            except BaseException as error:  # also Rust's panics, which polars raises if it cannot start a thread
                if type(error).__name__ == "PanicException" and KeyboardInterrupt.__name__ in str(error):
                    raise KeyboardInterrupt from None  # which Rust met in a call of Python
                if reason := missing(error):
                    raise LabError(reason) from None
                if isinstance(error, OSError) and error.filename is not None:
                    raise LabError(f"{error.filename}: {error.strerror}") from None
                raise
        except LabError as error:
            with suppress(OSError):  # standard error may be full or gone
                echo(f"lab: {error}", err=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            with suppress(OSError):
                echo("lab: stopped", err=True)
            raise typer.Exit(130) from None

    return wrapper
