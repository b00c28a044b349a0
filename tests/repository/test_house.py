"""The rules of the house, held by reading the code: imports and readers of the environment."""

import ast
import re
from functools import cache
from pathlib import Path

from harness.settings import ROOT
from harness.systems import SYSTEMS

FILES = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted((ROOT / "harness").rglob("*.py"))}
parsed = cache(ast.parse)
COMPUTED = "computed"  # a name that does not stand where it is imported


def imported(path: str, source: str) -> set[str]:
    """Return the modules that Python source imports at run time, and those (-m) that it starts processes with."""
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
    """Return what pyproject.toml says that files import at run time."""
    lines = re.findall(r"^#   (harness/\S+) -> (.+)$", (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    return {path: set(modules.split(", ")) for path, modules in lines}


def test_every_import_that_import_linter_cannot_see_is_named_beside_its_layers():
    found = {path: modules for path, source in FILES.items() if (modules := imported(path, source))}
    said = named()
    assert said.keys() == found.keys()
    for path, modules in found.items():
        assert modules - {COMPUTED} <= said[path], path
        assert (COMPUTED in modules) == bool(said[path] - modules), path  # the others are of a computed name


def reads_the_environment(source):
    """Say whether Python source looks at the environment; setting a variable is not looking at it."""
    return any(
        (isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ" and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv"))
        for node in ast.walk(parsed(source))
    )


def test_only_the_settings_read_the_environment():
    readers = {path for path, source in FILES.items() if reads_the_environment(source)}
    assert readers <= {"harness/settings.py", "harness/machine/variables.py"}


def test_no_thread_of_arrow_holds_a_file_of_python_when_the_process_ends():
    # A name may stand for a file of Python: `path`, `place` and `here` are the only ones of places.
    readers = r"\b(pd\.read_parquet|pq\.read_table|pq\.ParquetFile|csv\.read_csv|csv\.open_csv)"
    threaded = re.compile(readers + r"\((?!\s*(pa\.BufferReader\(|(path|place|here)\b))")
    of_databases = tuple(f"harness/transports/{name}/" for name in SYSTEMS)
    sources = {path: source for path, source in FILES.items() if path.startswith(of_databases)}
    assert any("pa.BufferReader(" in source for source in sources.values())
    assert [path for path, source in sources.items() if threaded.search(source)] == []
