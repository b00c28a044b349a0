"""Every way of scanning Parquet counts exactly the rows that DuckDB counts in the table the files were made from."""

import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import duckdb_extensions
import polars as pl
import pyarrow.parquet as pq
import pytest

from harness.model import Transport
from harness.registry import connect_of, select
from harness.settings import ROOT

ENTRIES = select("parquet.*")
COLUMNS = ("l_shipdate", "l_discount", "l_quantity")
KNOWN = f"""
SELECT count(*) FROM (SELECT {", ".join(COLUMNS)} FROM lineitem)
WHERE year(l_shipdate) = 1994 AND l_discount IN (0.05, 0.06, 0.07) AND l_quantity <= 23.99
"""

# Around every bound of the filter: ship date, discount, quantity, and whether such a row passes.
AT_THE_BOUNDS = (
    ("1993-12-31", "0.06", "10.00", False),
    ("1994-01-01", "0.06", "10.00", True),
    ("1994-12-31", "0.06", "10.00", True),
    ("1995-01-01", "0.06", "10.00", False),
    ("1994-06-01", "0.04", "10.00", False),
    ("1994-06-01", "0.05", "10.00", True),
    ("1994-06-01", "0.07", "10.00", True),
    ("1994-06-01", "0.08", "10.00", False),
    ("1994-06-01", "0.06", "23.99", True),
    ("1994-06-01", "0.06", "24.00", False),
    ("1994-06-01", "0.06", "24.01", False),
    (None, "0.06", "10.00", False),
    ("1994-06-01", None, "10.00", False),
    ("1994-06-01", "0.06", None, False),
)

# Run in a separate process: count the bytes that each transport gets through read calls, after a warm-up. Bytes that a
# process takes from a mapped file do not pass through such a call.
BYTES_READ = """
import json, os, sys
from harness.registry import load
from harness.registry import connect_of, one

def bytes_read():
    with open("/proc/self/io") as file:
        return int(file.readline().removeprefix("rchar: "))

warmup, file, *ids = sys.argv[1:]
found = {}
for name in ids:
    entry = one(name)
    for module in entry.requires:
        load(module)
    folder = os.path.join(os.path.dirname(file), f"spill of {name}")
    os.mkdir(folder)
    with connect_of(entry)(folder) as connection:
        entry.function(connection, [warmup])
        before = bytes_read()
        entry.function(connection, [file])
        found[name] = bytes_read() - before
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def lineitem() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with TPC-H at scale factor 0.02: some 120,000 rows of lineitem."""
    with duckdb.connect() as connection:
        duckdb_extensions.import_extension("tpch", con=connection)
        connection.execute("LOAD tpch")
        connection.execute("CALL dbgen(sf=0.02)")
        yield connection


@pytest.fixture(scope="module")
def known(lineitem: duckdb.DuckDBPyConnection) -> int:
    """The rows of the table that pass, counted before there is any Parquet and in other words."""
    count = scalar(lineitem, KNOWN)
    assert 0.015 < count / scalar(lineitem, "SELECT count(*) FROM lineitem") < 0.025
    return count


@pytest.fixture(scope="module", params=ENTRIES, ids=lambda entry: entry.id)
def entry(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """A transport; the fixture removes its changes to the environment after the tests."""
    before = dict(os.environ)
    yield request.param
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    pl.Config.load("{}")


@pytest.fixture(scope="module")
def count(entry: Transport, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., int]]:
    """Count the rows of files with one transport; all calls use one connection, as warm-up and measured call do."""
    folder = tmp_path_factory.mktemp("spill")
    with connect_of(entry)(str(folder)) as connection:
        yield lambda *files: entry.function(connection, [str(file) for file in files])


@pytest.fixture(scope="module")
def whole(lineitem: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file with the whole table, in row groups of 20,000."""
    return write(lineitem, "lineitem", tmp_path_factory.mktemp("whole") / "lineitem.parquet")


def scalar(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def write(connection: duckdb.DuckDBPyConnection, source: str, path: Path, row_group_rows: int = 20_000) -> Path:
    name = str(path).replace("'", "''")
    connection.execute(f"COPY (FROM {source}) TO '{name}' (FORMAT parquet, ROW_GROUP_SIZE {row_group_rows})")
    return path


@pytest.mark.long
def test_one_file_has_the_rows_of_the_table_as_a_python_integer(count, whole, known):
    found = count(whole)
    assert (type(found), found) == (int, known)


@pytest.fixture(scope="module")
def parts(lineitem: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three files that have the table together."""
    folder = tmp_path_factory.mktemp("parts")
    return [
        write(lineitem, f"(FROM lineitem WHERE l_orderkey % 3 = {part})", folder / f"{part}.parquet")
        for part in range(3)
    ]


@pytest.mark.long
def test_several_files_have_the_rows_of_the_table_together(count, parts, known):
    assert all(0 < count(part) < known for part in parts)
    assert count(*parts) == known


def test_a_path_with_a_quote_and_a_space_is_read(count, whole, known, tmp_path):
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    assert count(shutil.copy(whole, folder / 'the line\'s "items".parquet')) == known


@pytest.fixture(scope="module")
def in_small_groups(lineitem: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole table in row groups of 4,096."""
    file = write(lineitem, "lineitem", tmp_path_factory.mktemp("groups") / "lineitem.parquet", row_group_rows=4096)
    assert pq.ParquetFile(file).metadata.num_row_groups >= 29
    return file


def test_small_row_groups_have_the_same_rows(count, in_small_groups, known):
    assert count(in_small_groups) == known


def test_a_file_given_twice_counts_twice(count, whole, known):
    assert count(whole, whole) == 2 * known


@pytest.fixture(scope="module")
def bounds(lineitem: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with row i of those at the bounds 2**i times."""
    rows = ", ".join(
        f"({2**i}, {', '.join('NULL' if value is None else repr(value) for value in row[:3])})"
        for i, row in enumerate(AT_THE_BOUNDS)
    )
    types = zip(COLUMNS, ("DATE", "DECIMAL(15, 2)", "DECIMAL(15, 2)"), strict=True)
    columns = ", ".join(f"CAST({name} AS {sql_type}) AS {name}" for name, sql_type in types)
    source = f"(SELECT {columns} FROM (VALUES {rows}) AS t(times, {', '.join(COLUMNS)}), range(times))"
    return write(lineitem, source, tmp_path_factory.mktemp("bounds") / "bounds.parquet")


def test_the_bounds_of_the_filter_are_those_of_the_query(count, bounds):
    """The bits of the number say which rows passed."""
    found = count(bounds)
    assert [bool(found >> i & 1) for i in range(len(AT_THE_BOUNDS))] == [passes for *_, passes in AT_THE_BOUNDS]
    assert found < 2 ** len(AT_THE_BOUNDS)


def test_a_file_without_rows_adds_none(count, lineitem, whole, known, tmp_path):
    empty = write(lineitem, "(FROM lineitem LIMIT 0)", tmp_path / "empty.parquet")
    assert count(empty) == 0
    assert count(empty, whole, empty) == known


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_file_among_whole_ones_is_an_error(count, whole, tmp_path, share):
    truncated = tmp_path / "truncated.parquet"
    content = whole.read_bytes()
    truncated.write_bytes(content[: int(len(content) * share)])
    for files in [(truncated,), (whole, truncated), (truncated, whole)]:
        with pytest.raises(Exception, match=r"(?i)parquet|No field named"):
            count(*files)


def test_a_file_with_damaged_pages_is_an_error(count, whole, tmp_path):
    content = bytearray(whole.read_bytes())
    chunk = pq.ParquetFile(whole).metadata.row_group(2).column(10)
    assert chunk.path_in_schema == "l_shipdate"
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(content)
    with pytest.raises(Exception, match=r"(?i)invalid|required field"):
        count(damaged)


def test_a_missing_file_among_whole_ones_is_an_error(count, whole, tmp_path):
    with pytest.raises(Exception, match="nowhere"):
        count(whole, tmp_path / "nowhere.parquet")


def test_only_the_memory_limited_way_limits_the_memory_of_duckdb(whole, known, tmp_path):
    (limited,) = select("parquet.duckdb.scan_memory_limit")
    (default,) = select("parquet.duckdb.scan")
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(connect_of(limited)(str(tmp_path))) for _ in range(2))
        assert default.function(first, [str(whole)]) == limited.function(second, [str(whole)]) == known
        limits = [scalar(connection, "SELECT current_setting('memory_limit')") for connection in (first, second)]
        assert limits[1] == "61.0 MiB" != limits[0]
        assert scalar(first, "SELECT current_setting('temp_directory')") == str(tmp_path)


@pytest.fixture(scope="module")
def read(
    lineitem: duckdb.DuckDBPyConnection, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, float]:
    """The bytes each transport reads of a file of 40 MB in a fresh process, in multiples of the three columns' bytes.

    The forced way comes last: it has to take effect in a process that imported polars, and scanned with it, before.
    """
    ten_times = f"({' UNION ALL '.join(['FROM lineitem'] * 10)})"
    file = write(lineitem, ten_times, tmp_path_factory.mktemp("read") / "lineitem.parquet", row_group_rows=300_000)
    metadata = pq.ParquetFile(file).metadata
    chunks = [metadata.row_group(g).column(c) for g in range(metadata.num_row_groups) for c in range(16)]
    needed = sum(chunk.total_compressed_size for chunk in chunks if chunk.path_in_schema in COLUMNS)
    ids = sorted((entry.id for entry in ENTRIES), key=lambda name: "forced" in name)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLARS_")}
    done = subprocess.run(
        [sys.executable, "-c", BYTES_READ, str(whole), str(file), *ids],
        cwd=elsewhere,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert list(elsewhere.iterdir()) == []  # an engine writes only into its folder
    return {name: found / needed for name, found in json.loads(done.stdout).items()}


MAPPED = ("parquet.chdb.scan", "parquet.pyarrow.scan_dataset_memory_map")
# How many bytes transports read, in multiples of those of the three columns; 1.0 to 1.2 by default. One that maps files
# hardly reads any. Polars obeys force_async though it was imported before: the reader for object stores merges ranges
# and so reads columns in between, the default reader does not.
READ = dict.fromkeys((entry.id for entry in ENTRIES), (1.0, 1.2))
READ |= dict.fromkeys(MAPPED, (0.0, 0.2)) | {"parquet.polars.scan": (1.0, 1.05)}
READ |= {"parquet.polars.scan_forced_async": (1.2501, math.inf)}


@pytest.mark.long
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts read bytes in /proc/self/io on Linux only")
@pytest.mark.parametrize("name", sorted(READ))
def test_a_way_reads_the_three_columns_and_little_else_unless_it_maps_files_or_merges_ranges(read, name):
    least, most = READ[name]
    assert least <= read[name] < most
