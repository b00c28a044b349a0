"""Every store returns exactly the written data, and its query returns exactly the rows that numpy finds."""

import functools
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from harness import registry
from harness.datasets.integers import LOGICAL_TYPES, SPECIFICATION

PUBLISHED = [one.id.removesuffix(".create") for one in registry.select("stores_published.*.create")]
EQUAL = [one.id.removesuffix(".create") for one in registry.select("stores_equal.*.create")]
COLUMNS = list(LOGICAL_TYPES)
ELSEWHERE = {"PYTHONPATH": str(Path(__file__).parents[2])}  # for processes that do not start in the project's folder

# How the filter col1 > 100 and col97 < 1000 decides at its edges: (col1, col97) -> whether the row passes.
EDGES = {
    (100, 0): False,
    (101, 0): True,
    (101, 999): True,
    (101, 1_000): False,
    (1_000_000, 0): True,
    (0, 1_000_000): False,
    (1_000_000, 1_000_000): False,
}


@pytest.fixture(scope="module", autouse=True)
def away_from_home(tmp_path_factory):
    """Import ParquetDB where its leftovers do no harm: a log file, a configuration, variables of a .env."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        patch.setenv("PYTHON_DOTENV_DISABLED", "1")
        patch.chdir(tmp_path_factory.mktemp("working"))
        yield


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Every pause that a transport makes, in seconds; none is waited for."""
    asked = []
    monkeypatch.setattr(time, "sleep", asked.append)
    return asked


def operation(store, name):
    entry = registry.one(f"{store}.{name}")
    for module in entry.requires:
        pytest.importorskip(module.partition(".")[0])
    return entry


@contextmanager
def made(store, folder, table):
    """Yield the handle of a store that was created from a table in the form that its protocol takes."""
    entry = operation(store, "create")
    data = table if entry.frame == "pyarrow" else table.to_pylist()
    if entry.frame == "tuples":
        data = [tuple(row.values()) for row in data]
    with registry.connect_of(entry)(str(folder)) as handle:
        assert entry.function(handle, data) is None
        yield handle


def fetch(store, handle, name):
    """Return the result of `read` or `query` as rows in a fixed order, without the row numbers of some stores."""
    entry = operation(store, name)
    returned = entry.function(handle)
    if entry.frame == "tuples":
        assert type(returned) is list
        assert all(type(row) is tuple for row in returned)
        return in_order(np.array(returned, np.int64).reshape(-1, len(COLUMNS)))
    assert isinstance(returned, pa.Table)
    names = [name for name in returned.column_names if name != "id"]
    assert names == (sorted(COLUMNS) if "parquetdb" in store else COLUMNS)
    assert set(returned.schema.types) == {pa.int64()}
    return in_order(matrix(returned))


def matrix(table):
    return np.column_stack([table[name].to_numpy() for name in COLUMNS])


def in_order(rows):
    return rows[np.lexsort(rows[:, [97, 2, 1, 0]].T)]


@functools.cache
def integers(rows):
    return pa.Table.from_batches(SPECIFICATION.build(rows, 1))


def passing(rows):
    return rows[(rows[:, 1] > 100) & (rows[:, 97] < 1_000)]


@pytest.mark.parametrize("rows", [1, 7, 1_000, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("store", PUBLISHED + EQUAL)
def test_a_store_gives_back_every_value_and_queries_the_rows_that_pass(store, rows, tmp_path):
    table = integers(rows)
    expected = in_order(matrix(table))
    with made(store, tmp_path, table) as handle:
        assert np.array_equal(fetch(store, handle, "read"), expected)
        assert np.array_equal(fetch(store, handle, "query"), passing(expected))
    assert len(passing(expected)) == {1: 0, 7: 0, 1_000: 1, 10_000: 12}[rows]


@pytest.mark.parametrize("store", PUBLISHED + EQUAL)
def test_a_query_keeps_its_bounds_at_the_ends_of_the_range(store, tmp_path):
    rows = np.full((len(EDGES), len(COLUMNS)), 1_000_000)  # the other columns at either end of their range
    rows[:, 2::2] = 0
    rows[:, [1, 97]] = list(EDGES)
    with made(store, tmp_path, pa.table(dict(zip(COLUMNS, rows.T, strict=True)))) as handle:
        assert np.array_equal(fetch(store, handle, "read"), in_order(rows))
        assert np.array_equal(fetch(store, handle, "query"), in_order(rows[list(EDGES.values())]))


@pytest.mark.parametrize("store", [store for store in EQUAL if store != "stores_equal.parquetdb"])
def test_a_table_without_rows_comes_back_as_one(store, tmp_path):
    with made(store, tmp_path, integers(1).slice(0, 0)) as handle:
        assert fetch(store, handle, "read").shape == fetch(store, handle, "query").shape == (0, len(COLUMNS))


def test_parquetdb_refuses_a_table_without_rows(tmp_path):
    with pytest.raises(pa.ArrowInvalid), made("stores_equal.parquetdb", tmp_path, integers(1).slice(0, 0)):
        pass


BRACKETS = pytest.mark.xfail(strict=True, reason="deltalake 1.6.6 takes the path for a URL and panics at a bracket")


@pytest.mark.long
@pytest.mark.parametrize(
    "store", [pytest.param(store, marks=BRACKETS if "delta" in store else ()) for store in PUBLISHED + EQUAL]
)
def test_a_store_works_below_a_hidden_folder_of_unusual_characters(store, tmp_path):
    folder = tmp_path / ".lab" / "_it's [a] store, 100%"
    folder.mkdir(parents=True)
    with made(store, folder, integers(7)) as handle:
        assert np.array_equal(fetch(store, handle, "read"), in_order(matrix(integers(7))))
        assert len(fetch(store, handle, "query")) == 0


@pytest.mark.parametrize("store", ["stores_published.pyarrow", "stores_published.parquetdb", "stores_equal.parquetdb"])
def test_the_numbers_that_a_store_gives_its_rows_are_their_places(store, tmp_path):
    with made(store, tmp_path, integers(1_000)) as handle:
        table = operation(store, "read").function(handle).sort_by("id")
    assert table["id"].to_pylist() == list(range(1_000))
    assert np.array_equal(matrix(table), matrix(integers(1_000)))


_READ_ELSEWHERE = """
import json, sys
from harness import registry

def facts(rows):
    return [len(rows), sum(row[97] for row in rows) if type(rows) is list else sum(rows["col97"].to_pylist())]

found = {}
for store, folder in json.load(sys.stdin).items():
    read, query = (registry.one(f"{store}.{name}").function for name in ("read", "query"))
    with registry.connect_of(registry.one(f"{store}.read"))(folder) as handle:
        found[store] = facts(read(handle)) + facts(query(handle))
json.dump(found, open(sys.argv[1], "w"))
"""


@pytest.mark.long
def test_another_process_sees_every_store(tmp_path):
    folders = {store: str(tmp_path / store) for store in PUBLISHED + EQUAL}
    for store, folder in folders.items():
        Path(folder).mkdir()
        with made(store, folder, integers(1_000)):
            pass
    command = [sys.executable, "-c", _READ_ELSEWHERE, str(tmp_path / "found.json")]
    subprocess.run(command, input=json.dumps(folders), text=True, check=True, timeout=120, env=os.environ | ELSEWHERE)
    rows = matrix(integers(1_000))
    expected = [len(rows), rows[:, 97].sum(), len(passing(rows)), passing(rows)[:, 97].sum()]
    assert json.loads((tmp_path / "found.json").read_text()) == dict.fromkeys(folders, expected)


@pytest.mark.parametrize("store", EQUAL)
def test_every_file_is_flushed_to_disk_as_it_is_in_the_end_before_create_returns(store, tmp_path, monkeypatch):
    flushed = {}
    fsync = os.fsync

    def watched(descriptor):
        facts = os.fstat(descriptor)
        flushed[facts.st_ino] = (facts.st_size, facts.st_mtime_ns)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    with made(store, tmp_path, integers(1_000)):
        left = [tmp_path, *tmp_path.rglob("*")]
        assert {path.stat().st_ino: (path.stat().st_size, path.stat().st_mtime_ns) for path in left} == flushed
    assert sum(path.stat().st_size for path in left if path.is_file()) > 100_000
    assert "fsync" in operation(store, "create").settings["durability"]


def test_the_published_sqlite_works_with_the_settings_it_names(tmp_path):
    entry = operation("stores_published.sqlite", "create")
    with made("stores_published.sqlite", tmp_path, integers(7)) as handle:
        connection = handle[1][0]
        assert connection.execute("PRAGMA synchronous").fetchone() == (0,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("memory",)
        assert (entry.settings["synchronous"], entry.settings["journal_mode"]) == ("OFF", "MEMORY")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_the_equal_sqlite_works_with_the_settings_it_names(tmp_path, monkeypatch):
    seen = []

    class Watched(sqlite3.Connection):
        def close(self):
            seen.extend(self.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode"))
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path: connect(path, factory=Watched))
    with made("stores_equal.sqlite", tmp_path, integers(7)):
        pass
    assert seen == [2, "delete"]  # 2 is FULL
    settings = operation("stores_equal.sqlite", "create").settings
    assert (settings["synchronous"], settings["journal_mode"]) == ("FULL", "DELETE")


def test_only_the_published_parquetdb_is_given_a_pause_of_a_second(tmp_path, pauses):
    for store in PUBLISHED + EQUAL:
        folder = tmp_path / store
        folder.mkdir()
        with made(store, folder, integers(1)):
            assert pauses == ([1] if store == "stores_published.parquetdb" else []), store
        pauses.clear()
