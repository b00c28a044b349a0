"""The command line reference, generated from the application itself."""

from collections.abc import Iterator
from typing import Any

import typer
from typer.core import TyperGroup

from harness.docs.words import COMMENT, prose
from harness.report.markdown import table


def page(app: typer.Typer, name: str) -> str:
    """Return the page of all commands of an application named `name`: descriptions, arguments and options."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    context = typer.Context(group, info_name=name)
    found = {of: group.commands[of] for of in group.list_commands(context)}
    overview = table(
        ("command", "what it does"),
        ((f"[`{name} {of}`](#{name}-{of})", _first_line(command)) for of, command in found.items()),
    )
    return "\n".join(
        [
            f"# Commands\n\n{COMMENT}\n\n{_paragraphs(group.help)}\n\n{_paragraphs(group.epilog)}\n\n{overview}",
            *(_section(command, typer.Context(command, context, of)) for of, command in found.items()),
        ]
    )


def _section(command: Any, context: typer.Context) -> str:
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    parts = [f"## {path}\n\n{_paragraphs(command.help)}\n\n```console\n$ {usage}\n```\n"]
    if rows := list(_parameters(command, context)):
        parts.append(table(("argument or option", "meaning"), rows))
    return "\n".join(parts)


def _parameters(command: Any, context: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield a command's parameters as `--help` prints them, without --help itself."""
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            yield f"`{record[0]}`", prose(record[1])


def _first_line(command: Any) -> str:
    return _paragraphs(command.help).partition("\n")[0]


def _paragraphs(text: str | None) -> str:
    return prose((text or "").strip())
