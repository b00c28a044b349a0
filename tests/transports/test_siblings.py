"""What several modules of transports share stands once, in siblings that hold no transport."""

import ast
from collections import defaultdict

import pytest

from harness import excerpt, registry
from harness.settings import ROOT
from harness.systems import SYSTEMS
from tests.every import every

FOLDER = ROOT / "harness" / "transports"
MODULES = {
    "harness.transports." + ".".join(path.relative_to(FOLDER).with_suffix("").parts): ast.parse(path.read_text())
    for path in sorted(FOLDER.rglob("*.py"))
    if path.stem != "__init__"
}
OF_TRANSPORTS = {entry.function.__module__ for entry in registry.catalogue().values()}
OF_SYSTEMS = {f"harness.transports.{name}.sql" for name in SYSTEMS}  # the lab asks each for its SQL, which may be alike


def is_table(node: ast.stmt) -> bool:
    """Whether a constant is more than a number, a short text or another name for something."""
    if not isinstance(node, ast.Assign) or isinstance(node.value, (ast.Name, ast.BinOp)):
        return False
    return not isinstance(node.value, ast.Constant) or len(ast.unparse(node)) > 100


def only_yields(body: list[ast.stmt]) -> bool:
    """Whether a function is one `yield`: then what it says of that is all there is of it."""
    return [isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) for node in body] == [True]


def definitions(tree: ast.Module) -> list[tuple[str, str]]:
    """Return name and text of the functions, classes and tables of a module, functions without what they say."""
    found = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                node.body = node.body[1:]
            if not only_yields(node.body):
                found.append((node.name, ast.unparse(node)))
        elif is_table(node):
            found.append((ast.unparse(node).partition(" =")[0], ast.unparse(node)))
    return found


def test_nothing_stands_twice_to_the_letter():
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
    assert alone - OF_SYSTEMS == set()
    assert imported.keys() & OF_TRANSPORTS == set()


@every(registry.catalogue().values())
def test_no_two_things_that_a_script_needs_have_one_name(entry):
    assert entry.function.__name__ in {name for one in excerpt.definitions(entry) for name in one.names}


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Make modules of a client by name and text, and return its transports by the names of their functions."""
    import harness.transports

    monkeypatch.setattr(harness.transports, "__path__", [*harness.transports.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_CATALOGUE", {})

    def make(name: str, **modules: str):
        folder = tmp_path / f"made_{name}" / "client_of_it"
        folder.mkdir(parents=True)
        for package in (folder.parent, folder):
            (package / "__init__.py").touch()
        for module, text in modules.items():
            (folder / f"{module}.py").write_text(text.replace("HERE", f"harness.transports.made_{name}.client_of_it"))
        return {entry.function.__name__: entry for entry in registry.catalogue().values()}

    return make


CLIENT = """
ENDPOINT = "clickhouse_http"
SIZE = 1

def connect(uri):
    return quoted(uri)

def quoted(name):
    return name * SIZE
"""
TOPIC = """
from harness.registry import transport
from HERE.client import quoted

{more}

@transport("read", frame="polars", path="p", payload="q")
def read_polars_rows(connection, table):
    \"\"\"Read.\"\"\"
    return quoted(table), {used}
"""


def test_a_module_without_a_connect_has_that_of_its_client(made_up):
    entry = made_up("shared", client=CLIENT, rows=TOPIC.format(more="", used=""))["read_polars_rows"]
    assert entry.id == "made_shared.client_of_it.read_polars_rows"
    assert (entry.client, entry.endpoint) == ("client_of_it", "clickhouse_http")
    assert registry.connect_of(entry)("x") == "x"
    names = [name for one in excerpt.definitions(entry) for name in sorted(one.names)]
    assert names == ["SIZE", "connect", "quoted", "read_polars_rows"]


def test_a_module_with_a_connect_of_its_own_keeps_it(made_up):
    own = "ENDPOINT = 'here'\nconnect = quoted"
    entry = made_up("own", client=CLIENT, rows=TOPIC.format(more=own, used=""))["read_polars_rows"]
    assert entry.endpoint == "here"
    assert registry.connect_of(entry).__name__ == "quoted"


@pytest.mark.parametrize("more", ["SIZE = 2", "def SIZE():\n    pass", "import os as SIZE"])
def test_a_name_with_two_meanings_in_one_script_is_refused(made_up, more):
    entry = made_up(f"twice_{len(more)}", client=CLIENT, rows=TOPIC.format(more=more, used="SIZE"))["read_polars_rows"]
    with pytest.raises(ValueError, match=r"expected one meaning a name .* found .*SIZE"):
        excerpt.definitions(entry)
