"""A transport as a complete program for one table: it contains the data's source and columns, and no lab code."""

from __future__ import annotations

import ast
import glob
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from textwrap import indent

import polars as pl

from harness import registry, show
from harness.check.logical_types import is_wide, items, pandas_dtype, plain, polars_dtype
from harness.datasets.specification import PLAIN
from harness.datasets.user_data.data import UserData
from harness.lab.packages import PROJECT, asked_for, beyond_pypi, package_of
from harness.machine.inventory import describe_machine
from harness.model import LabError, Operation, Transport, printable
from harness.report.figures import significant
from harness.report.markdown import machine
from harness.report.recommendation import Figure
from harness.systems import SYSTEMS

# The part of a program that makes the frame from a file or a query: the same frame that was measured.

_AS_STRINGS = """\
for name in {!r}:  # polars has no decimals of so many digits
    digits = [None if number is None else format(number, "f") for number in table[name].to_pylist()]
    table = table.set_column(table.schema.get_field_index(name), name, pyarrow.array(digits, pyarrow.large_string()))"""
_FOLDER_VALUE = """\

def folder_value(text):
    none = text == "__HIVE_DEFAULT_PARTITION__"
    return polars.lit(None if none else unquote(text), polars.String)

"""
_DECIMAL = "None if text is None else decimal.Decimal(text)"
_FROM_ARROW = "frame = polars.from_arrow(table)"
_WITH_NULLS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]


@dataclass(frozen=True)
class Source:
    """The source of a program's data: a file, or a query to the database that it writes to.

    The path of a file, or the `pattern` of several, is relative to the folder of the program, `folder`.
    """

    file: Path | None = None
    query: str = ""
    pattern: str = ""
    folder: Path = Path()

    @property
    def constant(self) -> str:
        """The line of the program that names it."""
        if self.file is None:
            return f"QUERY = {self.query!r}"
        here = "os.path.dirname(os.path.abspath(__file__))"
        return f"DATA = os.path.join({f'glob.escape({here})' if self.pattern else here}, {self._named!r})"

    @property
    def _named(self) -> str:
        folder = str(self.folder.absolute())
        if self.pattern:
            return os.path.relpath(self.pattern, glob.escape(folder))
        return os.path.relpath(self.file or "", folder)

    @property
    def table(self) -> str:
        """The name of a table that the user did not name."""
        return self.file.name.partition(".")[0] if self.file else "frame"

    def __str__(self) -> str:
        return self._named if self.file else "the rows of a query"


def load(frame: str, data: UserData, source: Source, select: str) -> str:
    """Return the source of the function `load`, which returns the frame that was measured.

    `select` asks for the rows of a query.
    """
    lines = _read(source, data) if source.file else [*select.splitlines(), _FROM_ARROW]
    if casts := [cast for name in data.logical_types if (cast := _cast(name, data, bool(source.query)))]:
        lines.append(_with_columns(casts))
    if frame == "pandas":
        lines += _as_pandas(data)
    *before, last = lines
    last = f"return {last.removeprefix('frame = ')}" if last.startswith("frame = ") else f"{last}\nreturn frame"
    body = indent("\n".join([*before, last]), "    ")
    imports = "import pandas\n    import polars" if frame == "pandas" else "import polars"
    if frame == "pandas" and any(map(is_wide, data.logical_types.values())):
        imports = f"import decimal\n\n    {imports}"
    gap = "\n" if body.lstrip().startswith(("import ", "from ")) else "\n\n"
    return f'def load():\n    """Return the data as they were measured."""\n    {imports}{gap}{body}'


def _read(source: Source, data: UserData) -> list[str]:
    """Return the lines that read the data, as they were read."""
    if not data.program.pattern:
        return [*_one_file(data, "DATA"), *_columns(data)]
    hive = data.program.hive
    links = [
        "    folders = [path.rsplit(os.sep, up)[0] for up in range(1, len(names))]",
        "    if any(map(os.path.islink, folders)):",
        "        continue  # may lead to files that are here, too",
    ]
    in_folders = [
        "named = (part.partition('=') for part in os.path.dirname(path).split(os.sep))",
        "parts = {unquote(name): value for name, _, value in named}",
        f"frame = frame.with_columns([folder_value(parts[name]).alias(name) for name in {list(hive)!r}])",
    ]
    lines = [*_one_file(data, "path"), *(in_folders if hive else []), "frames.append(frame)"]
    return [
        *(["from urllib.parse import unquote", *_FOLDER_VALUE.splitlines()] if hive else []),
        "frames = []",
        "for path in sorted(glob.glob(DATA, recursive=True)):",
        f"    names = path.split(os.sep)[DATA.count(os.sep) - {data.program.below - 1} :]",
        "    if any(name.startswith('_') and '=' not in name for name in names):",
        "        continue  # hidden, as Spark's",
        *(links if "**" in Path(data.program.pattern).parts else []),
        *(f"    {line}" for line in lines),
        "frame = polars.concat(frames)",
        *_columns(data),
    ]


def _columns(data: UserData) -> list[str]:
    return [_with_columns(data.program.columns)] if data.program.columns else []


def _with_columns(made: Iterable[str]) -> str:
    lines = _on_few_lines(made)
    return f"frame = frame.with_columns(\n    {lines},\n)" if "\n" in lines else f"frame = frame.with_columns({lines})"


def _one_file(data: UserData, path: str) -> list[str]:
    """Return the lines that read a file: through Arrow if polars does not know a zone or such wide decimals."""
    program = data.program
    lines = [line.format(path) for line in program.lines]
    if lines[-1].startswith("frame = "):
        return lines
    strings = [name for name in program.wide if is_wide(data.logical_types[name])]
    narrow = [name for name in program.wide if name not in strings]
    others = {
        'field.with_type(pyarrow.timestamp(field.type.unit, "UTC"))': list(program.offsets),
        "field.with_type(pyarrow.decimal128(38, field.type.scale))": narrow,
    }
    if not any(others.values()):
        return [
            *lines,
            *(["import pyarrow", *_AS_STRINGS.format(strings).splitlines()] if strings else []),
            _FROM_ARROW,
        ]
    return [
        "import pyarrow",
        *lines,
        *(_AS_STRINGS.format(strings).splitlines() if strings else []),
        "fields = [",
        *(f"    {made} if field.name in {names!r} else" for made, names in others.items() if names),
        "    field",
        "    for field in table.schema",
        "]",
        "frame = polars.from_arrow(table.cast(pyarrow.schema(fields)))",
    ]


def _cast(name: str, data: UserData, asked: bool) -> str:
    """Return the expression that makes a column canonical; empty if it already is.

    The driver may return bytes that were `asked` for as strings: a ClickHouse String can have any content.
    """
    logical, given = data.logical_types[name], data.given[name]
    wanted = polars_dtype(logical)
    column = f"frame[{name!r}]"
    if isinstance(given, pl.BaseExtension):
        if "uuid" in str(given):  # Arrow's type for them: polars takes its bytes
            return _as_strings(column, logical)
        if is_wide(logical) and not asked:
            return ""  # they are strings already
        return f"{column}.ext.storage().cast({_source(wanted)})"
    if given == wanted and not (asked and "binary" in logical):
        return ""
    if isinstance(given, pl.Enum):  # polars casts it to a category by its number
        column += ".cast(polars.String)"
    return f"{column}.cast({_source(wanted)})"


def _as_strings(uuids: str, logical: str) -> str:
    """Return the expression that turns bytes into UUIDs as strings, also in lists."""
    if plain(logical) == "array":
        return f"{uuids}.list.eval({_as_strings('polars.element()', items(logical))})"
    return uuids + r'.bin.encode("hex").str.replace(r"^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")'


def _source(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.List):
        return f"polars.List({_source(dtype.inner)})"  # type: ignore[arg-type]
    if isinstance(dtype, pl.Map):
        return f"polars.Map({_source(dtype.key)}, {_source(dtype.value)})"  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields = ", ".join(f"{field.name!r}: {_source(field.dtype)}" for field in dtype.fields)  # type: ignore[arg-type]
        return f"polars.Struct({{{fields}}})"
    return f"polars.{dtype!r}"


def _as_pandas(data: UserData) -> list[str]:
    dtypes = {name: pandas_dtype(logical, data.has_nulls(name)) for name, logical in data.logical_types.items()}
    unlike = [name for name, dtype in dtypes.items() if not _as_arrow_has_it(data.logical_types[name], dtype)]
    listed = _on_few_lines([f"{name!r}: {dtypes[name]!r}" for name in unlike])
    objects = [name for name, dtype in dtypes.items() if dtype == "object"]
    dtypes_with_nulls = {name.lower(): name for name in dtypes.values() if name in _WITH_NULLS}
    if "boolean" in dtypes.values():
        dtypes_with_nulls["bool"] = "Boolean"
    nullable = ", ".join(f'"{plain}": pandas.{name}Dtype()' for plain, name in dtypes_with_nulls.items())
    wide = [name for name in objects if is_wide(data.logical_types[name])]
    typed = f".astype({{\n    {listed},\n}})" if listed else ""
    lines = [
        f"objects = {{name: frame[name].to_list() for name in {objects!r}}}" if objects else "",
        *(f"objects[{name!r}] = [{_DECIMAL} for text in objects[{name!r}]]" for name in wide),
        "# A copy: the memory of Arrow is read-only, and a client may write to it."
        + (" Numbers with nulls would become floats." if nullable else ""),
        "frame = frame.to_arrow().to_pandas({}).copy()".format(
            f"types_mapper=lambda of: {{{nullable}}}.get(str(of))" if nullable else ""
        ),
        f"frame = frame{typed}{'.assign(**objects)' if objects else ''}" if typed or objects else "",
    ]
    return [line for line in lines if line]


def _as_arrow_has_it(logical: str, dtype: str) -> bool:
    """Whether pandas gets a column from Arrow with its dtype, or as objects."""
    return dtype in ("object", "float32", "float64", "boolean", *_WITH_NULLS) or logical.startswith("timestamp")


def _on_few_lines(items: Iterable[str]) -> str:
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) < 100:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return ",\n    ".join(lines)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TIMED = re.compile(r'with phase\("\w+"\)(?:(, )|:)')
_OURS = "arrow_wire"  # a program calls it directly, and makes the table over its connection
_SHARED = {"shared_io": "a folder shared with the server", "s3": "a bucket that the server reads, too"}


def needed(entry: Transport) -> str:
    """Name the needs of a transport's program other than addresses; empty if it runs as it is."""
    return " and ".join(_SHARED[need] for need in entry.needs if need in _SHARED)


def write(path: Path, figure: Figure, data: UserData, source: Source, table: str) -> None:
    """Write a transport as a program; see `program`. Raises LabError."""
    try:
        placed = replace(source, folder=path.absolute().parent)
        path.write_text(program(figure, data, placed, table), encoding="utf-8")
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
        parts += [making.CREATE_TABLE] if making.CREATE_TABLE and _OURS not in packages else []
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
    """Return source with the first line of each docstring alone, and without phases: `lab show` prints all of it."""
    kept = dict(enumerate(source.splitlines(), start=1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _FUNCTIONS) and ast.get_docstring(node):
            first, *more = _lines(node.body[0])
            kept[first] = f'{kept[first].rstrip()}"""' if more else kept[first]
            for number in more:
                del kept[number]
        elif isinstance(node, ast.With) and (timed := _TIMED.search(kept[node.lineno])):
            first, *inside = _lines(node)
            if timed[1]:  # it opens something, too
                kept[first] = kept[first].replace(timed[0], "with ")
                continue
            del kept[first]
            for number in kept.keys() & inside:
                kept[number] = kept[number].removeprefix("    ")
    return "\n".join(kept.values())


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


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
    making, given, create = SYSTEMS[entry.system].script, "frame, TABLE" if writes else "TABLE", ""
    before = f"\n{indent(making.CREATE, '    ')}"
    if _OURS in entry.modules:
        connect, name = f"{entry.system}.connect", f"{entry.system}.{entry.operation}"
        given = "(TABLE,), frame" if writes else f'(TABLE,), as_="{entry.frame}"'  # a tuple allows any table name
        before, create = "", f"\n        {making.CREATE_BY_ARROW_WIRE}"
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
