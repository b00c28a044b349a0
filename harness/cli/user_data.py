"""A user's own data on the command line: files, or a query that is read once through the reference client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness import settings
from harness.cli.app import echo, new_console, say
from harness.model import LabError, require_utf_8

if TYPE_CHECKING:
    from harness.datasets.user_data.data import UserData
    from harness.datasets.user_data.options import Options

# A second result of a query may have other rows, by random() or LIMIT, and costs the server as much.
ROUND_TRIP = "by a round trip of the answer of the query, which was asked once"


def data_of(
    chosen: settings.Settings, query: str, system: str, key: Sequence[str], rows: int | None, names: bool
) -> UserData:
    """Return the rows of a query to a database that the environment names as data source, with the original query.

    Raises LabError.
    """
    from harness.datasets.user_data import data, memory
    from harness.lab import labs
    from harness.systems import SYSTEMS

    with labs.OPENED["external"](chosen) as lab:
        if system not in lab.systems:
            named = labs.variables(SYSTEMS[system])
            raise LabError(f"the query has no {system} to ask; set {named}")
        answer, asked = SYSTEMS[system].session.answer(lab.endpoints, query)
        own = data.from_memory(answer, key, rows, names)
        return replace(own, query=asked, compared=f"{memory.said(answer, own.whole)}, {ROUND_TRIP}")


# How a CSV is read: of every command that takes --data.
Separator = Annotated[
    str, typer.Option(help='Separator of a CSV, such as ";" or "\\t" [default: found]', show_default=False)
]
Encoding = Annotated[
    str, typer.Option(help="Encoding of a CSV, such as latin-1 or utf-16 [default: utf-8]", show_default=False)
]
DecimalMark = Annotated[
    str, typer.Option("--decimal", help='Decimal mark of a CSV, "." or "," [default: .]', show_default=False)
]
SkipRows = Annotated[int, typer.Option(help="Lines of a CSV before the names of its columns")]
NullValues = Annotated[
    str, typer.Option(help="Strings of a CSV that are nulls, comma-separated, such as NA,-", show_default=False)
]
DateFormat = Annotated[
    str, typer.Option(help="How dates or timestamps of a CSV are written, such as %d/%m/%Y", show_default=False)
]
Schema = Annotated[
    str,
    typer.Option(help="Types of columns of a CSV, such as id=string,day=date,price=decimal(10,2)", show_default=False),
]
CSV_OPTIONS = ("separator", "encoding", "decimal", "skip_rows", "null_values", "date_format", "schema")


def user_data(
    chosen: settings.Settings,
    file: Path | None,
    query: str | None,
    key: str,
    rows: int | None,
    names: bool,
    system: str,
    options: Options,
) -> UserData:
    """Return the data of files, or of a query to the database that is named in the environment. Raises LabError."""
    if (file is None) == (query is None):
        raise LabError("--data and --query: give one of them" if file else "no data: give --data FILE or --query SQL")
    columns = tuple(name.strip() for name in key.split(",") if name.strip())
    if file is not None:
        try:
            require_utf_8(file, "file")
        except ValueError as error:
            raise LabError(f"--data: {error}") from None
        from harness.datasets.user_data import first_look

        first_look.require(file, options, columns, rows)
    elif given := options.given():
        raise LabError(f"{', '.join(given)}: for --data with CSV only; a query has its own types")
    from harness.run.lock import require_free  # not at the top: a refusal does not wait for it

    require_free(chosen.lock_folder)  # a large file takes a while to read
    if file is None:
        user_data, source = data_of(chosen, str(query), system, columns, rows, names), "the answer of the query"
    else:
        from harness.datasets.user_data import data

        user_data, source = data.from_file(file, columns, rows, names, options), str(file)
    for note in user_data.notes:
        echo(f"note: {note}", err=True)
    say(new_console(), f"{source}: compared: {user_data.compared}")
    return user_data
