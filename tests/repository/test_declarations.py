"""Every transport of the catalogue: ids, declarations, signatures, and the published rows of the article."""

import ast
import csv
import inspect
import sys
from contextlib import nullcontext
from functools import cache

import pytest

from harness import registry
from harness.check.logical_types import PANDAS_DTYPES, POLARS_DTYPES
from harness.datasets.hostile.common_kinds import KINDS
from harness.model import CONTROL, ENGINES, Operation, Origin
from harness.registry import connect_of, imported_by, one, select
from harness.settings import ROOT
from harness.systems import SYSTEMS
from tests.every import every

CATALOGUE = registry.catalogue()
ENTRIES = tuple(CATALOGUE.values())
ENDPOINTS = {name: set(system.endpoints) for name, system in SYSTEMS.items()}
IN_DATABASES = [entry for entry in ENTRIES if entry.system in ENDPOINTS]
BOUNDS = [entry for entry in ENTRIES if entry.origin is Origin.LIMIT and entry.operation is not Operation.JOB]
IN_PARTS = [entry for entry in IN_DATABASES if entry.operation in (Operation.LOAD, Operation.UNLOAD)]
DATABASES = [entry for entry in IN_DATABASES if entry not in (*BOUNDS, *IN_PARTS)]
JOBS = [entry for entry in ENTRIES if entry.operation is Operation.JOB]
ON_FILES = [entry for entry in ENTRIES if entry.system not in ENDPOINTS and entry not in (*JOBS, *BOUNDS)]
OF_MATRIX = [entry for entry in DATABASES if entry.published]
# Operation -> the parameters after the connection in the signature; a store is its own connection.
DATABASE_ARGUMENTS = {Operation.WRITE: ["frame", "table"], Operation.READ: ["table"]}
PART_ARGUMENTS = {Operation.LOAD: ["source", "table"], Operation.UNLOAD: ["table", "destination"]}
BOUND_ARGUMENTS = {
    Operation.WRITE: ["source", "table"],
    Operation.READ: ["table"],
    Operation.CALL: [],
    Operation.COPY: ["data"],
}
FILE_ARGUMENTS = {Operation.SCAN: ["files"], Operation.CREATE: ["data"], Operation.READ: [], Operation.QUERY: []}
FILE_ARGUMENTS[Operation.TRANSFORM] = ["source", "destination"]
JOB_ARGUMENTS = {"source", "threads", "queries", "elements", "folder", "database", "path", "size", "destination"}
# System -> the forms that its data may have in memory; a scan has none unless it makes a frame of all rows.
FRAMES = {
    **{name: {"pandas", "polars"} for name in SYSTEMS},
    "machine": {"bytes"},
    "parquet": {"", "pandas"},
    "elt": {""},
    "tuning": {""},
    "stores_equal": {"pyarrow"},
    "stores_published": {"dicts", "tuples", "pyarrow"},
}


def test_every_published_row_of_the_matrix_has_exactly_one_transport_and_every_published_transport_a_row():
    article = csv.DictReader((ROOT / "suites" / "published" / "matrix.csv").open(encoding="utf-8"))
    rows = [(row["database"], row["direction"], row["description"]) for row in article]
    ours = [(entry.system, str(entry.operation), entry.published) for entry in OF_MATRIX]
    assert sorted(ours) == sorted(rows)
    assert len(set(ours)) == len(ours) > 0


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


def test_every_store_of_the_published_protocol_is_also_in_the_equal_one():
    published, equal = ({entry.client for entry in select(f"stores_{name}.*")} for name in ("published", "equal"))
    assert published == {"parquetdb", "pyarrow", "sqlite"}
    assert published < equal


@every(ENTRIES)
def test_the_id_is_system_client_and_function_and_finds_the_transport(entry):
    system, client, function = entry.id.split(".")
    assert (system, client, function.removesuffix(CONTROL)) == (entry.system, entry.client, entry.function.__name__)
    assert function.endswith(CONTROL) == (entry.origin is Origin.CONTROL)
    assert entry.function.__module__.split(".")[:4] == ["harness", "transports", system, client]
    assert one(entry.id) is one(entry.id, entry.function.__module__) is CATALOGUE[entry.id] is entry


def takes(entry, *names):
    """Return whether a transport connects with parameters of these names; nullcontext passes on one of any name."""
    connect = connect_of(entry)
    if connect is nullcontext:
        return len(names) <= 1
    return list(inspect.signature(connect).parameters) == list(names)


@every(DATABASES)
def test_operation_and_signature_agree(entry):
    _, *arguments = inspect.signature(entry.function).parameters
    assert arguments == DATABASE_ARGUMENTS[entry.operation]
    shared = ["io"] if "shared_io" in entry.needs else []
    store = ["s3"] if "s3" in entry.needs else []
    assert takes(entry, "uri", *shared, *store)


@every(IN_PARTS)
def test_what_loads_and_unloads_is_named_and_called_so(entry):
    _, *arguments = inspect.signature(entry.function).parameters
    assert arguments == PART_ARGUMENTS[entry.operation]
    assert entry.function.__name__.startswith(f"{entry.operation}_")
    workers = ["workers"] if entry.engine else []
    assert takes(entry, "uri", *workers)
    assert not entry.lossy


@every(BOUNDS)
def test_operation_and_signature_of_a_bound_agree(entry):
    _, *arguments = inspect.signature(entry.function).parameters
    assert arguments == BOUND_ARGUMENTS[entry.operation]
    assert takes(entry, *([] if entry.system == "machine" else ["uri"]))
    assert entry.function.__name__.startswith(f"{entry.operation}_")


@every(BOUNDS)
def test_a_bound_has_no_frame_of_a_library(entry):
    frames = {Operation.WRITE: {"table", "sorted table"}, Operation.COPY: {"bytes"}}
    assert entry.frame in frames.get(entry.operation, {""})


@pytest.mark.parametrize("system", ENDPOINTS)
def test_every_published_client_of_a_database_has_an_empty_call(system):
    called = {entry.client for entry in BOUNDS if entry.system == system and entry.operation is Operation.CALL}
    assert called >= {entry.client for entry in OF_MATRIX if entry.system == system} - {"pg_parquet"}


@every(ON_FILES)
def test_operation_and_signature_agree_on_files(entry):
    first, *arguments = inspect.signature(entry.function).parameters
    assert first in {"parquet": {"connection"}, "elt": {"connection", "session", "options"}}.get(
        entry.system, {"store"}
    )
    assert arguments == FILE_ARGUMENTS[entry.operation]
    on_s3 = entry.operation is Operation.TRANSFORM
    assert takes(entry, "folder", *(["s3"] if on_s3 else []))


@every(JOBS)
def test_a_job_is_called_with_arguments_that_its_rig_has(entry):
    first, *arguments = inspect.signature(entry.function).parameters
    assert first in {"connection", "session", "block"}
    assert set(arguments) <= JOB_ARGUMENTS
    assert takes(entry, "folder", "s3")


@every(ENTRIES)
def test_what_a_transport_declares_is_complete(entry):
    assert entry.summary.endswith(".")
    assert entry.path
    assert entry.payload
    assert entry in BOUNDS or entry.frame in FRAMES[entry.system] | ({""} if entry in IN_PARTS else set())
    assert entry.endpoint in ENDPOINTS.get(entry.system, {entry.system})
    assert set(entry.needs) <= {"pg_parquet", "shared_io", "s3", *ENGINES}
    if entry not in (
        *JOBS,
        *BOUNDS,
    ):  # the article has only pictures of some published jobs, no figure to quote
        assert (entry.origin is Origin.PUBLISHED) == bool(entry.published)
    assert all(isinstance(text, str) for item in entry.settings.items() for text in item)


@every([entry for entry in IN_DATABASES if entry.id.endswith("_tuned")])
def test_a_tuned_transport_loses_only_what_the_library_of_its_frame_has_no_place_for(entry):
    assert [kind for kind in entry.lossy if entry.frame not in KINDS[kind].no_frame] == []


@every([entry for entry in ENTRIES if entry.frame and entry.system != "stores_published" and entry not in BOUNDS])
def test_the_library_of_the_data_is_imported_before_the_clock(entry):
    assert entry.frame in {module.partition(".")[0] for module in entry.requires}


@every(ENTRIES)
def test_some_package_is_imported_before_the_clock(entry):
    assert entry.requires or entry.client in ("http_client", "posix", "urllib")  # which are Python itself


@cache
def declared(module: str) -> dict[str, dict[str, object]]:
    """The literals by keyword in each `@transport(...)` of a module, by the name of the function."""
    found = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        for decorator in getattr(node, "decorator_list", []):
            if isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "transport":
                keywords = decorator.keywords
                names = ("operation", "frame", "requires")
                found[node.name] = {one.arg: ast.literal_eval(one.value) for one in keywords if one.arg in names}
    return found


@every(ENTRIES)
def test_nothing_is_declared_that_the_name_or_the_imports_say(entry):
    said = declared(entry.function.__module__)[entry.function.__name__]
    first, second, *_ = f"{entry.function.__name__}_".split("_")
    assert said.get("operation") != first
    if entry.operation in (Operation.READ, Operation.WRITE):
        assert said.get("frame") != second
    derived = {entry.frame, *imported_by(entry.function, connect_of(entry))}
    known = {name.rsplit(".", parts)[0] for name in derived for parts in range(name.count(".") + 1)}
    assert known.isdisjoint(said.get("requires", ()))


@every(ENTRIES)
def test_an_async_function_has_an_async_connect_and_a_sync_one_a_sync_connect(entry):
    connect = inspect.unwrap(connect_of(entry))
    assert inspect.isasyncgenfunction(connect) == inspect.iscoroutinefunction(entry.function)
    assert entry.style == ("async" if inspect.iscoroutinefunction(entry.function) else "sync")


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_database_has_an_a_a_control_of_a_read(system):
    controls = [entry for entry in DATABASES if entry.origin is Origin.CONTROL and entry.system == system]
    assert [entry.operation for entry in controls] == [Operation.READ]
    assert all(one(entry.id.removesuffix(CONTROL)).function is entry.function for entry in controls)


def test_both_dataframe_libraries_have_a_dtype_for_every_logical_type():
    assert POLARS_DTYPES.keys() == PANDAS_DTYPES.keys()
