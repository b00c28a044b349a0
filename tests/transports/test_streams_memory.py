"""Streams of one process take as much memory for many rows as for few, each in a separate process."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest
from pyarrow import parquet

from harness.check import sums, unloaded
from harness.check.sums import Sums
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.model import Operation, Transport
from harness.systems import SYSTEMS
from tests.streams import LOADS, PROFILES, SPEC, UNLOADS, Server, opened

pytestmark = pytest.mark.long

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


ROWS = 2_000  # of the warm-up
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


@pytest.fixture
def server(entry: Transport, embedded_lab: EmbeddedLab) -> Iterator[Server]:
    with opened(entry.system, embedded_lab) as made:
        yield made


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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "unloaded").mkdir()
    return tmp_path / "unloaded"


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
    uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, server.lab.endpoints[entry.endpoint])
    arguments = []
    for number, size in enumerate((rows, ROWS)):
        if entry.operation is Operation.LOAD:
            arguments += [str(streamed[size]), server.of_dataset(f"streams {number}", PROFILES[entry.system])]
        else:
            (folder / f"{rows} {size}").mkdir()
            arguments += [filled(entry.system, size), str(folder / f"{rows} {size}")]
    patched = json.dumps(SMALLER.get(f"{entry.system}.{entry.client}", {}))
    command = (sys.executable, "-c", MEMORY, entry.id, uri, patched, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    is_load = entry.operation is Operation.LOAD
    found = server.sums("streams 0") if is_load else unloaded.summed(arguments[1], SPEC.logical_types)[0]
    assert sums.differences(expected(streamed[rows]), found) == []
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "entry", [pytest.param(entry, id=f"{entry.id}@{number % 2}") for number, entry in enumerate(LOADS + UNLOADS)]
)
def test_four_times_the_rows_take_no_more_memory(
    entry: Transport, server: Server, filled: Filled, streamed: dict[int, Path], folder: Path
) -> None:
    few, many = (peak(entry, server, filled, rows, streamed, folder) for rows in (FEW, MANY))
    assert many - few < MOST_GROWTH
