"""Streams of one process, from Parquet into a table and back: exact on real servers, whatever the values."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.check import sums, unloaded
from harness.datasets import store
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Transport
from harness.transports.clickhouse.clickhouse_connect import without_session as of_clickhouse_connect
from harness.transports.parts import gathered
from harness.transports.postgres.adbc import dbapi as of_adbc
from harness.transports.postgres.psycopg import copy_csv as of_psycopg
from tests.calls import call, each
from tests.streams import LOADS, LOGICAL_TYPES, SPEC, UNLOADS, Server, hostile, opened

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
