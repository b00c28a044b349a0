"""Every transport as a script: it compiles without the lab, defines what it uses and is the same every time."""

import ast
import importlib.util
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from harness import registry
from harness.check import sums, unloaded
from harness.datasets import benchmark_input, lineitem, raw_csv, store
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.lineitem import Layout
from harness.datasets.user_data import data
from harness.fidelity import tables
from harness.lab.embedded import EmbeddedLab
from harness.lab.packages import not_installed
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import Operation, Origin, Transport
from harness.run.rigs import stores
from harness.show import TYPE, ZONE, script
from harness.systems import SYSTEMS
from tests.commands import succeeded
from tests.every import every
from tests.scripts import Scripts

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
    strings = {
        subprocess.run(
            (sys.executable, "-c", code), env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in seeds
    }
    assert strings == {" ".join(text_of(entry.id) for entry in CATALOGUE[::step]) + "\n"}


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


IN_DATABASES = registry.select("postgres.*,clickhouse.*")
WITHOUT = {"pg_parquet", "s3"}  # extensions that the servers of these tests do not have
RUNNABLE = [
    entry
    for entry in IN_DATABASES
    if entry.origin not in (Origin.LIMIT, Origin.CONTROL)
    and not WITHOUT & {*entry.needs}
    and entry.settings.get("async_insert") != "1"  # which the embedded engine cannot do, and says so
]
# The first write and the first read of each module beyond the article, because a script is made from its module.
FIRST = {(entry.function.__module__, entry.operation): entry for entry in reversed(RUNNABLE) if not entry.published}
PARTS = (Operation.LOAD, Operation.UNLOAD)
DATABASES = [
    entry for entry in RUNNABLE if entry.operation not in PARTS and (entry.published or entry in FIRST.values())
]
# Transports of one process, in this environment; those of engines have separate tests (tests/transports).
STREAMS = [entry for entry in RUNNABLE if entry.operation in PARTS and not entry.engine and entry.client != "daft"]
SCANS = registry.select("parquet.*")
TABLE = "the table"
JOBS = {
    "tuning.duckdb.group_by": (TABLE, "2"),
    "tuning.duckdb.jaro_winkler": (TABLE, "2"),
    "tuning.duckdb.side_by_side": (TABLE, "2", "2"),
    "tuning.duckdb.in_a_row": (TABLE, "2", "2"),
    "tuning.duckdb.create_table": (TABLE, "made.duckdb"),
    "tuning.duckdb.create_table_with_wal": (TABLE, "made.duckdb"),
    "tuning.posix.sequential_write": ("written", "100"),
    "tuning.numexpr.triad": ("1000", "1"),
}  # the rest need an S3 server, or counters
ROWS = 500
STORED_ROWS = 5_000  # about 5 of them pass the filter


def first_of_each(entries: list[Transport]) -> list[object]:
    """Mark as long all but the first of each system and operation; those are dealt out in three parts."""
    first = {(entry.system, entry.operation): entry for entry in reversed(entries)}
    others = [entry for entry in entries if entry not in first.values()]
    return [
        *(pytest.param(entry, id=entry.id) for entry in first.values()),
        *(pytest.param(entry, id=f"{entry.id}@{n % 3}", marks=pytest.mark.long) for n, entry in enumerate(others)),
    ]


Output = Callable[..., str]


@pytest.fixture
def output(scripts: Scripts, tmp_path: Path) -> Output:
    """Run a transport's script as a user who has only the script, and return its output."""

    def of(entry: Transport, *arguments: object) -> str:
        path = tmp_path / f"{entry.id}.py"
        path.write_text(script(entry))
        done = scripts.run(path, *arguments, modules=entry.requires)
        if re.match(r"(\S+\.)?Unsupported(Type)?: ", last := (done.err.splitlines() or [""])[-1]):
            pytest.skip(last)
        assert done.status == 0, done.err
        return done.out

    return of


def last_number(printed: str) -> int:
    """Return the number in the last line; the lines before it are a client's log."""
    return int(printed.splitlines()[-1])


@contextmanager
def tables_for(entry: Transport, lab: EmbeddedLab, folder: Path) -> Iterator[tuple[Tables, str, str]]:
    """Yield tables of the lab's data, the address that a script is given, and the file of the data."""
    dataset, warmup = (store.ensure(folder, "analytics_metrics", rows, 1) for rows in (ROWS, 1_000))
    made = Tables(References(lab.endpoints), store.specification("analytics_metrics"), dataset, warmup)
    made.references.greet(entry.system)  # which makes the namespace, if it is not there
    yield made, SYSTEMS[entry.system].client.transport_uri(entry.endpoint, lab.endpoints[entry.endpoint]), dataset.path
    made.references.close(made.drop)


@pytest.mark.long
@pytest.mark.parametrize(
    "entry",
    [
        *first_of_each(DATABASES),
        *first_of_each(STREAMS),
        *(pytest.param(one, id=one.id) for one in IN_DATABASES if one.origin is Origin.LIMIT),
    ],
)
def test_the_script_of_a_database_moves_the_table(
    entry: Transport, embedded_lab: EmbeddedLab, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    with tables_for(entry, embedded_lab, dataset_folder) as (made, uri, path):
        bound = entry.origin is Origin.LIMIT
        if entry.operation is Operation.CALL:
            assert last_number(output(entry, uri)) == 1
        elif entry.operation is Operation.READ:
            found = output(entry, uri, made.for_read(entry.system)[0])
            assert (f"{ROWS} rows thrown away" if bound else str(ROWS)) in found
        elif entry.operation is Operation.UNLOAD:
            (folder := tmp_path / "unloaded").mkdir()
            assert "done" in output(entry, uri, made.for_read(entry.system)[0], folder)
            found, _ = unloaded.summed(folder, made.logical_types)
            assert sums.differences(made.expected_sums, found) == []
        else:
            source = made.for_copying(entry.system, in_key_order=entry.frame == "sorted table")[0] if bound else path
            table, _ = made.for_write(entry.system)
            done = "done" if bound or entry.operation is Operation.LOAD else f"{ROWS} rows written"
            given = (source, table) if done == "done" else (table, source)
            assert done in output(entry, uri, *given)
            assert made.differences_in_table(entry.system, table) == []


MOVING = [entry for entry in RUNNABLE if ZONE in entry.lossy and TYPE not in entry.lossy]


@pytest.mark.long
@pytest.mark.parametrize("entry", MOVING, ids=lambda entry: entry.id)
def test_the_script_of_a_client_that_moves_timestamps_moves_none_in_another_zone(
    entry: Transport, embedded_lab: EmbeddedLab, tmp_path: Path
) -> None:
    """In a separate process: clients remember the first zone that they find."""
    user_data = data.from_frame(tables.one(KINDS[ZONE], entry.system).rows)
    dataset = user_data.dataset(tmp_path, user_data.rows, bytes(32))
    of_lab = Tables(References(embedded_lab.endpoints), user_data.specification, dataset, dataset)
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, embedded_lab.endpoints[entry.endpoint])
    path, (table, _) = tmp_path / "moving.py", of_lab.for_write(entry.system)
    path.write_text(script(entry))
    variables = {"PATH": os.environ["PATH"], "TZ": KINDS[ZONE].zone}
    command = (sys.executable, str(path), uri, table, dataset.path)
    succeeded(subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, cwd=tmp_path))
    assert of_lab.differences_in_table(entry.system, table) == []
    of_lab.references.close(of_lab.drop)


@pytest.mark.long
@pytest.mark.parametrize("entry", first_of_each(SCANS))
def test_the_script_of_a_scan_counts_the_rows_of_all_files(
    entry: Transport, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    layouts = [Layout(0.02, 2, first, 1) for first in range(2)]
    files = lineitem.ensure_all(dataset_folder / "lineitem", layouts, print).values()
    printed = output(entry, tmp_path, *(file.path for file in files))
    assert last_number(printed) == sum(file.matches for file in files)


@pytest.mark.long
@pytest.mark.parametrize("entry", registry.select("elt.*"), ids=lambda entry: entry.id)
def test_the_script_of_a_transform_makes_one_file_of_all_rows(entry: Transport, tmp_path: Path, output: Output) -> None:
    tree, result = raw_csv.ensure(tmp_path, ROWS, 1, print), tmp_path / "result.parquet"
    (tmp_path / "scratch").mkdir()
    assert str(result) in output(entry, tmp_path / "scratch", tree.raw, result)
    assert len(pl.read_parquet(result)) == ROWS


@pytest.mark.long
@pytest.mark.parametrize(("name", "arguments"), JOBS.items(), ids=JOBS)
def test_the_script_of_a_job_prints_its_answer(
    name: str, arguments: tuple[str, ...], tmp_path: Path, output: Output
) -> None:
    entry = registry.one(name)
    if reason := not_installed(entry.requires):
        pytest.skip(reason)
    table = benchmark_input.ensure(tmp_path, ROWS, 2, 1, print)
    given = [table.pattern if argument == TABLE else argument for argument in arguments]
    printed = output(entry, tmp_path, *given)
    known = {"group_by": str(table.answers.top), "side_by_side": str([table.answers.top] * 2), "triad": "[3.5]"}
    known |= {"jaro_winkler": f"{table.answers.similarity_sum:.6f}"[:-3], "sequential_write": "100"}
    assert known.get(entry.function.__name__, str(ROWS if "create" in name else table.answers.top)) in printed


@pytest.mark.long
@pytest.mark.parametrize("create", registry.select("stores_*.create"), ids=lambda entry: entry.id)
def test_the_scripts_of_a_store_create_read_and_query_it(
    create: Transport, dataset_folder: Path, tmp_path: Path, output: Output
) -> None:
    dataset, folder = store.ensure(dataset_folder, "integers", STORED_ROWS, 1), tmp_path / "store"
    folder.mkdir()
    expected = pl.read_parquet(dataset.path)
    assert f"{STORED_ROWS} rows stored" in output(create, folder, dataset.path)
    stored = pl.DataFrame(stores.fetch(create.client, folder, expected.columns))
    assert stored.sort(expected.columns).equals(expected.sort(expected.columns))
    read, query = (registry.one(create.id.replace("create", name)) for name in ("read", "query"))
    assert last_number(output(read, folder)) == STORED_ROWS
    wanted = expected.filter(pl.col("col1") > 100, pl.col("col97") < 1_000)
    assert last_number(output(query, folder)) == len(wanted) > 0
