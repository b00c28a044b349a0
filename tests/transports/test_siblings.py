"""A transport, its script and its client: the parts in its module, and those in `client.py` next to it."""

import subprocess
import sys

import pytest

from harness import registry, show
from harness.model import Origin
from harness.registry import load
from harness.registry.losses import losses_text
from tests.every import every


@pytest.mark.long
@every(registry.catalogue().values())
def test_no_two_things_that_a_script_needs_have_one_name(entry):
    assert entry.function.__name__ in {name for one in show.definitions(entry) for name in one.names}


OF_DATABASES = [
    entry
    for entry in registry.select("postgres.*,clickhouse.*")
    if not {"daft", "ray", "pyspark"} & entry.modules  # which are installed separately
]


@pytest.mark.long
@every(OF_DATABASES)
def test_every_module_that_a_transport_requires_can_be_imported(entry):
    assert not entry.frame or entry.frame in entry.requires or entry.origin is Origin.LIMIT
    for name in entry.requires:
        load(name)


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Make modules of a client by name and text, and return its transports by the names of their functions."""
    import harness.transports

    monkeypatch.setattr(harness.transports, "__path__", [*harness.transports.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_CATALOGUE", {})

    def make(name: str, **modules: str):
        folder = tmp_path / f"made_{name}" / "client_of_it"
        folder.mkdir(parents=True, exist_ok=True)
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

@transport("p", "q")
def read_polars_rows(connection, table):
    \"\"\"Read.\"\"\"
    return quoted(table), {used}
"""


def test_a_module_without_a_connect_has_that_of_its_client(made_up):
    entry = made_up("shared", client=CLIENT, rows=TOPIC.format(more="", used=""))["read_polars_rows"]
    assert entry.id == "made_shared.client_of_it.read_polars_rows"
    assert (entry.client, entry.endpoint) == ("client_of_it", "clickhouse_http")
    assert registry.connect_of(entry)("x") == "x"
    names = [name for one in show.definitions(entry) for name in sorted(one.names)]
    assert names == ["SIZE", "connect", "quoted", "read_polars_rows"]


def test_a_module_with_its_own_connect_keeps_it(made_up):
    own = "ENDPOINT = 'here'\nconnect = quoted"
    entry = made_up("own", client=CLIENT, rows=TOPIC.format(more=own, used=""))["read_polars_rows"]
    assert entry.endpoint == "here"
    assert registry.connect_of(entry).__name__ == "quoted"


@pytest.mark.parametrize("more", ["SIZE = 2", "def SIZE():\n    pass", "import os as SIZE"])
def test_a_name_with_two_meanings_in_one_script_is_refused(made_up, more):
    entry = made_up(f"twice_{len(more)}", client=CLIENT, rows=TOPIC.format(more=more, used="SIZE"))["read_polars_rows"]
    with pytest.raises(ValueError, match=r"names that mean two things in its script: .*SIZE"):
        show.definitions(entry)


IMPORTING = """
from contextlib import contextmanager

class Opened:
    def close(self):
        import psycopg.types.json
        import json

@contextmanager
def reading(uri):
    import pyarrow.parquet as pq
    yield Opened()

def unused():
    import duckdb

def shared(rows):
    from psycopg import rows as kinds, sql
    return kinds, sql
"""
REQUIRING = """
from harness.registry import transport
from HERE.client import reading, shared, unused

connect = reading

@transport("p", "q", requires=["numpy"])
def read_polars_rows(connection, table):
    return [shared(row) for row in unused.rows]

@transport("p", "q", frame="pyarrow")
def write(connection, frame, table):
    unused()
"""
OF_CONNECT = {"pyarrow.parquet", "psycopg.types.json"}


def test_a_transport_requires_what_it_its_connect_and_all_that_they_call_import(made_up):
    entries = made_up("importing", client=IMPORTING, rows=REQUIRING)
    of_read = {*OF_CONNECT, "polars", "numpy", "duckdb", "psycopg.rows", "psycopg.sql"}
    assert entries["read_polars_rows"].requires == tuple(sorted(of_read))
    assert entries["write"].requires == tuple(sorted({*OF_CONNECT, "pyarrow", "duckdb"}))


@pytest.mark.process
@pytest.mark.parametrize("name", ["json", "xml.etree.ElementTree", "xml.sax.handler.ContentHandler"])
def test_what_an_import_statement_names_is_imported(name):
    code = f"import sys; from harness.registry import load; load({name!r}); print(*sys.modules)"
    done = subprocess.run((sys.executable, "-S", "-c", code), capture_output=True, text=True, check=True)
    assert name.removesuffix(".ContentHandler") in done.stdout.split()


@pytest.mark.parametrize("name", ["no_such_package", "json.no_such_module"])
def test_a_missing_module_is_named(name):
    with pytest.raises(ModuleNotFoundError, match=name):
        load(name)


def test_a_transport_loses_what_its_system_s_file_says(made_up, tmp_path):
    (tmp_path / "made_losing").mkdir()
    declared = {"made_losing.client_of_it.read_polars_rows": {"nan": "changed", "tab": "refused"}}
    (tmp_path / "made_losing" / "losses.json").write_text(losses_text(declared))
    entries = made_up("losing", client=IMPORTING, rows=REQUIRING.replace('requires=["numpy"]', "control=True"))
    assert {name: entry.lossy for name, entry in entries.items()} == {
        "read_polars_rows": {"nan": "changed", "tab": "refused"},
        "write": {},
    }
