"""A transport as a complete program for one table: it contains the data's source and columns, and no lab code."""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from harness import registry, show
from harness.datasets.specification import PLAIN
from harness.datasets.user_data.data import UserData
from harness.lab.packages import PROJECT, asked_for, beyond_pypi, package_of
from harness.machine.inventory import describe_machine
from harness.model import LabError, Operation, Transport, printable
from harness.recommend.loading import Source, load
from harness.report.figures import significant
from harness.report.markdown import machine
from harness.report.recommendation import Figure
from harness.systems import SYSTEMS

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_OURS = "arrow_wire"  # a program calls it directly, and makes the table over its connection
_SHARED = {"shared_io": "a folder shared with the server", "s3": "a bucket that the server reads, too"}


def needed(entry: Transport) -> str:
    """Name the needs of a transport's program other than addresses; empty if it runs as it is."""
    return " and ".join(_SHARED[need] for need in entry.needs if need in _SHARED)


def write(path: Path, figure: Figure, data: UserData, source: Source, table: str) -> None:
    """Write a transport as a program; see `program`. Raises LabError."""
    try:
        beside = replace(source, beside=path.absolute().parent)
        path.write_text(program(figure, data, beside, table), encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the script {path}: {error.strerror}") from None


def program(figure: Figure, data: UserData, source: Source, table: str = "") -> str:
    """Return Python source that moves data into a table, or a table into a frame, as a transport does.

    It takes no arguments; the address is in the environment. `table` defaults to the name of the file.
    Raises LabError for a transport that needs more than addresses: see `needed`.
    """
    entry = registry.one(figure.transport)
    if more := needed(entry):
        raise LabError(f"{entry.id} needs {more}: lab show {entry.id} prints it with its arguments")
    table = table or re.sub(r"\W+", "_", source.table).lower()
    packages = _packages(entry, source)
    imported = [("", "os"), *([("", "glob")] if source.pattern else [])]
    if _OURS in entry.modules:
        modules = "\n".join(sorted(f"import {name}" for _, name in imported))
        body = f"{modules}\n\nfrom {_OURS} import {entry.system}\n\n"
    else:
        body = _brief(show.body(entry, *imported, called_with=False)) + "\n\n\n"
    body += "\n".join(_constants(entry, data, source, table))
    parts = [f"{_header(entry, packages)}\n{_docstring(entry, figure, source, table)}\n\n{body}"]
    if entry.operation is Operation.WRITE:
        making = SYSTEMS[entry.system].script
        parts.append(load(entry.frame, data, source, making.SELECT))
        parts += [] if _OURS in packages else [making.CREATE_TABLE]
    return "\n\n\n".join([*parts, _main(entry)]) + "\n"


def _packages(entry: Transport, source: Source) -> set[str]:
    """Return the modules that a program needs beyond the standard library."""
    packages = {*entry.modules - set(sys.stdlib_module_names), entry.frame}
    if entry.operation is Operation.WRITE:
        making = SYSTEMS[entry.system].script
        packages.update(making.PACKAGES, ("polars",), ("pyarrow",) if entry.frame == "pandas" else ())
        packages.update(() if source.file else making.SELECT_PACKAGES)
    return packages


def _header(entry: Transport, packages: set[str]) -> str:
    """Return the lines that list the program's packages for `uv run` and pipx: https://peps.python.org/pep-0723"""
    instead = SYSTEMS[entry.system].script.BY_ARROW_WIRE if _OURS in packages else {}
    named = {instead.get(name, asked_for(name)) for name in map(package_of, packages)} - {""}
    listed = ", ".join(f'"{name}"' for name in sorted(named))
    more = "".join(f"  # {what}" for what in beyond_pypi(entry))  # a comment of TOML
    return "\n".join(["# /// script", '# requires-python = ">=3.11"', f"# dependencies = [{listed}]{more}", "# ///"])


def _brief(source: str) -> str:
    """Return source whose functions have the first line of their docstrings alone: `lab show` prints all of it."""
    lines = source.splitlines()
    for node in reversed([one for one in ast.walk(ast.parse(source)) if isinstance(one, _FUNCTIONS)]):
        first = node.body[0]
        if ast.get_docstring(node) and first.end_lineno != first.lineno:
            lines[first.lineno - 1 : first.end_lineno] = [lines[first.lineno - 1].rstrip() + '"""']
    return "\n".join(lines)


def _docstring(entry: Transport, figure: Figure, source: Source, table: str) -> str:
    """Describe the program: its task, its figures and their machine, its packages, and how to undo its work."""
    writes = entry.operation is Operation.WRITE
    what = f"{source} into the table {table}" if writes else f"the table {table} into a frame"
    runs = f"{figure.runs} run{'s' if figure.runs != 1 else ''}"
    measured = f"{significant(figure.seconds)} s of {figure.rows:,} such rows, the median of {runs}"
    by = f"{PROJECT} {version(PROJECT)} on {machine(describe_machine())}"
    made = f"This creates the table if it is missing. To undo: DROP TABLE {table}. An older table keeps the added rows."
    lines = (
        f"Move {what} as {entry.id} does: {measured}, by {by}.",
        "",
        made if writes else "It only reads: there is nothing to undo.",
    )
    shown = "\n".join(printable(line) for part in lines for line in part.split("\n")).replace("\\", "\\\\")
    text = re.sub(r'"(?=")|(?<=")"', r'\\"', shown)  # a name or query may have as many in a row as it likes
    return f'"""{text}"""'


def _require_addresses(entry: Transport) -> str:
    """Return the lines of a program that end it if an address is missing."""
    known = {address.variable: address.example for address in SYSTEMS[entry.system].addresses}
    said = {name: f"{name} is not set; give an address such as {known[name]}" for name in _variables(entry)}
    return "".join(
        f'    if not os.environ.get("{name}"):\n        raise SystemExit("{text}")\n' for name, text in said.items()
    )


def _variables(entry: Transport) -> list[str]:
    """Return the names of the variables in which a program expects addresses."""
    making = SYSTEMS[entry.system].script.VARIABLE if entry.operation is Operation.WRITE else show.variable(entry)
    return sorted({show.variable(entry), making})


def _constants(entry: Transport, data: UserData, source: Source, table: str) -> list[str]:
    found = [f"TABLE = {table!r}"]
    if entry.operation is not Operation.WRITE:
        return found
    system = SYSTEMS[entry.system]
    definition = system.tables.definition(data.specification, PLAIN)
    if definition is None:
        raise LabError(f"{entry.system} has no table of these data")
    sql = definition.replace("{table}", system.sql.identifier(table), 1).replace(
        "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1
    )
    return [*found, source.constant, f"CREATE_TABLE = {sql!r}"]


def _main(entry: Transport) -> str:
    writes, wait = entry.operation is Operation.WRITE, "await " if entry.style == "async" else ""
    keyword, connect, name = "async " if wait else "", "connect", entry.function.__name__
    given, before, create = "frame, TABLE" if writes else "TABLE", "\n    create_table()", ""
    if _OURS in entry.modules:
        connect, name = f"{entry.system}.connect", f"{entry.system}.{entry.operation}"
        given = "(TABLE,), frame" if writes else f'(TABLE,), as_="{entry.frame}"'  # a tuple allows any table name
        before, create = "", f"\n        {SYSTEMS[entry.system].script.CREATE_BY_ARROW_WIRE}"
    opened = f'{keyword}with {connect}(os.environ["{show.variable(entry)}"]) as connection:'
    call = f"{wait}{name}(connection, {given})"
    if writes:
        body = f"""\
    frame = load(){before}
    {opened}{create}
        {call}
    print(f"{{len(frame)}} rows written")"""
    else:
        body = f"""\
    {opened}
        frame = {call}
    print(frame)"""
    run = "asyncio.run(main())" if wait else "main()"
    return f'{keyword}def main():\n{_require_addresses(entry)}{body}\n\n\nif __name__ == "__main__":\n    {run}'
