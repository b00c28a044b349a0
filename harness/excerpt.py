"""The parts of a transport's module and of its imported siblings that it uses, as text: definitions and imports."""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from harness import registry
from harness.model import Transport

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
