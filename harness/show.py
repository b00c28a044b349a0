"""A transport as a complete script: its connect function, itself, all they refer to, and a main that runs them."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from textwrap import dedent

from harness import registry
from harness.model import Operation, Transport
from harness.systems import SYSTEMS

# The parts of a transport's module and of its imported siblings that it uses, as text: definitions and imports.

_SIBLINGS = "harness.transports."


@dataclass(frozen=True)
class _Module:
    """A module of transports, or a sibling, parsed from its text."""

    name: str
    source: str
    defined: dict[str, ast.stmt]  # names that the module defines
    shared: dict[str, str]  # imported name -> the sibling that defines it
    imported: dict[str, tuple[str, str]]  # other imported name -> `from` where, `import` what


@dataclass(frozen=True)
class Definition:
    """A statement at the top of a module."""

    module: _Module
    node: ast.stmt

    @cached_property
    def names(self) -> set[str]:
        return _defined(self.node)

    @cached_property
    def used(self) -> set[str]:
        """The names it refers to, except those in @transport(...)."""
        ours = [decorator for decorator in getattr(self.node, "decorator_list", []) if _is_transport(decorator)]
        skipped = {id(child) for decorator in ours for child in ast.walk(decorator)}
        walked = ast.walk(self.node)
        return {child.id for child in walked if isinstance(child, ast.Name) and id(child) not in skipped}

    @cached_property
    def text(self) -> str:
        """The source without @transport(...)."""
        decorators = [d for d in getattr(self.node, "decorator_list", []) if not _is_transport(d)]
        lines = [f"@{ast.get_source_segment(self.module.source, d)}" for d in decorators]
        return "\n".join([*lines, *self.module.source.splitlines()[self.node.lineno - 1 : self.node.end_lineno]])


def definitions(entry: Transport) -> list[Definition]:
    """Return the definitions that a transport and its `connect` refer to, directly or indirectly, siblings first.

    Raises ValueError if two of them have the same name, because the second would silently replace the first in one
    script.
    """
    own = _read(entry.module)
    home = own if "connect" in own.defined else _read(registry.client_of(own.name))
    found: dict[tuple[str, int], Definition] = {}
    waiting = [(home, "connect"), (own, entry.function.__name__)]
    while waiting:
        module, name = waiting.pop()
        while name not in module.defined and name in module.shared:
            module = _read(module.shared[name])
        if name in module.defined and (place := (module.name, module.defined[name].lineno)) not in found:
            found[place] = _definition(module.name, name)
            waiting += [(module, used) for used in found[place].used]
    order = list(dict.fromkeys([*_siblings_first(home), *_siblings_first(own)]))
    needed = [found[place] for place in sorted(found, key=lambda place: (order.index(place[0]), place[1]))]
    _refuse_namesakes(entry, needed)
    return needed


def imports(needed: Iterable[Definition], more: Iterable[tuple[str, str]]) -> list[str]:
    """Return the imports of the definitions' names, none of this project, and of `more`: pairs of module and name."""
    wanted = {*more}
    for definition in needed:
        wanted |= {what for name, what in definition.module.imported.items() if name in definition.used}
    sources = {source for source, _ in wanted}
    whole = [f"import {what}" for source, what in sorted(wanted) if not source]
    names = {source: sorted(what for where, what in wanted if where == source) for source in sorted(sources - {""})}
    return [*whole, *(f"from {source} import {', '.join(what)}" for source, what in names.items())]


@cache
def _definition(module: str, name: str) -> Definition:
    there = _read(module)
    return Definition(there, there.defined[name])


@cache
def _read(name: str) -> _Module:
    source = inspect.getsource(sys.modules.get(name) or importlib.import_module(name))
    body = ast.parse(source).body
    shared: dict[str, str] = {}
    imported: dict[str, tuple[str, str]] = {}
    for node in body:
        if isinstance(node, ast.Import):
            imported |= {(a.asname or a.name).partition(".")[0]: ("", ast.unparse(a)) for a in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_SIBLINGS):
            shared |= {alias.name: node.module or "" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("harness"):
            imported |= {a.asname or a.name: (node.module or "", ast.unparse(a)) for a in node.names}
    return _Module(name, source, {name: node for node in body for name in _defined(node)}, shared, imported)


def _siblings_first(module: _Module) -> Iterator[str]:
    for sibling in module.shared.values():
        yield from _siblings_first(_read(sibling))
    yield module.name


def _refuse_namesakes(entry: Transport, needed: list[Definition]) -> None:
    meanings: dict[str, set[str]] = {}
    for definition in needed:
        for name in definition.names:
            meanings.setdefault(name, set()).add(f"{definition.module.name}, line {definition.node.lineno}")
        for name in definition.used & definition.module.imported.keys():
            meanings.setdefault(name, set()).add("import of " + " ".join(definition.module.imported[name]).strip())
    if twice := {name: sorted(places) for name, places in meanings.items() if len(places) > 1}:
        raise ValueError(f"{entry.id}: names that mean two things in its script: {twice}; rename all but one of each")


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _is_transport(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "transport"


# The kinds of values that a transport loses if the client is in another time zone, or always.
ZONE, TYPE = "timestamps_elsewhere", "timestamps"
_URIS = {address.name: address.variable for system in SYSTEMS.values() for address in system.addresses}
_LOAD = {
    "polars": "import polars\n\n    frame = polars.read_parquet(parquet)",
    "pandas": (
        "import pandas\n\n    frame = pandas.read_parquet(parquet)\n"
        "    for name in frame.columns[frame.dtypes == object]:  # dates come as objects; pandas has no date dtype\n"
        '        frame[name] = frame[name].astype("datetime64[us]")'
    ),
    "pyarrow": "from pyarrow.parquet import read_table\n\n    data = read_table(parquet)",
    "dicts": "from pyarrow.parquet import read_table\n\n    data = read_table(parquet).to_pylist()",
    "tuples": (
        "from pyarrow.parquet import read_table\n\n"
        "    data = [tuple(row.values()) for row in read_table(parquet).to_pylist()]"
    ),
}

_S3 = """import os

    names = ("endpoint", "region", "access_key", "secret_key")
    s3 = {name: os.environ[f"LAB_S3_{name.upper()}"] for name in names} if "LAB_S3_ENDPOINT" in os.environ else None
"""

_BUCKET = """import os
    from types import SimpleNamespace

    names = ("endpoint", "region", "access_key", "secret_key", "bucket")
    s3 = SimpleNamespace(**{name: os.environ[f"LAB_S3_{name.upper()}"] for name in names})"""

# The workers of an engine: their number, their address of the database, the scheduler's address ("": local workers).
_WORKERS = """from tempfile import mkdtemp
    from types import SimpleNamespace

    workers = SimpleNamespace(number=int(number), uri=uri, address=address, folder=mkdtemp(prefix="workers-"))"""


def script(entry: Transport) -> str:
    """Return Python source that runs on its own, given a URI, a table and (for writes) a Parquet file.

    It needs the packages of `entry.requires` and nothing of this project.
    """
    return "\n\n\n".join([_docstring(entry), body(entry), _main(entry)]) + "\n"


def body(entry: Transport, *more: tuple[str, str], called_with: bool = True) -> str:
    """Return everything that a transport and its `connect` refer to, after the imports and `more` imports.

    `called_with`: the script gets arguments, which it reads from `sys`, and prints what the phases of the call took.
    """
    needed = definitions(entry)
    used = {name for definition in needed for name in definition.used}
    imported = [*([("", "sys")] if called_with else []), *more]
    is_timed = called_with and "phase" in used
    if entry.style == "async":
        imported.append(("", "asyncio"))
    if is_timed:
        imported += [("", "time"), ("contextlib", "contextmanager")]
    in_utc = ZONE in entry.lossy and TYPE not in entry.lossy
    if in_utc:
        imported += [("", "os"), ("", "time")]
    parts = ["\n".join(imports(needed, imported))]
    if in_utc:
        parts.append(_IN_UTC)
    if is_timed:
        parts.append(_PHASE)
    if "Unsupported" in used:
        parts.append(_UNSUPPORTED)
    parts.append(_spaced(needed))
    if "shared_io" in entry.needs:
        parts.append(_SHARED_FOLDER)
    return "\n\n\n".join(parts)


def _spaced(needed: Iterable[Definition]) -> str:
    """Return definitions as text: two lines apart, but constants one below the other."""
    text, after_constant = "", False
    for one in needed:
        is_constant = isinstance(one.node, (ast.Assign, ast.AnnAssign))
        gap = "\n" if is_constant and after_constant else "\n\n\n"
        text, after_constant = f"{text}{gap}{one.text}", is_constant
    return text.lstrip("\n")


def variable(entry: Transport) -> str:
    """Return the name of the variable in which a script expects its database's address."""
    return _URIS[entry.endpoint]


_IN_UTC = dedent("""\
    # This client moves timestamps without a zone by the zone of the machine.
    os.environ["TZ"] = "UTC"
    time.tzset()""")
_UNSUPPORTED = dedent('''\
    class Unsupported(Exception):
        """Raised where this transport cannot do what it is asked; its text is the reason."""''')
_PHASE = dedent('''\
    @contextmanager
    def phase(name):
        """Print what a part of the call took."""
        started = time.perf_counter()
        try:
            yield
        finally:
            print(f"{name}: {time.perf_counter() - started:.3f} s", file=sys.stderr)''')
_SHARED_FOLDER = dedent('''\
    class SharedFolder:
        """A folder both sides see: `here` as this process names it, `there` as the server names it."""

        def __init__(self, here, there):
            self.here, self.there = here, there''')


@dataclass(frozen=True)
class _Shape:
    """The parts of a transport's script: arguments, usage, and the lines that load, call and print."""

    arguments: tuple[str, ...]
    usage: str
    load: str
    call: str
    target: str
    show: str


def _shape(entry: Transport) -> _Shape:
    if entry.operation is Operation.SCAN:
        usage = "A scratch folder and the Parquet files (TPC-H lineitem)."
        return _Shape(("folder", "*files"), usage, "", "number = {name}(connection, list(files))", "folder", "number")
    if entry.operation is Operation.TRANSFORM:
        usage = (
            "A scratch folder, the folder or s3:// prefix of CSV files, and the Parquet file to make; keys in LAB_S3_*."
        )
        call = "{name}(connection, source, destination)"
        return _Shape(("folder", "source", "destination"), usage, _S3, call, "folder, s3", "destination")
    if entry.operation is Operation.JOB:
        return _job_shape(entry)
    if entry.operation is Operation.COPY:
        load = "from pathlib import Path\n\n    data = Path(file).read_bytes()"
        usage = "Any file, whose bytes are copied."
        return _Shape(("file",), usage, load, "copied = {name}(connection, data)", "", 'f"{len(copied)} bytes copied"')
    if entry.endpoint not in _URIS:
        return _store_shape(entry)
    return _database_shape(entry)


def _job_shape(entry: Transport) -> _Shape:
    names = tuple(inspect.signature(entry.function).parameters)[1:]
    usage = "A scratch folder, then what the job is called with; keys of an S3 server in LAB_S3_*."
    call = f"answer = {{name}}(connection, {', '.join(f'{name}={name}' for name in names)})"
    return _Shape(("scratch", *names), usage, _S3, call, "scratch, s3", "answer")


def _database_shape(entry: Transport) -> _Shape:
    usage = f"URI as in ${_URIS[entry.endpoint]}; the table exists, with the frame's columns."
    if entry.operation is Operation.CALL:
        usage = f"URI as in ${_URIS[entry.endpoint]}."
        return _Shape(("uri",), usage, "", "answer = {name}(connection)", "uri", "answer")
    if entry.operation in (Operation.LOAD, Operation.UNLOAD):
        return _part_by_part_shape(entry)
    if not entry.frame:
        call = "rows = {name}(connection, table)"
        return _Shape(("uri", "table"), usage, "", call, "uri", 'f"{rows} rows thrown away"')
    if entry.frame.endswith("table"):
        usage = usage.replace("the frame's columns", "the columns of the source")
        call = "{name}(connection, source, table)"
        return _Shape(("uri", "source", "table"), usage, "", call, "uri", '"done"')
    arguments: tuple[str, ...] = ("uri", "table", "parquet") if entry.operation is Operation.WRITE else ("uri", "table")
    target = "uri"
    if "shared_io" in entry.needs:
        arguments, target = (*arguments, "folder_here", "folder_there"), "uri, SharedFolder(folder_here, folder_there)"
    load = ""
    if "s3" in entry.needs:
        load, target, usage = _BUCKET, f"{target}, s3", f"{usage} Bucket and keys of the S3 server in LAB_S3_*."
    if entry.operation is Operation.WRITE:
        call, show = "{name}(connection, frame, table)", 'f"{len(frame)} rows written"'
        load = "\n\n    ".join(filter(None, (load, _LOAD[entry.frame])))
        return _Shape(arguments, usage, load, call, target, show)
    return _Shape(arguments, usage, load, "frame = {name}(connection, table)", target, "frame")


def _part_by_part_shape(entry: Transport) -> _Shape:
    loads = entry.operation is Operation.LOAD
    file = "A Parquet file with the table's columns" if loads else "A folder for Parquet files"
    usage = f"URI as in ${_URIS[entry.endpoint]}; the table exists. {file}."
    arguments: tuple[str, ...] = ("uri", "source", "table") if loads else ("uri", "table", "destination")
    call = f"{{name}}({', '.join(('connection', *arguments[1:]))})"
    if not entry.engine:
        return _Shape(arguments, usage, "", call, "uri", '"done"')
    usage += " The number of workers, and the address of a scheduler if they are not to be started here."
    return _Shape((*arguments, "number=2", 'address=""'), usage, _WORKERS, call, "uri, workers", '"done"')


def _store_shape(entry: Transport) -> _Shape:
    if entry.operation is Operation.CREATE:
        usage = "An empty folder for the store, and a Parquet file of integers in columns col0, col1, ..."
        call = "{name}(connection, data)"
        return _Shape(("folder", "parquet"), usage, _LOAD[entry.frame], call, "folder", 'f"{len(data)} rows stored"')
    return _Shape(("folder",), "The folder of the store.", "", "rows = {name}(connection)", "folder", "len(rows)")


def _docstring(entry: Transport) -> str:
    shape = _shape(entry)
    modules = entry.modules
    if "pyarrow" in shape.load:  # this builds Python objects for a transport that does not need them
        modules.add("pyarrow")
    needed = ", ".join(sorted(modules - set(sys.stdlib_module_names))) or "nothing else"
    usage = f"Usage: python script.py {' '.join(map(_as_given, shape.arguments))}"
    text = f"{entry.summary}\n\n{usage}\n{shape.usage} Needs: {needed}.\n".replace("\\", "\\\\")
    return '"""' + text.replace('"""', '\\"""') + '"""'


def _as_given(argument: str) -> str:
    """Return an argument for a usage line; one with a default is optional."""
    name, default, _ = argument.lstrip("*").upper().partition("=")
    return f"[{name}]" if default else name


def _main(entry: Transport) -> str:
    shape, is_async = _shape(entry), entry.style == "async"
    call = shape.call.format(name=entry.function.__name__)
    if is_async:
        call = call.replace(entry.function.__name__, f"await {entry.function.__name__}")
    lines = [
        f"{'async ' if is_async else ''}def main({', '.join(shape.arguments)}):",
        *([f"    {shape.load}"] if shape.load else []),
        f"    {'async ' if is_async else ''}with connect({shape.target}) as connection:",
        f"        {call}",
        f"    print({shape.show})",
        "",
        "",
        'if __name__ == "__main__":',
        "    asyncio.run(main(*sys.argv[1:]))" if is_async else "    main(*sys.argv[1:])",
    ]
    return "\n".join(lines)
