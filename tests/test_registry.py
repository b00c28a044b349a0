"""The catalogue: ids, declarations and published rows agree with one another and with the article's table."""

import csv
import importlib
import inspect
import subprocess
import sys

import pytest

from harness import registry
from harness.canonical import PANDAS_DTYPES, POLARS_DTYPES
from harness.model import CONTROL, LabError, Operation, Origin
from harness.registry import connect_of, one, select, transport
from harness.settings import ROOT

CATALOGUE = registry.catalogue()
ENTRIES = tuple(CATALOGUE.values())
ARTICLE = list(csv.DictReader((ROOT / "suites" / "published" / "matrix.csv").open(encoding="utf-8")))
ENDPOINTS = {"postgres": {"postgres"}, "clickhouse": {"clickhouse_http", "clickhouse_native"}}
IN_DATABASES = [entry for entry in ENTRIES if entry.system in ENDPOINTS]
BOUNDS = [entry for entry in ENTRIES if entry.origin is Origin.LIMIT and entry.operation is not Operation.JOB]
DATABASES = [entry for entry in IN_DATABASES if entry not in BOUNDS]
JOBS = [entry for entry in ENTRIES if entry.operation is Operation.JOB]
ON_FILES = [entry for entry in ENTRIES if entry.system not in ENDPOINTS and entry not in (*JOBS, *BOUNDS)]
OF_MATRIX = [entry for entry in DATABASES if entry.published]
# Operation -> what follows the connection in the signature; a store is its own connection.
DATABASE_ARGUMENTS = {Operation.WRITE: ["frame", "table"], Operation.READ: ["table"]}
BOUND_ARGUMENTS = {
    Operation.WRITE: ["source", "table"],
    Operation.READ: ["table"],
    Operation.CALL: [],
    Operation.COPY: ["data"],
}
FILE_ARGUMENTS = {Operation.SCAN: ["files"], Operation.CREATE: ["data"], Operation.READ: [], Operation.QUERY: []}
FILE_ARGUMENTS[Operation.TRANSFORM] = ["source", "destination"]
JOB_ARGUMENTS = {"source", "threads", "queries", "elements", "folder", "database", "path", "size", "destination"}
# System -> what its data may be in memory; a scan has none but where it makes a frame of all rows.
FRAMES = {
    "postgres": {"pandas", "polars"},
    "clickhouse": {"pandas", "polars"},
    "machine": {"bytes"},
    "parquet": {"", "pandas"},
    "elt": {""},
    "tuning": {""},
    "stores_equal": {"pyarrow"},
    "stores_published": {"dicts", "tuples", "pyarrow"},
}


@pytest.fixture
def empty(monkeypatch):
    """An empty catalogue to register in."""
    monkeypatch.setattr(registry, "_CATALOGUE", {})


def register(operation="write", **more):
    return transport(operation, **({"frame": "polars", "path": "", "payload": ""} | more))


def every(entries=ENTRIES):
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.id)


def test_every_published_row_of_the_matrix_has_exactly_one_transport_and_every_published_transport_a_row():
    rows = [(row["database"], row["direction"], row["description"]) for row in ARTICLE]
    ours = [(entry.system, str(entry.operation), entry.published) for entry in OF_MATRIX]
    assert sorted(ours) == sorted(rows)
    assert len(set(ours)) == len(ours) == 56


@every(OF_MATRIX)
def test_the_declarations_agree_with_the_published_description(entry):
    described = entry.published.lower()
    assert entry.frame in described
    assert ("pandas" if entry.frame == "polars" else "polars") not in described
    assert ("-> " in described) == (entry.operation is Operation.READ)
    assert f"{entry.frame}" in described.rpartition("from " if entry.operation is Operation.WRITE else "-> ")[2]


@every(DATABASES)
def test_the_name_of_a_function_says_operation_and_frame(entry):
    assert entry.function.__name__.startswith(f"{entry.operation}_{entry.frame}_")


@every([entry for entry in ON_FILES if entry.operation is not Operation.TRANSFORM])
def test_the_name_of_a_function_on_files_says_the_operation_and_what_is_special(entry):
    operation, _, special = entry.function.__name__.partition("_")
    assert operation == entry.operation
    assert special == "" or entry.system == "parquet"


@pytest.mark.parametrize("system", ["stores_equal", "stores_published"])
def test_every_store_can_be_made_read_and_queried(system):
    found = {}
    for entry in select(f"{system}.*"):
        found.setdefault(entry.client, set()).add(entry.operation)
    assert found
    assert all(operations == {Operation.CREATE, Operation.READ, Operation.QUERY} for operations in found.values())


def test_every_store_of_the_published_protocol_also_stands_in_the_equal_one():
    published, equal = ({entry.client for entry in select(f"stores_{name}.*")} for name in ("published", "equal"))
    assert published == {"parquetdb", "pyarrow", "sqlite"}
    assert published < equal


@every()
def test_the_id_is_system_client_and_function_and_finds_the_transport(entry):
    system, module, function = entry.id.split(".")
    assert (system, function.removesuffix(CONTROL)) == (entry.system, entry.function.__name__)
    assert function.endswith(CONTROL) == (entry.origin is Origin.CONTROL)
    assert entry.function.__module__ == f"harness.transports.{system}.{module}"
    assert entry.client in (module, entry.function.__globals__.get("CLIENT"))
    assert one(entry.id) is CATALOGUE[entry.id] is entry


@every(DATABASES)
def test_operation_and_signature_agree(entry):
    _, *arguments = inspect.signature(entry.function).parameters
    assert arguments == DATABASE_ARGUMENTS[entry.operation]
    shared = ["io"] if "shared_io" in entry.needs else []
    store = ["s3"] if "s3" in entry.needs else []
    assert list(inspect.signature(connect_of(entry)).parameters) == ["uri", *shared, *store]


@every(BOUNDS)
def test_operation_and_signature_of_a_bound_agree(entry):
    _, *arguments = inspect.signature(entry.function).parameters
    assert arguments == BOUND_ARGUMENTS[entry.operation]
    assert list(inspect.signature(connect_of(entry)).parameters) == ([] if entry.system == "machine" else ["uri"])
    assert entry.function.__name__.startswith(f"{entry.operation}_")


@every(BOUNDS)
def test_a_bound_has_no_frame_of_a_library(entry):
    frames = {Operation.WRITE: {"table", "sorted table"}, Operation.COPY: {"bytes"}}
    assert entry.frame in frames.get(entry.operation, {""})


@pytest.mark.parametrize("system", ENDPOINTS)
def test_every_published_client_of_a_database_has_an_empty_call(system):
    called = {entry.client for entry in BOUNDS if entry.system == system and entry.operation is Operation.CALL}
    assert called >= {entry.client for entry in OF_MATRIX if entry.system == system} - {"pg_parquet"}


def test_a_kind_of_value_fares_in_one_way_only(empty):
    with pytest.raises(ValueError, match="once in lossy"):
        register(lossy={"changed": "nulls nan", "refused": "nan"})(lambda connection, frame, table: None)


@every(ON_FILES)
def test_operation_and_signature_agree_on_files(entry):
    first, *arguments = inspect.signature(entry.function).parameters
    assert first in {"parquet": {"connection"}, "elt": {"connection", "session", "options"}}.get(
        entry.system, {"store"}
    )
    assert arguments == FILE_ARGUMENTS[entry.operation]
    on_s3 = entry.operation is Operation.TRANSFORM
    assert list(inspect.signature(connect_of(entry)).parameters) == (["folder", "s3"] if on_s3 else ["folder"])


@every(JOBS)
def test_a_job_is_called_with_arguments_that_its_rig_has(entry):
    first, *arguments = inspect.signature(entry.function).parameters
    assert first in {"connection", "session", "block"}
    assert set(arguments) <= JOB_ARGUMENTS
    assert list(inspect.signature(connect_of(entry)).parameters) == ["folder", "s3"]


@every()
def test_what_a_transport_declares_is_complete(entry):
    assert entry.summary.endswith(".")
    assert entry.path
    assert entry.payload
    assert entry in BOUNDS or entry.frame in FRAMES[entry.system]
    assert entry.endpoint in ENDPOINTS.get(entry.system, {entry.system})
    assert set(entry.needs) <= {"pg_parquet", "shared_io", "s3"}
    if entry not in (
        *JOBS,
        *BOUNDS,
    ):  # of some published jobs the article has pictures only, no figure to quote
        assert (entry.origin is Origin.PUBLISHED) == bool(entry.published)
    assert all(isinstance(text, str) for item in entry.settings.items() for text in item)


@every([entry for entry in ENTRIES if entry.frame and entry.system != "stores_published" and entry not in BOUNDS])
def test_the_library_of_the_data_is_imported_before_the_clock(entry):
    assert entry.frame in {module.partition(".")[0] for module in entry.requires}


@every()
def test_some_package_is_imported_before_the_clock(entry):
    assert entry.requires or entry.client in ("posix", "urllib")  # which are Python itself


@every()
def test_an_async_function_has_an_async_connect_and_a_sync_one_a_sync_connect(entry):
    connect = inspect.unwrap(connect_of(entry))
    assert inspect.isasyncgenfunction(connect) == inspect.iscoroutinefunction(entry.function)
    assert entry.style == ("async" if inspect.iscoroutinefunction(entry.function) else "sync")


def test_ids_are_unique_and_in_order():
    assert list(CATALOGUE) == sorted(set(CATALOGUE))
    assert select("*") == list(CATALOGUE.values())


def test_the_catalogue_lists_without_importing_any_client_or_dataframe_library():
    modules = sorted({name.partition(".")[0] for entry in CATALOGUE.values() for name in entry.requires})
    code = (
        "import sys; from harness import registry; entries = registry.catalogue(); "
        f"print(len(entries), *[name for name in {modules!r} if name in sys.modules])"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(CATALOGUE))]


def test_one_imports_no_other_transport_module():
    code = (
        "import sys; from harness import registry; registry.one('postgres.psycopg.read_polars_rows'); "
        "print(*[n for n in sys.modules if n.startswith('harness.transports.') and n.count('.') == 3])"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["harness.transports.postgres.psycopg"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("postgres.psycopg.read_polars_rows", {"postgres.psycopg.read_polars_rows"}),
        ("postgres.psycopg.*_rows", {"postgres.psycopg.read_pandas_rows", "postgres.psycopg.read_polars_rows"}),
        ("*.psycopg.read_p[ao]*s_rows", {"postgres.psycopg.read_pandas_rows", "postgres.psycopg.read_polars_rows"}),
        (
            "postgres.psycopg.read_polars_rows, postgres.psycopg.read_pol*_rows ,*psycopg.write_polars*",
            {"postgres.psycopg.read_polars_rows", "postgres.psycopg.write_polars_copy_text"},
        ),
    ],
)
def test_a_glob_or_several_select_each_transport_once(pattern, expected):
    chosen = [entry.id for entry in select(pattern)]
    assert set(chosen) == expected
    assert chosen == sorted(expected)


@pytest.mark.parametrize(
    ("pattern", "among", "expected"),
    [
        ("*", "postgres.psycopg.read_*", "postgres.psycopg.read_*"),
        ("*.read_*", " postgres.psycopg.* , parquet.*", "postgres.psycopg.read_*"),
        ("*", "stores_published.*,parquet.duckdb.scan", "stores_published.*,parquet.duckdb.scan"),
    ],
)
def test_only_transports_among_those_named_are_selected(pattern, among, expected):
    assert select(pattern, among) == select(expected)
    assert len(select(expected)) < len(select(pattern))


@pytest.mark.parametrize("pattern", ["clickhouse.*", "postgres.asyncpg.read_polars_rows", "postgres.*,parquet.*"])
def test_a_pattern_that_matches_none_of_those_named_is_refused_with_the_nearest_of_them(pattern):
    with pytest.raises(LabError, match=r'nearest: "postgres\.psycopg\.'):
        select(pattern, "postgres.psycopg.*")


@pytest.mark.parametrize(
    "pattern", ["", "nothing", "*.nothing", "POSTGRES.*", "postgres.*,nothing", "postgres.*,", "["]
)
def test_a_pattern_that_matches_nothing_is_one_line_that_names_the_nearest(pattern):
    with pytest.raises(LabError, match=r'^no transport matches ".*"; nearest: ".+"; run "lab list"') as caught:
        select(pattern)
    assert "\n" not in str(caught.value)


def test_a_misspelt_id_names_the_one_that_was_meant():
    for find in (one, select):
        with pytest.raises(LabError, match=r'nearest: "postgres\.psycopg\.write_polars_copy_text"'):
            find("postgres.psycopg.write_polar_copytext")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..x", "postgres", "postgres.psycopg", "postgres.psycopg.connect", "os.path.join", "../x", "a b.c.d"],
)
def test_what_is_no_id_of_a_transport_is_one_line(name):
    with pytest.raises(LabError, match="no transport matches"):
        one(name)


def test_a_package_that_a_transport_module_lacks_is_not_taken_for_an_unknown_transport(tmp_path, monkeypatch):
    package = tmp_path / "broken"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "client.py").write_text("import no_such_package")
    import harness.transports

    monkeypatch.setattr(harness.transports, "__path__", [*harness.transports.__path__, str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        one("broken.client.write")


def test_registering_returns_the_function_itself(empty):
    def write(connection, frame, table):
        """Say it.

        More.
        """

    write.__module__ = "harness.transports.postgres.made_up"
    assert register()(write) is write
    (entry,) = registry._CATALOGUE.values()
    assert (entry.id, entry.summary, entry.origin) == ("postgres.made_up.write", "Say it.", Origin.BEYOND)


def test_a_control_is_the_same_function_under_a_second_id_and_no_published_row(empty):
    def write(connection, frame, table):
        """Say it."""

    register(control=True, published="A row", settings={"one": "1"})(write)
    first, second = registry._CATALOGUE.values()
    assert (second.id, second.origin, second.published) == (f"{first.id}_control", Origin.CONTROL, None)
    assert second.summary == f"A/A control: the function of {first.id} again, under a second id."
    assert second.function is first.function is write
    assert second.settings == first.settings
    assert first.published == "A row"


@pytest.mark.parametrize("system", ["postgres", "clickhouse"])
def test_each_database_has_an_a_a_control_of_a_read(system):
    controls = [entry for entry in DATABASES if entry.origin is Origin.CONTROL and entry.system == system]
    assert [entry.operation for entry in controls] == [Operation.READ]
    assert all(one(entry.id.removesuffix(CONTROL)).function is entry.function for entry in controls)


def test_an_id_that_is_taken_is_refused(empty):
    def write(connection, frame, table): ...

    register()(write)
    with pytest.raises(ValueError, match="registered twice"):
        register()(write)


@pytest.mark.parametrize("wrong", [{"operation": "sideways"}, {"origin": "elsewhere"}])
def test_an_unknown_operation_or_origin_is_refused(empty, wrong):
    def write(connection, frame, table): ...

    with pytest.raises(ValueError, match="is not a valid"):
        register(**wrong)(write)


def test_both_dataframe_libraries_have_a_dtype_for_every_kind():
    assert POLARS_DTYPES.keys() == PANDAS_DTYPES.keys()


def test_every_transport_module_registers_something():
    for path in (ROOT / "harness" / "transports").glob("*/*.py"):
        if path.stem != "__init__":
            name = f"harness.transports.{path.parent.name}.{path.stem}"
            importlib.import_module(name)
            assert any(entry.function.__module__ == name for entry in CATALOGUE.values()), name
