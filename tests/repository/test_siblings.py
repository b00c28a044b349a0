"""Code that several modules of transports share is defined once, in siblings without transports."""

import ast
from collections import defaultdict

from harness import registry
from harness.settings import ROOT
from harness.systems import SYSTEMS

FOLDER = ROOT / "harness" / "transports"
MODULES = {
    "harness.transports." + ".".join(path.relative_to(FOLDER).with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted(FOLDER.rglob("*.py"))
    if path.stem != "__init__"
}
OF_TRANSPORTS = {entry.function.__module__ for entry in registry.catalogue().values()}
OF_SYSTEMS = {f"harness.transports.{name}.sql" for name in SYSTEMS}  # the lab asks each for its SQL, which may be alike


def is_table(node: ast.stmt) -> bool:
    """Whether a constant is more than a number, a short string or another name."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, (ast.Name, ast.BinOp)):
        return False
    return not isinstance(node.value, ast.Constant) or len(ast.unparse(node)) > 100


def definitions(tree: ast.Module) -> list[tuple[str, str]]:
    """Return name and source of the functions, classes and tables of a module, functions without docstrings."""
    found = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                node.body = node.body[1:]
            # A function that is one `yield` has no other content than its docstring.
            if [isinstance(one, ast.Expr) and isinstance(one.value, ast.Yield) for one in node.body] != [True]:
                found.append((node.name, ast.unparse(node)))
        elif is_table(node):
            found.append((ast.unparse(node).partition(" =")[0], ast.unparse(node)))
    return found


def test_nothing_is_twice_to_the_letter():
    places = defaultdict(list)
    for module in MODULES.keys() - OF_SYSTEMS:
        for name, text in definitions(MODULES[module]):
            places[name, text].append(module)
    assert {name: modules for (name, _), modules in places.items() if len(modules) > 1} == {}


def test_a_module_holds_transports_or_what_several_modules_share():
    imported = defaultdict(set)
    for module, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module in MODULES:
                imported[node.module].add(module)
    alone = {module for module in MODULES if module not in OF_TRANSPORTS and len(imported[module]) < 2}
    alone = {module for module in alone if not module.endswith(".client")}  # which the registry looks up
    assert alone - OF_SYSTEMS == set()
    assert imported.keys() & OF_TRANSPORTS == set()
