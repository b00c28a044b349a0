"""Every transport as a script: it compiles without the lab, defines what it uses and is the same every time."""

import ast
import importlib.util
import inspect
import subprocess
import sys
from functools import cache

import pytest

from harness import registry
from harness.model import Operation
from harness.show import script
from harness.systems import SYSTEMS
from tests.every import every

pytestmark = pytest.mark.long

CATALOGUE = list(registry.catalogue().values())
# Operation, and whether it is one of a database -> the arguments of the script.
ARGUMENTS = {
    (Operation.WRITE, True): ["uri", "table", "parquet"],
    (Operation.READ, True): ["uri", "table"],
    (Operation.SCAN, False): ["folder", "files"],
    (Operation.TRANSFORM, False): ["folder", "source", "destination"],
    (Operation.CREATE, False): ["folder", "parquet"],
    (Operation.READ, False): ["folder"],
    (Operation.QUERY, False): ["folder"],
    (Operation.CALL, True): ["uri"],
    (Operation.COPY, False): ["file"],
}
MADE_UP = '''"""A client."""

import io as buffers, os.path as paths
from contextlib import contextmanager
from functools import cache

from harness.registry import Unsupported, transport

ENDPOINT = "postgres"
FIRST, SECOND = 1, 2
LIMIT: int = FIRST
NOTHING = "not used"


@cache
def _twice(number):
    return number * SECOND


@contextmanager
def connect(uri):
    yield uri


@transport("p", "q")
def write_polars_made_up(connection, frame, table):
    r"""Send \\N and "quotes" to C:\\users.

    More.
    """
    paths.join(connection, str(_twice(LIMIT)), buffers.__name__)


@transport("p", "q")
def write_polars_refused(connection, frame, table):
    """Refuse."""
    raise Unsupported("no")
'''


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Transports of a module with everything that is awkward to cut out of its file, by function name."""
    monkeypatch.setattr(registry, "_CATALOGUE", {})
    path = tmp_path / "made_up.py"
    path.write_text(MADE_UP)
    name = "harness.transports.postgres.made_up"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return {entry.function.__name__: entry for entry in registry.registered().values()}


@cache
def text_of(name):
    return script(registry.one(name))


@cache
def tree_of(name):
    return ast.parse(text_of(name))


def faults(folder):
    """Undefined, unused and redefined names of all scripts in a folder, as ruff (pyflakes) sees them."""
    command = (sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F", "--quiet", folder)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def docstring(tree):
    return ast.get_docstring(tree) or ""


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def packages(tree):
    return {name.partition(".")[0] for name in imported(tree)} - set(sys.stdlib_module_names)


def main_of(tree):
    (main,) = [node for node in tree.body if getattr(node, "name", "") == "main"]
    return main


def test_what_a_transport_uses_of_its_sibling_is_in_the_script_and_nothing_else_of_it():
    text = script(registry.one("clickhouse.urllib.write_polars_parquet"))
    defined = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert defined.count("identifier") == defined.count("identifiers") == 1  # identifiers refers to identifier
    assert "literal" not in defined
    assert "for_text" not in defined


@every(CATALOGUE)
def test_the_script_compiles_and_imports_nothing_of_the_lab(entry):
    text, tree = text_of(entry.id), tree_of(entry.id)
    compile(text, entry.id, "exec")
    assert not [name for name in imported(tree) if name.partition(".")[0] == "harness"]
    assert "@transport" not in text
    assert docstring(tree).partition("\n")[0] == entry.summary


@every(CATALOGUE)
def test_the_script_imports_at_its_top_only_what_python_brings(entry):
    top = [node for node in tree_of(entry.id).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {name.partition(".")[0] for node in top for name in imported(ast.Module([node], []))}
    assert names <= set(sys.stdlib_module_names)


@every(CATALOGUE)
def test_every_package_the_way_itself_imports_is_in_requires(entry):
    tree = tree_of(entry.id)
    main = main_of(tree)  # which also loads the data
    assert packages(ast.Module([node for node in tree.body if node is not main], [])) <= {
        name.partition(".")[0] for name in entry.requires
    }


@every(CATALOGUE)
def test_the_script_says_which_packages_it_needs(entry):
    tree = tree_of(entry.id)
    needed = {name.partition(".")[0] for name in entry.requires} - set(sys.stdlib_module_names)
    (named,) = [line for line in docstring(tree).splitlines() if "Needs: " in line]
    said = named.partition("Needs: ")[2].rstrip(".")
    assert said == (", ".join(sorted(packages(tree) | needed)) or "nothing else")


@every(CATALOGUE)
def test_the_usage_of_the_script_names_the_arguments_of_its_main(entry):
    tree = tree_of(entry.id)
    main = main_of(tree)
    arguments = [argument.arg for argument in (*main.args.args, main.args.vararg) if argument]
    left_out = len(main.args.defaults)  # an argument with a default is optional
    named = [f"[{name}]" if left_out and name in arguments[-left_out:] else name for name in arguments]
    assert f"Usage: python script.py {' '.join(named).upper()}\n" in docstring(tree)
    folder = ["folder_here", "folder_there"] if "shared_io" in entry.needs else []
    if entry.operation is Operation.JOB:
        expected = ["scratch", *list(inspect.signature(entry.function).parameters)[1:]]
    elif entry.frame.endswith("table"):
        expected = ["uri", "source", "table"]
    elif entry.operation in (Operation.LOAD, Operation.UNLOAD):
        expected = ["uri", *list(inspect.signature(entry.function).parameters)[1:]]
        expected += ["number", "address"] if entry.engine else []
    else:
        expected = ARGUMENTS[entry.operation, entry.system in SYSTEMS] + folder
    assert arguments == expected
    assert isinstance(main, ast.AsyncFunctionDef) == (entry.style == "async")


@pytest.mark.process
def test_every_script_defines_each_name_it_uses_and_uses_each_it_defines(tmp_path):
    for entry in CATALOGUE:
        (tmp_path / f"{entry.id}.py").write_text(text_of(entry.id))
    assert faults(tmp_path) == ""


@pytest.mark.process
def test_the_check_for_faults_finds_a_name_that_is_not_defined(tmp_path):
    (tmp_path / "wrong.py").write_text("print(nothing)\n")
    assert "F821" in faults(tmp_path)


@pytest.mark.process
@pytest.mark.parametrize(
    ("step", "seeds"), [(10, ("1", "2")), pytest.param(1, ("1", "2", "3"), marks=pytest.mark.long)]
)
def test_scripts_are_the_same_in_every_process(step, seeds):
    code = f"from harness import registry, show; print(*map(show.script, registry.select()[::{step}]))"
    texts = {
        subprocess.run(
            (sys.executable, "-c", code), env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in seeds
    }
    assert texts == {" ".join(text_of(entry.id) for entry in CATALOGUE[::step]) + "\n"}


def test_a_summary_with_backslashes_and_quotes_does_not_break_the_script(made_up):
    tree = ast.parse(script(made_up["write_polars_made_up"]))
    assert docstring(tree).startswith('Send \\N and "quotes" to C:\\users.')


@pytest.mark.process
def test_all_that_a_function_refers_to_comes_along_and_nothing_else_also_where_it_raises_unsupported(made_up, tmp_path):
    text = script(made_up["write_polars_made_up"])
    assert "NOTHING" not in text
    assert "ENDPOINT" not in text
    assert "@cache\ndef _twice" in text
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "made_up.py").write_text(text)
    (tmp_path / "scripts" / "refused.py").write_text(script(made_up["write_polars_refused"]))
    assert faults(tmp_path / "scripts") == ""


@every([entry for entry in registry.catalogue().values() if entry.id.endswith("_tuned") and entry.frame])
def test_what_is_over_arrow_wire_is_shown_on_less_than_40_lines(entry):
    assert len(script(entry).splitlines()) < 40
