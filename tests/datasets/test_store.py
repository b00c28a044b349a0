"""Datasets on disk: the same content everywhere, built once, rebuilt when damaged, nothing half-made left behind."""

import dataclasses
import json
import shutil
from collections import namedtuple
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.datasets import analytics_metrics, integers, store
from harness.datasets.seeded import CHUNK_ROWS
from harness.model import LabError
from tests.commands import one_line
from tests.disks import small_disk

NAME = "analytics_metrics"
BUILD = analytics_metrics.SPECIFICATION.build
HASH_OF_SEED_1 = "b1ec335e9c9160102836589f3d483ecf5ca445d7aa9e753bb4509b6f160e9cbd"
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def built(tmp_path):
    """A dataset of 1,000 rows with seed 1 in a new folder."""
    return store.ensure(tmp_path, NAME, 1_000, 1)


@pytest.fixture
def use_specification(monkeypatch):
    """Put another version or builder in the place of the dataset's own."""

    def use(**changes):
        changed = dataclasses.replace(analytics_metrics.SPECIFICATION, **changes)
        monkeypatch.setattr(analytics_metrics, "SPECIFICATION", changed)

    return use


def manifest_of(dataset):
    return Path(dataset.path).with_suffix(".json")


def test_the_hash_of_a_thousand_rows_with_seed_1_is_known(built):
    assert built.content_hash == HASH_OF_SEED_1


@pytest.mark.parametrize(("rows", "seed"), [(1_000, 2), (1_001, 1), (999, 1)])
def test_another_seed_or_size_has_another_hash(built, tmp_path, rows, seed):
    assert store.ensure(tmp_path, NAME, rows, seed).content_hash != built.content_hash


def test_the_content_hash_is_over_values_and_finds_one_changed_value(built):
    batch = next(analytics_metrics.SPECIFICATION.build(1_000, 1))
    index = batch.schema.get_field_index("metric_1")
    values = batch.column(index).to_pylist()
    values[500] ^= 1
    changed = batch.set_column(index, "metric_1", pa.array(values, pa.int32()))
    assert store.content_hash(iter([changed])) != store.content_hash(iter([batch]))


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "none"])
def test_the_hash_does_not_depend_on_parquet_and_its_codec(tmp_path, built, codec):
    path = tmp_path / "again.parquet"
    pq.write_table(pq.read_table(built.path), path, compression=codec)
    again = store.content_hash(pq.ParquetFile(path).iter_batches(CHUNK_ROWS))
    assert again == built.content_hash


def test_the_hash_of_a_slice_is_the_hash_of_its_values():
    batch = next(analytics_metrics.SPECIFICATION.build(1_000, 1))
    whole = pa.Table.from_batches([batch.slice(0, 10), batch.slice(10)]).combine_chunks().to_batches()[0]
    copied = pa.RecordBatch.from_pylist(whole.slice(0, 10).to_pylist(), schema=whole.schema)
    assert store.content_hash(iter([whole.slice(0, 10)])) == store.content_hash(iter([copied]))


def test_rows_over_a_chunk_are_written_and_read_in_order(tmp_path):
    dataset = store.ensure(tmp_path, NAME, CHUNK_ROWS + 7, 1)
    written = pa.Table.from_batches(analytics_metrics.SPECIFICATION.build(CHUNK_ROWS + 7, 1))
    assert pq.read_table(dataset.path).equals(written)


def test_the_manifest_says_what_was_built(built):
    manifest = json.loads(manifest_of(built).read_text())
    version, logical_types = analytics_metrics.SPECIFICATION.version, analytics_metrics.LOGICAL_TYPES
    of = {"name": NAME, "version": version, "rows": 1_000, "seed": 1, "logical_types": logical_types}
    assert manifest["of"] == of
    assert manifest["content_hash"] == built.content_hash


def test_a_dataset_is_built_once_and_reused_unless_it_is_damaged(built, tmp_path):
    before = Path(built.path).stat().st_mtime_ns, manifest_of(built).stat().st_mtime_ns
    assert store.ensure(tmp_path, NAME, 1_000, 1) == built
    assert (Path(built.path).stat().st_mtime_ns, manifest_of(built).stat().st_mtime_ns) == before
    good = Path(built.path).read_bytes()
    Path(built.path).write_bytes(good[:-100])
    assert store.ensure(tmp_path, NAME, 1_000, 1) == built
    assert Path(built.path).read_bytes() == good


def test_a_dataset_of_an_older_generator_is_rebuilt(built, tmp_path, use_specification):
    use_specification(version=analytics_metrics.SPECIFICATION.version + 1, build=lambda rows, _: BUILD(rows, 2))
    rebuilt = store.ensure(tmp_path, NAME, 1_000, 1)
    assert rebuilt.content_hash != built.content_hash
    assert store.ensure(tmp_path, NAME, 1_000, 1) == rebuilt


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - 100_000, 100_000))
    with one_line(r"^\S+: \S+ MB of disk needed, 0\.1 MB free; make room, or ask for fewer rows"):
        store.ensure(tmp_path, NAME, 1_000, 1)
    assert list(tmp_path.iterdir()) == []


def test_the_bound_for_the_disk_is_an_upper_bound_of_what_rows_take(tmp_path):
    dataset = store.ensure(tmp_path, NAME, 10_000, 1)
    assert Path(dataset.path).stat().st_size < 10_000 * analytics_metrics.SPECIFICATION.bytes_a_row


def test_a_disk_that_fills_up_is_one_line_and_leaves_no_partial_file(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, 10**12))
    with small_disk(tmp_path, "1m") as folder:
        with one_line("No space left on device"):
            store.ensure(folder, NAME, 50_000, 1)
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["nothing", "store", "specification", "ordered", "__init__", "../secret", ""])
def test_an_unknown_dataset_is_refused_with_the_names_of_datasets_alone(name):
    with pytest.raises(LabError) as caught:
        store.specification(name)
    assert NAME in str(caught.value)
    assert not any(word in str(caught.value).partition("there are")[2] for word in ("store", "ordered", "__init__"))
    assert one_line(caught)


@pytest.mark.long
@pytest.mark.parametrize("rows", [1, CHUNK_ROWS - 1, CHUNK_ROWS, CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 7])
@pytest.mark.parametrize("dataset", [analytics_metrics, integers], ids=lambda dataset: dataset.SPECIFICATION.name)
def test_any_number_of_rows_is_met_exactly_with_full_chunks_first(dataset, rows):
    heights = [batch.num_rows for batch in dataset.SPECIFICATION.build(rows, 1)]
    assert sum(heights) == rows
    assert all(height == CHUNK_ROWS for height in heights[:-1])


@pytest.mark.parametrize("dataset", [analytics_metrics, integers], ids=lambda dataset: dataset.SPECIFICATION.name)
def test_another_seed_and_another_chunk_have_other_rows_in_every_column(dataset):
    build = dataset.SPECIFICATION.build
    one, other = (pa.Table.from_batches(build(1_000, seed)) for seed in (1, 2))
    assert all(one[name] != other[name] for name in one.column_names)
    chunks = [batch.slice(0, 100) for batch in build(2 * CHUNK_ROWS + 100, 1)]
    assert len(chunks) == 3
    assert not any(first.equals(second) for first, second in pairwise(chunks))
    assert set(dataset.SPECIFICATION.row_key) <= set(dataset.LOGICAL_TYPES)
