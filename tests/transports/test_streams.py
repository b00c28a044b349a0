"""Streams of one process, from Parquet into a table and back: exact whatever the values, in memory for few rows."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.check import sums, unloaded
from harness.check.sums import Sums
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Operation, Transport
from harness.transports.clickhouse.clickhouse_connect import without_session as of_clickhouse_connect
from harness.transports.parts import gathered
from harness.transports.postgres.adbc import dbapi as of_adbc
from harness.transports.postgres.psycopg import copy_csv as of_psycopg
from tests.calls import call, each, uri_of
from tests.streams import LOADS, LOGICAL_TYPES, PROFILES, SPEC, UNLOADS, Server, hostile, opened

ROWS = 2_000
LATE = "SELECT number AS id, throwIf(number = 20000, 'broke late') AS t FROM numbers(30000)"


@pytest.fixture
def server(entry: Transport, embedded_lab: EmbeddedLab) -> Iterator[Server]:
    with opened(entry.system, embedded_lab) as made:
        yield made


@pytest.fixture
def source(dataset_folder: Path) -> Path:
    return Path(store.ensure(dataset_folder, "analytics_metrics", ROWS, 7).path)


@pytest.fixture
def hostile_source(tmp_path: Path) -> Path:
    parquet.write_table(hostile(), tmp_path / "hostile.parquet", row_group_size=150)
    return tmp_path / "hostile.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unloaded").mkdir()
    return tmp_path / "unloaded"


@pytest.fixture
def _in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make of few rows as many pieces as of many."""
    monkeypatch.setattr(of_clickhouse_connect, "INSERT_ROWS", 700)
    monkeypatch.setattr(of_clickhouse_connect, "GROUP_ROWS", 100)
    monkeypatch.setattr(of_adbc, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(of_psycopg, "CHUNK_ROWS", 150)
    monkeypatch.setattr(of_psycopg, "PARSED_BYTES", 10_000)


@pytest.mark.long
@each(LOADS)
@pytest.mark.usefixtures("_in_pieces")
def test_nulls_and_hostile_values_are_loaded_exact(entry: Transport, server: Server, hostile_source: Path) -> None:
    table = server.of_hostile()
    call(entry, server.lab, str(hostile_source), table)
    assert sums.differences(sums.of_table(hostile(), LOGICAL_TYPES), server.sums(table, LOGICAL_TYPES)) == []


@pytest.mark.long
@each(UNLOADS)
@pytest.mark.usefixtures("_in_pieces")
def test_nulls_and_hostile_values_are_unloaded_exact(
    entry: Transport, server: Server, hostile_source: Path, folder: Path
) -> None:
    table = server.of_hostile()
    server.fill(table, hostile_source)
    assert sums.differences(sums.of_table(hostile(), LOGICAL_TYPES), server.sums(table, LOGICAL_TYPES)) == []
    call(entry, server.lab, table, str(folder))
    assert sums.differences(sums.of_table(hostile(), LOGICAL_TYPES), unloaded.summed(folder, LOGICAL_TYPES)[0]) == []


@pytest.mark.long
@each(UNLOADS)
def test_of_an_empty_table_there_is_no_file_or_an_empty_one(entry: Transport, server: Server, folder: Path) -> None:
    call(entry, server.lab, server.of_dataset(), str(folder))
    assert unloaded.summed(folder, SPEC.logical_types)[0].rows == 0


@pytest.mark.long
@each(LOADS)
def test_an_empty_file_is_no_row(entry: Transport, server: Server, source: Path, tmp_path: Path) -> None:
    parquet.write_table(parquet.read_schema(source).empty_table(), tmp_path / "empty.parquet")
    table = server.of_dataset()
    call(entry, server.lab, str(tmp_path / "empty.parquet"), table)
    assert server.sums(table).rows == 0


@pytest.mark.long
@each([entry for entry in LOADS if entry.system == "postgres"])
def test_a_row_that_postgres_refuses_at_the_end_leaves_none(entry: Transport, server: Server, source: Path) -> None:
    table = server.of_dataset(profile="heap")
    last = parquet.read_table(source)["entity_key"][-1].as_py()
    with server.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE \"{table}\" ADD CHECK (entity_key <> '{last}')")
    server.connection.commit()
    with pytest.raises(Exception, match="violates check constraint"):
        call(entry, server.lab, str(source), table)
    assert server.sums(table).rows == 0


@each([entry for entry in LOADS if entry.system == "clickhouse"])
def test_a_row_that_clickhouse_refuses_is_an_error(entry: Transport, server: Server, source: Path) -> None:
    table = server.of_dataset()
    server.connection.command(f"ALTER TABLE {namespace()}.`{table}` ADD CONSTRAINT few CHECK source_id < 400")
    with pytest.raises(Exception, match="VIOLATED_CONSTRAINT"):
        call(entry, server.lab, str(source), table)


@each([entry for entry in UNLOADS if entry.system == "clickhouse"])
def test_an_answer_that_breaks_off_late_is_an_error_and_leaves_no_whole_file(
    entry: Transport, server: Server, folder: Path
) -> None:
    server.connection.command(f"CREATE VIEW {namespace()}.breaks AS {LATE} SETTINGS max_block_size = 500")
    try:
        with pytest.raises(Exception, match="broke late"):
            call(entry, server.lab, "breaks", str(folder))
    finally:
        server.connection.command(f"DROP VIEW {namespace()}.breaks SYNC")
    for file in unloaded.files_in(folder):
        with pytest.raises(pa.ArrowInvalid):
            parquet.read_metadata(file)


def test_batches_are_gathered_until_they_have_as_many_rows() -> None:
    def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
        for size in sizes:
            yield pa.record_batch({"x": list(range(size))})

    def rows(*sizes: int) -> list[list[int]]:
        return [[batch.num_rows for batch in some] for some in gathered(batches(*sizes), 10)]

    assert rows(4, 4, 4, 10, 3, 0) == [[4, 4, 4], [10], [3, 0]]
    assert rows(10, 11) == [[10], [11]]
    assert rows() == []


MEMORY = """
import json, sys, threading, time
from harness import registry
from harness.registry import load
from harness.worker.measure import read_memory
name, uri, patched, *arguments = sys.argv[1:]
entry = registry.one(name)
for module in entry.requires:
    load(module)
for constant, value in json.loads(patched).items():
    setattr(sys.modules[entry.function.__module__], constant, value)
with registry.connect_of(entry)(uri) as connection:
    entry.function(connection, *arguments[2:])
    before, samples, ended = read_memory().rss, [], threading.Event()
    def sample():
        while not ended.wait(0.01):
            samples.append(read_memory().rss)
    thread = threading.Thread(target=sample)
    thread.start()
    entry.function(connection, *arguments[:2])
    ended.set()
    thread.join()
print(max(samples) - before)
"""

# Constants of modules whose memory reaches its height only behind more rows than these.
SMALLER = {
    "clickhouse.clickhouse_connect": {"INSERT_ROWS": 100_000},
    "clickhouse.chdb": {
        "LOAD_SETTINGS": {
            "storage_file_read_method": "pread",
            "input_format_parquet_memory_high_watermark": "4000000",
            "min_insert_block_size_bytes": "4000000",
        },
        "UNLOAD_SETTINGS": {"output_format_parquet_row_group_size": "20000"},
    },
}
FEW, MANY = 300_000, 1_200_000
MOST_GROWTH = 80 << 20  # half of the memory of the rows by which they differ


Filled = Callable[[str, int], str]


@pytest.fixture(scope="module")
def filled(embedded_lab: EmbeddedLab, dataset_folder: Path) -> Iterator[Filled]:
    """The name of a table of a system that has so many rows, filled once for all that unload it."""
    with ExitStack() as stack:
        servers: dict[str, Server] = {}

        @cache
        def table(system: str, rows: int) -> str:
            server = servers[system] = servers.get(system) or stack.enter_context(opened(system, embedded_lab))
            made = server.of_dataset(f"unloaded {rows}", PROFILES[system])
            server.fill(made, streamed_file(dataset_folder, rows))
            return made

        yield table


def streamed_file(folder: Path, rows: int) -> Path:
    """Return a dataset in row groups of 20,000 rows, of which some readers hold several."""
    made = folder / f"streams-{rows}.parquet"
    if not made.exists():
        built = parquet.ParquetFile(store.ensure(folder, SPEC.name, rows, 7).path)
        with parquet.ParquetWriter(made, built.schema_arrow) as writer:
            for batch in built.iter_batches(20_000):
                writer.write_batch(batch)
    return made


@pytest.fixture
def streamed(dataset_folder: Path) -> dict[int, Path]:
    return {rows: streamed_file(dataset_folder, rows) for rows in (ROWS, FEW, MANY)}


@cache
def expected(file: Path) -> Sums:
    return sums.of_parquet(file, SPEC.logical_types)


def peak(entry: Transport, server: Server, filled: Filled, rows: int, streamed: dict[int, Path], folder: Path) -> int:
    """Return by how much a separate process grew while it moved so many rows, after 2,000 as a warm-up."""
    arguments = []
    for number, size in enumerate((rows, ROWS)):
        if entry.operation is Operation.LOAD:
            arguments += [str(streamed[size]), server.of_dataset(f"streams {number}", PROFILES[entry.system])]
        else:
            (folder / f"{rows} {size}").mkdir()
            arguments += [filled(entry.system, size), str(folder / f"{rows} {size}")]
    patched = json.dumps(SMALLER.get(f"{entry.system}.{entry.client}", {}))
    command = (sys.executable, "-c", MEMORY, entry.id, uri_of(entry, server.lab), patched, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    is_load = entry.operation is Operation.LOAD
    found = server.sums("streams 0") if is_load else unloaded.summed(arguments[1], SPEC.logical_types)[0]
    assert sums.differences(expected(streamed[rows]), found) == []
    return int(done.stdout.splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize(
    "entry",
    [pytest.param(entry, id=f"{entry.id}@{number % 2}") for number, entry in enumerate(LOADS + UNLOADS)],
)
def test_four_times_the_rows_take_no_more_memory(
    entry: Transport, server: Server, filled: Filled, streamed: dict[int, Path], folder: Path
) -> None:
    few, many = (peak(entry, server, filled, rows, streamed, folder) for rows in (FEW, MANY))
    assert many - few < MOST_GROWTH
