"""A kind is a kind of values, in names and in prose; a column has a logical type, an SQL type and an Arrow type."""

import ast
import re

import pytest

from harness.settings import ROOT
from tests.every import every
from tests.repository.prose import parsed, prose

FILES = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for folder in ("harness", "arrow-wire/src/arrow_wire", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
TYPES = "harness.check.logical_types"
KNOWING = ("harness.datasets.hostile", "harness.fidelity")  # packages about kinds of values
_KIND = re.compile(r"(^|_)kinds?(_|$)", re.I)
_OF_VALUES = re.compile(r"\bkinds? of (hostile )?values?\b", re.I)
_OF_ALL_ELSE = re.compile(r"[^.;:]*\bkinds?\b(?! of (?:hostile )?values?\b)[^.;:]*", re.I)


def defined(tree: ast.AST) -> set[str]:
    """Return the names with "kind" that Python source defines: not those that it only reads."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
    return {name for name in found if _KIND.search(name)}


def fields(tree: ast.AST) -> dict[str, bool]:
    """Return the fields with "kind" of classes, and whether their class says that they are kinds of values."""
    return {
        f"{node.name}.{field.target.id}": bool(_OF_VALUES.search(ast.get_docstring(node) or ""))
        or "Kind" in ast.unparse(field.annotation)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _KIND.search(field.target.id)
    }


def of_types(tree: ast.AST) -> list[str]:
    """Return where a kind is a logical type: a mapping of columns, or an argument to a function of these types."""
    functions, found = set(), []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=names) if module == TYPES:
                functions |= {alias.name for alias in names}
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if _KIND.search(name):
                found += (
                    [ast.unparse(node)] if re.search(r"(dict|Mapping)\[str, str\]", ast.unparse(annotation)) else []
                )
            case ast.Call(func=ast.Name(id=name), args=[*arguments]) if name in functions:
                given = (argument.id for argument in arguments if isinstance(argument, ast.Name))
                found += [f"{name}({one})" for one in given if _KIND.search(one)]
    return found


def wrong(path: str, source: str) -> list[str]:
    """Return the names, fields and words of a file that say "kind" of something else."""
    tree, of = parsed(source), fields(parsed(source))
    inside = path.startswith(tuple(room.replace(".", "/") for room in KNOWING))
    modules = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    knows = inside or any(of.values()) or any(module.startswith(KNOWING) for module in modules)
    found = [field for field, of_values in of.items() if not of_values] + of_types(tree)
    if knows or re.search(r"\blossy\b", source):
        return found
    return found + sorted(defined(tree)) + [" ".join(said.split()) for said in _OF_ALL_ELSE.findall(prose(source))]


@every(FILES, str)
def test_a_kind_is_a_kind_of_values(path):
    assert wrong(path, FILES[path]) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def plain(kind: str): return kind", ["kind"]),
        ("for name, item_kind in described: pass", ["item_kind"]),
        (
            '"""Of a kind of values, and every kind of lab. More."""',
            ["Of a kind of values, and every kind of lab"],
        ),
        ("class Job:\n    '''A dataset.'''\n    kinds: dict[str, str]", ["Job.kinds", "kinds"]),
        ("class Lost:\n    '''Of the kind of values.'''\n    kind: str", []),
        ("from harness.datasets.hostile.kind import Kind\ndef held(kind): pass", []),
        ("lossy = {}\ndef load(kinds: dict[str, str]): pass", ["kinds: dict[str, str]"]),
        (f"from {TYPES} import plain\nlossy = plain(kind)", ["plain(kind)"]),
        ("column.dtype.kind == 'f' or numpy.argsort(groups, kind='stable')", []),
    ],
)
def test_a_kind_of_anything_else_is_found(source, found):
    assert wrong("a.py", source) == found
