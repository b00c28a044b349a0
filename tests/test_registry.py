"""The registry: loading modules, selecting by globs, and registering a function once."""

import subprocess
import sys

import pytest

from harness import registry
from harness.model import LabError, Origin
from harness.registry import one, select, transport
from tests.commands import one_line

CATALOGUE = registry.catalogue()


@pytest.fixture
def empty(monkeypatch):
    """An empty catalogue to register in."""
    monkeypatch.setattr(registry, "_CATALOGUE", {})


def register(**more):
    """Return a decorator that registers a function of this module as one of Postgres."""

    def of_postgres(function):
        function.__module__ = "harness.transports.postgres.made_up"
        return transport("", "", **more)(function)

    return of_postgres


def test_ids_are_unique_and_in_order():
    assert list(CATALOGUE) == sorted(set(CATALOGUE))
    assert select("*") == list(CATALOGUE.values())


@pytest.mark.process
def test_the_catalogue_lists_without_importing_any_client_or_dataframe_library():
    modules = sorted({name.partition(".")[0] for entry in CATALOGUE.values() for name in entry.requires})
    code = (
        "import sys; from harness import registry; entries = registry.catalogue(); "
        f"print(len(entries), *[name for name in {modules!r} if name in sys.modules])"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(CATALOGUE))]


def modules_imported_by(call):
    """The modules of the catalogue that a call imports in a fresh process, from their system's folder on."""
    code = (
        f"import sys; from harness import registry; registry.{call}; "
        "print(*[n.removeprefix('harness.transports.') for n in sys.modules if n.startswith('harness.transports.')])"
    )
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


@pytest.mark.process
def test_a_worker_that_knows_the_module_imports_that_and_its_siblings_only():
    call = "one('postgres.psycopg.read_polars_copy_text_format', 'harness.transports.postgres.psycopg.copy_text')"
    own = [f"postgres.psycopg{name}" for name in ("", ".client", ".copy_text")]
    assert modules_imported_by(call) == ["postgres", "postgres.columns", *own, "postgres.sql", "postgres.tables"]


@pytest.mark.process
def test_one_imports_the_modules_of_its_client_and_siblings_only():
    imported = modules_imported_by("one('postgres.psycopg.read_polars_rows')")
    assert [name for name in imported if not name.startswith("postgres.psycopg")] == [
        "parts", "postgres", "postgres.columns", "postgres.sql", "postgres.tables"
    ]  # fmt: skip
    assert "postgres.psycopg.published" in imported


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("postgres.psycopg.read_polars_rows", {"postgres.psycopg.read_polars_rows"}),
        ("postgres.psycopg.*s_rows", {"postgres.psycopg.read_pandas_rows", "postgres.psycopg.read_polars_rows"}),
        ("*.psycopg.read_p[ao]*s_rows", {"postgres.psycopg.read_pandas_rows", "postgres.psycopg.read_polars_rows"}),
        (
            "postgres.psycopg.read_polars_rows, postgres.psycopg.read_pol*s_rows ,*psycopg.write_polars*_text",
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
def test_a_pattern_that_matches_none_of_those_named_is_refused(pattern):
    with pytest.raises(LabError, match=r"^no transport"):
        select(pattern, "postgres.psycopg.*")


@pytest.mark.parametrize(
    "pattern", ["", "nothing", "*.nothing", "POSTGRES.*", "postgres.*,nothing", "postgres.*,", "["]
)
def test_a_pattern_that_matches_nothing_is_one_line_with_where_all_are_listed(pattern):
    with one_line(r'^no transport ".*"\..* lab list prints all of them$'):
        select(pattern)


def test_a_misspelt_id_names_the_one_that_was_meant():
    for find in (one, select):
        with pytest.raises(LabError, match=r'Did you mean "postgres\.psycopg\.write_polars_copy_text"\?'):
            find("postgres.psycopg.write_polar_copytext")


@pytest.mark.parametrize(
    "name",
    ["", ".", "..x", "postgres", "postgres.psycopg", "postgres.psycopg.connect", "os.path.join", "../x", "a b.c.d"],
)
def test_what_is_no_id_of_a_transport_is_one_line(name):
    with pytest.raises(LabError, match=r"^no transport "):
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

    assert register()(write) is write
    (entry,) = registry.registered().values()
    assert (entry.id, entry.summary, entry.origin) == ("postgres.made_up.write", "Say it.", Origin.BEYOND)


def test_a_control_is_the_same_function_under_a_second_id_and_no_published_row(empty):
    def write(connection, frame, table):
        """Say it."""

    register(control=True, published="A row", settings={"one": "1"})(write)
    first, second = registry.registered().values()
    assert (second.id, second.origin, second.published) == (f"{first.id}_control", Origin.CONTROL, None)
    assert second.summary == f"A/A control: the function of {first.id} again, under a second id."
    assert second.function is first.function is write
    assert second.settings == first.settings
    assert first.published == "A row"


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


@pytest.mark.parametrize(
    ("name", "declared", "operation", "frame"),
    [
        ("write_polars_copy", {}, "write", "polars"),
        ("read_pandas", {}, "read", "pandas"),
        ("read_arrow_stream", {}, "read", ""),
        ("load_polars_sink", {}, "load", ""),  # polars is its client; a load gets a file
        ("create", {"frame": "pyarrow"}, "create", "pyarrow"),
        ("write_select", {"frame": "sorted table"}, "write", "sorted table"),
        ("copy_to_s3", {"operation": "job"}, "job", ""),
    ],
)
def test_operation_and_frame_are_those_of_the_name_unless_declared(empty, name, declared, operation, frame):
    def function(connection): ...

    function.__name__ = name
    register(**declared)(function)
    (entry,) = registry.registered().values()
    assert (entry.operation, entry.frame) == (operation, frame)
