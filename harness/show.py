"""A transport as a complete script: its connect function, itself, all they refer to, and a main that runs them."""

import ast
import inspect
import sys
from textwrap import dedent

from harness.model import Direction, Transport

_URIS = {"postgres": "POSTGRES_URI", "clickhouse_http": "CLICKHOUSE_URL", "clickhouse_native": "CLICKHOUSE_NATIVE_URI"}
_LOAD = {
    "polars": "import polars\n\n    frame = polars.read_parquet(parquet)",
    "pandas": (
        "import pandas\n\n    frame = pandas.read_parquet(parquet)\n"
        "    for name in frame.columns[frame.dtypes == object]:  # dates come as objects; pandas has no date dtype\n"
        '        frame[name] = frame[name].astype("datetime64[us]")'
    ),
}


def script(entry: Transport) -> str:
    """Return Python source that runs on its own, given a URI, a table and (for writes) a Parquet file.

    It needs the packages of `entry.requires` and nothing of this project.
    """
    source = inspect.getsource(sys.modules[entry.function.__module__])
    tree = ast.parse(source)
    wanted = _reachable(tree, {"connect", entry.function.__name__})
    imports = [ast.unparse(node) for node in tree.body if _is_kept_import(node, tree, wanted)]
    if entry.style == "async":
        imports.append("import asyncio")
    parts = [_docstring(entry), "\n".join(sorted({*imports, "import sys"}, key=_import_order))]
    parts += [_source(source, node) for node in tree.body if _defined_names(node) & wanted]
    if any("Unsupported" in _used_names(node) for node in tree.body if _defined_names(node) & wanted):
        parts.insert(1, _UNSUPPORTED)
    if "shared_io" in entry.needs:
        parts.append(_SHARED_FOLDER)
    parts.append(_main(entry))
    return "\n\n\n".join(parts) + "\n"


_UNSUPPORTED = dedent('''\
    class Unsupported(Exception):
        """Raised where this way cannot do what it is asked; its text is the reason."""''')
_SHARED_FOLDER = dedent('''\
    class SharedFolder:
        """A folder both sides see: `here` as this process names it, `there` as the server names it."""

        def __init__(self, here, there):
            self.here, self.there = here, there''')


def _docstring(entry: Transport) -> str:
    needed = ", ".join(sorted({module.partition(".")[0] for module in entry.requires}))
    usage = f"Usage: python script.py {' '.join(name.upper() for name in _arguments(entry))}"
    uri = f"URI as in ${_URIS[entry.endpoint]}; the table exists, with the frame's columns. Needs: {needed}."
    text = f"{entry.summary}\n\n{usage}\n{uri}\n".replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""{text}"""'


def _arguments(entry: Transport) -> list[str]:
    arguments = ["uri", "table"]
    if entry.direction is Direction.WRITE:
        arguments.append("parquet")
    if "shared_io" in entry.needs:
        arguments += ["folder_here", "folder_there"]
    return arguments


def _main(entry: Transport) -> str:
    write, is_async = entry.direction is Direction.WRITE, entry.style == "async"
    call = f"{entry.function.__name__}(connection, {'frame, ' if write else ''}table)"
    opened = "connect(uri, SharedFolder(folder_here, folder_there))" if "shared_io" in entry.needs else "connect(uri)"
    lines = [
        f"{'async ' if is_async else ''}def main({', '.join(_arguments(entry))}):",
        *([f"    {_LOAD[entry.frame]}"] if write else []),
        f"    {'async ' if is_async else ''}with {opened} as connection:",
        f"        {'' if write else 'frame = '}{'await ' if is_async else ''}{call}",
        f'    print(f"{{len(frame)}} rows {"written" if write else "read"}")' if write else "    print(frame)",
        "",
        "",
        'if __name__ == "__main__":',
        "    asyncio.run(main(*sys.argv[1:]))" if is_async else "    main(*sys.argv[1:])",
    ]
    return "\n".join(lines)


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line


def _is_kept_import(node: ast.stmt, tree: ast.Module, wanted: set[str]) -> bool:
    """Keep the imports whose names the wanted definitions use; none of this project."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)) or (getattr(node, "module", "") or "").startswith("harness"):
        return False
    bound = {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    used = {name for item in tree.body if _defined_names(item) & wanted for name in _used_names(item)}
    return bool(bound & used)


def _defined_names(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _used_names(node: ast.stmt) -> set[str]:
    """Return the names a definition refers to; what stands in its @transport(...) is not part of the script."""
    ours = [decorator for decorator in getattr(node, "decorator_list", []) if _is_transport(decorator)]
    skipped = {id(child) for decorator in ours for child in ast.walk(decorator)}
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name) and id(child) not in skipped}


def _is_transport(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "transport"


def _reachable(tree: ast.Module, start: set[str]) -> set[str]:
    """Return the module-level names that the given ones refer to, directly or through others."""
    definitions = {name: node for node in tree.body for name in _defined_names(node)}
    found: set[str] = set()
    waiting = start & definitions.keys()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= (_used_names(definitions[name]) & definitions.keys()) - found
    return found


def _source(source: str, node: ast.stmt) -> str:
    decorators = [d for d in getattr(node, "decorator_list", []) if not _is_transport(d)]
    lines = [f"@{ast.get_source_segment(source, d)}" for d in decorators]
    return "\n".join([*lines, *source.splitlines()[node.lineno - 1 : node.end_lineno]])
