"""Only transports of Daft run in its separate environment; if it is missing, one command is named.

The environments here hold empty packages; the one of `make engine ENGINE=daft` is tried by tests/transports.
"""

import re
import subprocess
import venv
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from packaging.requirements import Requirement

from harness import registry
from harness.lab import interpreters, packages
from harness.lab.packages import EXTRAS, PROJECT, from_pypi, not_installed, package_of
from harness.model import Case, Status, Value
from harness.run import environment
from harness.run.execution import Worker
from harness.worker.contracts.databases import DatabaseJob
from tests.run.test_environment import request, rig

__all__ = ["rig"]  # a fixture

OF_DAFT, OF_OTHERS = "postgres.daft.load_copy_sink", "postgres.psycopg.write_polars_copy_text"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for Daft's environment."""
    monkeypatch.setenv("LAB_ENVIRONMENTS_DIR", str(tmp_path))
    return tmp_path / ".venv-daft"


def install(folder: Path, **versions: str) -> None:
    """Make an environment with empty packages, each with one module of its name."""
    venv.create(folder)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for name, version in versions.items():
        about = packages / f"{name}-{version}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.capitalize()}\nVersion: {version}\n")
        (about / "RECORD").write_text(f"{name}.py,,\n{about.name}/METADATA,,\n")
        (packages / f"{name}.py").touch()


def case_of(name: str, **parameters: Value) -> Case:
    return Case(registry.one(name), "", "", parameters)


def test_everything_else_runs_in_the_interpreter_of_the_lab(own: Path) -> None:
    entry = registry.one(OF_OTHERS)
    assert interpreters.of(entry.requires) is None
    assert interpreters.command_of(entry) == interpreters.WORKER


def test_a_case_runs_in_the_environment_that_its_parameter_names(own: Path) -> None:
    case = Case(registry.one(OF_OTHERS), "", "", {"environment": "sqlalchemy-2.1"})
    folder = own.with_name(".venv-sqlalchemy-2.1")
    assert not_installed(case.transport.requires, environment=case.environment) == (
        'the Python environment "sqlalchemy-2.1" is not installed: make an environment of '
        "requirements-sqlalchemy-2.1.lock in LAB_ENVIRONMENTS_DIR/.venv-sqlalchemy-2.1"
    )
    install(folder, psycopg="3.3.9", polars="2.1.0")
    assert not_installed(case.transport.requires, environment=case.environment) is None
    assert interpreters.command_of(case.transport, case.environment)[0] == str(folder / "bin" / "python")


def test_whatever_requires_daft_has_the_interpreter_of_daft(own: Path) -> None:
    ways = registry.select("*.daft.*")
    assert {interpreters.command_of(entry)[0] for entry in ways} == {str(own / "bin" / "python")}


@pytest.mark.process
def test_a_worker_there_has_the_package_of_the_lab_and_nothing_that_lies_next_to_it(own: Path) -> None:
    """Neither the tests of a checkout nor the packages installed for the lab."""
    install(own)
    here = own / "here"
    here.mkdir()
    interpreters.lend(here)
    seen = "import importlib.util, harness.registry; print(harness.registry.__file__"
    seen += "".join(f", importlib.util.find_spec({other!r})" for other in ("tests", "pydantic")) + ")"
    python = interpreters.command_of(registry.one(OF_DAFT))[0]
    done = subprocess.run((python, "-c", seen), cwd=here, capture_output=True, text=True, check=True)
    registered, *others = done.stdout.split()
    assert (Path(registered).resolve(), others) == (ROOT / "harness" / "registry" / "__init__.py", ["None", "None"])


@pytest.mark.process
def test_a_worker_there_answers(own: Path) -> None:
    install(own, daft="0.7.26")
    (packages,) = own.glob("lib/python3*/site-packages")
    (packages / "psutil").symlink_to(Path(psutil.__file__).parent)  # workers measure with it
    entry = registry.one(OF_DAFT)
    job = DatabaseJob(transport=entry.id, module=entry.function.__module__, dataset="", logical_types={})
    answer = Worker(own / "log", interpreters.command_of(entry)).ask(job, 60).answer
    assert answer.status is Status.ERROR
    assert answer.error == "ModuleNotFoundError: No module named 'daft.io'; 'daft' is not a package"


def test_without_its_environment_daft_is_not_installed_whatever_the_lab_has(own: Path) -> None:
    assert not_installed(["daft", "pyarrow"]) == (
        'the Python package "daft" is not installed: make an environment of requirements-daft.lock in '
        "LAB_ENVIRONMENTS_DIR/.venv-daft"
    )


def test_in_a_checkout_one_command_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_ENVIRONMENTS_DIR", raising=False)
    assert interpreters.Interpreter("daft").folder == ROOT / ".venv-daft"
    assert interpreters.Interpreter("daft").remedy == "make engine ENGINE=daft"


def test_what_is_missing_there_is_named_though_the_lab_has_it(own: Path) -> None:
    install(own, daft="0.7.26", ray="2.59.0")
    assert not_installed(["daft", "json", "ray"]) is None
    assert (not_installed(["daft", "pyarrow", "polars"]) or "").startswith(
        'the Python packages "polars", "pyarrow" are not installed: '
    )


def test_a_run_records_the_versions_that_really_ran_and_where_nothing_of_daft_ran_none(own: Path, rig: object) -> None:
    facts = environment.describe(request(), rig, [case_of(OF_DAFT)])  # type: ignore[arg-type]
    assert facts["uses"][OF_DAFT] == []
    install(own, daft="0.7.26", pyarrow="25.0.1", never_used="1")
    facts = environment.describe(request(), rig, [case_of(OF_DAFT), case_of(OF_OTHERS)])  # type: ignore[arg-type]
    assert facts["uses"][OF_DAFT] == ["daft/python", "daft/daft", "daft/pyarrow"]
    assert facts["packages"]["daft/pyarrow"] == "25.0.1" != facts["packages"]["pyarrow"]
    assert re.fullmatch(r"3\.\d+\.\d+.*", facts["packages"]["daft/python"])

    facts = environment.describe(request(), rig, [case_of(OF_OTHERS)])  # type: ignore[arg-type]
    assert not [name for name in facts["packages"] if name.startswith("daft/")]


def test_a_run_in_two_environments_records_the_versions_of_both(own: Path, rig: object) -> None:
    install(own.with_name(".venv-older"), polars="2.0.0", never_used="1")
    both = [case_of(OF_OTHERS, environment=name) for name in ("lab", "older")]
    facts = environment.describe(request(), rig, both)  # type: ignore[arg-type]
    assert {"polars", "psycopg", "older/python", "older/polars"} == set(facts["uses"][OF_OTHERS])
    assert facts["packages"]["older/polars"] == "2.0.0" != facts["packages"]["polars"]


def test_every_extra_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "CHECKOUT", False)
    monkeypatch.setattr(packages, "find_spec", lambda module: None)
    told = {name: found for name, here, found in packages.lines() if not here}
    asked = metadata.metadata(PROJECT).get_all("Provides-Extra") or []
    assert told.keys() == {f"extra {name}" for name in asked}
    for line in told.values():
        assert " MB; " in line
        assert "\n" not in line
        assert len(line) < 140


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_is_known_by_what_it_brings(name: str) -> None:
    asked = [Requirement(one) for one in metadata.requires(PROJECT) or []]
    brought = {one.name for one in asked if one.marker and one.marker.evaluate({"extra": name})}
    known = {package_of(module) for module in EXTRAS[name].modules}
    assert known <= brought
    assert len(EXTRAS[name].modules) == len(known)


def test_one_that_is_not_installed_has_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda module: None if module == "datafusion" else object())
    told = {name: found for name, _, found in packages.lines()}
    assert told["extra scan"].endswith(f'; 271 MB; pip install "{PROJECT}[scan]"')
    assert "duckdb" in told["extras"].split(", ")
    assert "scan" not in told["extras"].split(", ")
    assert "extra all" in told


def test_all_is_offered_only_where_it_would_add_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda module: None if module in ("ray", "pyspark") else object())
    assert [name for name, here, _ in packages.lines() if not here] == []  # a checkout has make engine for these
    monkeypatch.setattr(packages, "CHECKOUT", False)
    assert [name for name, here, _ in packages.lines() if not here] == ["extra ray", "extra spark"]


@pytest.mark.parametrize(
    ("transport", "alone"),
    [
        ("postgres.pgpq.write_polars_copy_binary", True),
        ("postgres.duckdb.write_polars_insert", True),  # its extensions are wheels of PyPI
        ("postgres.asyncpg.read_pandas_copy_binary", True),  # compiled by Numba, which is one
        ("clickhouse.urllib.write_polars_parquet", True),
        ("postgres.psycopg.write_polars_tuned", False),
        ("postgres.psycopg.read_pandas_tuned", False),  # requires a module within arrow_wire
        ("clickhouse.http_client.read_polars_tuned", False),
        ("postgres.pg_parquet.write_polars_parquet_stream", False),  # the server needs an extension
    ],
)
def test_a_transport_is_from_pypi_where_neither_a_module_nor_the_server_asks_for_more(transport, alone):
    assert from_pypi(registry.one(transport)) is alone
