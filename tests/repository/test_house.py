"""The rules of the code, checked by reading it: imports, names of classes, lengths, and code that is there twice."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import grimp

from harness import registry
from harness.settings import ROOT
from harness.systems import SYSTEMS
from tests.repository.prose import parsed

FILES = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted((ROOT / "harness").rglob("*.py"))}
COMPUTED = "computed"  # a name that the import does not spell out


def imported(path: str, source: str) -> set[str]:
    """Return the modules that Python source imports at run time, and those (-m) that it runs in processes."""
    found = set()
    for node in ast.walk(parsed(source)):
        match node:
            case ast.Call(func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"), args=[name, *_]):
                found.add(_pattern(path, name))
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                words = [element.value for element in elements if isinstance(element, ast.Constant)]
                after = [words[place + 1] for place, word in enumerate(words[:-1]) if word == "-m"]
                found |= {f"-m {word}" for word in after if str(word).startswith("harness")}
    return found


def _pattern(path: str, name: ast.expr) -> str:
    own = ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__")
    text = re.sub(r"{[^}]*}", "*", ast.unparse(name)[1:].strip("'\"").replace("{__name__}", own))
    return text if text.startswith("harness.") else COMPUTED


def named() -> dict[str, set[str]]:
    """Return the imports of files at run time, as pyproject.toml lists them."""
    lines = re.findall(r"^#   (harness/\S+) -> (.+)$", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    return {path: set(modules.split(", ")) for path, modules in lines}


def test_every_import_that_import_linter_cannot_see_is_named_next_to_its_layers():
    found = {path: modules for path, source in FILES.items() if (modules := imported(path, source))}
    said = named()
    assert said.keys() == found.keys()
    for path, modules in found.items():
        assert modules - {COMPUTED} <= said[path], path
        assert (COMPUTED in modules) == bool(said[path] - modules), path  # the rest have a computed name


def arrows() -> dict[str, set[str]]:
    """Return the imports of each folder or file of the package from other ones, anywhere in its code."""
    graph, found = grimp.build_graph("harness", cache_dir=None), {}
    for room in graph.find_children("harness"):
        graph.squash_module(room)
    for room in graph.find_children("harness"):
        others = graph.find_modules_directly_imported_by(room) - {"harness"}
        found[room.removeprefix("harness.")] = {other.removeprefix("harness.") for other in others}
    return found


def beyond(room: str, leads: dict[str, set[str]]) -> set[str]:
    """Return the folders and files that one of them imports from, directly or indirectly."""
    found: set[str] = set()
    asked = [room]
    while asked:
        asked += (new := leads.get(asked.pop(), set()) - found)
        found |= new
    return found


def test_the_drawing_of_the_rooms_has_the_arrows_of_the_code():
    drawing = (ROOT / "docs/dev/architecture.md").read_text("utf-8").partition("```mermaid")[2].partition("```")[0]
    boxes = dict(re.findall(r'^  (\w+)\["(.+)"\]$', drawing, re.MULTILINE))
    of = dict.fromkeys(boxes["ground"].split(", "), "ground")
    leads: dict[str, set[str]] = defaultdict(set)
    for room, others in arrows().items():
        leads[of.get(room, room)] |= {of.get(other, other) for other in others} - {of.get(room, room)}
    found = {
        room: {one for one in others if not any(one in beyond(other, leads) for other in others)}
        for room, others in leads.items()
        if others
    }
    drawn = re.findall(r"^  (\w+) --> (.+)$", drawing, re.MULTILINE)
    assert {room: set(others.split(" & ")) for room, others in drawn} == found
    assert boxes.keys() >= found.keys() | set().union(*found.values())


def reads_the_environment(source):
    """Say whether Python source reads the environment; setting a variable is not reading it."""
    return any(
        (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ" and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv"))
        for node in ast.walk(parsed(source))
    )


def test_only_the_settings_read_the_environment():
    readers = {path for path, source in FILES.items() if reads_the_environment(source)}
    assert readers <= {"harness/settings.py", "harness/machine/variables.py"}


def test_no_thread_of_arrow_holds_a_file_of_python_when_the_process_ends():
    # A name may mean a file of Python: `path`, `place` and `here` are the only names of places.
    readers = r"\b(pd\.read_parquet|pq\.read_table|pq\.ParquetFile|csv\.read_csv|csv\.open_csv)"
    threaded = re.compile(readers + r"\((?!\s*(pa\.BufferReader\(|(path|place|here)\b))")
    of_databases = tuple(f"harness/transports/{name}/" for name in SYSTEMS)
    sources = {path: source for path, source in FILES.items() if path.startswith(of_databases)}
    assert any("pa.BufferReader(" in source for source in sources.values())
    assert [path for path, source in sources.items() if threaded.search(source)] == []


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
