"""Datasets on disk: the same content everywhere, built once, rebuilt when damaged, nothing half-made left behind."""

import dataclasses
import json
import os
import shutil
from collections import namedtuple
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import registry
from harness.check.canonical import load_frame
from harness.check.logical_types import polars_dtype
from harness.datasets import analytics_metrics, integers, manifest, ordered, store
from harness.datasets.ordered import OrderedColumns
from harness.datasets.seeded import CHUNK_ROWS
from harness.datasets.user_data.losses import found_in, ruled_out
from harness.model import Case, Facts, LabError
from harness.systems import SYSTEMS
from tests.commands import one_line
from tests.disks import small_disk

NAME = "analytics_metrics"
BUILD = analytics_metrics.SPECIFICATION.build
HASH_OF_SEED_1 = "b1ec335e9c9160102836589f3d483ecf5ca445d7aa9e753bb4509b6f160e9cbd"
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def built(tmp_path):
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


def test_the_columns_are_those_of_the_frame_sorted_by_its_key(tmp_path):
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(tmp_path, spec.name, 2_500, 3)
    expected = pl.read_parquet(dataset.path).sort(spec.row_key)
    by_key = OrderedColumns(dataset, spec)
    assert by_key.schema == expected.schema
    assert (by_key.height, by_key.columns) == (expected.height, expected.columns)
    assert all(by_key[name].equals(expected[name], check_dtypes=True) for name in expected.columns)


def test_of_a_large_dataset_nothing_but_the_order_is_kept(tmp_path, monkeypatch):
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(tmp_path, spec.name, 2_500, 3)
    small = OrderedColumns(dataset, spec)
    assert small["metric_1"] is small["metric_1"]
    assert small.as_built.equals(pl.read_parquet(dataset.path))
    monkeypatch.setattr(ordered, "_KEPT_ROWS", 2_499)
    large = OrderedColumns(dataset, spec)
    assert large["metric_1"] is not large["metric_1"]
    assert large["metric_1"].equals(small["metric_1"])
    assert large.as_built is None


SHAPES = {name: spec for name, spec in store.specifications().items() if spec.columns}
BYTES_A_ROW = {  # as the modules say
    "narrow_numbers": 40,
    "wide_numbers": 1_336,
    "long_strings": 2_012,
    "repeated_strings": 65,
    "half_nulls": 42,
    "decimals_and_moments": 56,
    "lists": 51,
}


@pytest.mark.long
@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_its_logical_types_the_bytes_it_says_and_the_same_rows_for_the_same_seed(
    name: str, tmp_path: Path
) -> None:
    spec = SHAPES[name]
    one, again = (store.ensure(tmp_path / folder, name, 500, 7) for folder in ("one", "again"))
    another = store.ensure(tmp_path / "one", name, 500, 8)
    assert one.content_hash == again.content_hash != another.content_hash
    frame = load_frame(one.path, "polars", spec.logical_types)
    assert dict(frame.schema) == {column: polars_dtype(logical) for column, logical in spec.logical_types.items()}
    assert frame["id"].to_list() == list(range(500))
    nullable = {column.name for column in spec.columns if column.nullable}
    assert {series.name for series in frame if series.null_count()} == nullable
    of_parquet = Path(one.path).stat().st_size / 500
    assert of_parquet < spec.bytes_a_row * 1.5  # a small file has its footer next to the rows
    arrow = sum(batch.nbytes for batch in spec.build(20_000, 7)) / 20_000
    assert 0.85 < arrow / BYTES_A_ROW[name] < 1.15


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", SHAPES)
def test_every_database_has_a_table_of_every_shape(name: str, system: str) -> None:
    definition = SYSTEMS[system].tables.definition(SHAPES[name], "keyed")
    assert all(column in definition for column in SHAPES[name].logical_types)


def test_the_categories_of_a_shape_have_enum_columns_of_their_labels_in_clickhouse_and_no_other_shape_has() -> None:
    of = SYSTEMS["clickhouse"].tables.definition
    made = of(SHAPES["repeated_strings"], "enum") or ""
    assert "`country` Enum8('country_000' = 1, " in made or "country Enum8('country_000' = 1, " in made
    assert "'campaign_999' = 1000)" in made
    assert "country_text String" in made or "`country_text` String" in made
    assert of(SHAPES["lists"], "enum") is None


def test_every_second_value_is_missing_where_half_of_them_are_to_be(tmp_path: Path) -> None:
    frame = pl.read_parquet(store.ensure(tmp_path, "half_nulls", 2_000, 7).path)
    assert all(0.45 < series.null_count() / 2_000 < 0.55 for series in frame if series.name != "id")


def test_a_long_string_has_2000_bytes(tmp_path: Path) -> None:
    frame = pl.read_parquet(store.ensure(tmp_path, "long_strings", 20, 7).path)
    assert frame["text"].str.len_bytes().unique().to_list() == [2_000]
    assert frame["text"].n_unique() == 20


def test_a_transport_that_loses_a_kind_of_values_of_a_shape_is_ruled_out_of_that_shape_alone(tmp_path: Path) -> None:
    described = {
        name: found_in(store.ensure(tmp_path, name, 100, 7).path, SHAPES[name].logical_types)
        for name in ("lists", "half_nulls", "narrow_numbers")
    }
    loses = registry.one("clickhouse.urllib.read_polars_csv")
    exact = registry.one("clickhouse.http_client.read_polars_tuned")
    cases = [Case(entry, "shapes", name, {"rows": 100}) for entry in (loses, exact) for name in described]
    found = ruled_out(described, cases)
    assert set(found) == {("lists", loses.id), ("half_nulls", loses.id)}
    assert found["lists", loses.id].endswith('(column "readings" and 1 more)')


OF = {"name": "numbers", "version": 1, "scale": 0.5}


def build(folder: Path, of: Facts = OF) -> list[int]:
    """Return the numbers of the files that are made."""
    paths, done, said = [(folder / "files" / f"{number}.bin",) for number in range(3)], list[int](), list[str]()

    def make(number: int) -> None:
        done.append(number)
        with manifest.complete(*paths[number]) as partial:
            partial.write_bytes(bytes([number]) * 1_000)

    known = manifest.ensure(folder, of, paths, make, said.append, lambda: {"answer": 42})
    assert known["answer"] == 42
    assert said == ([f"building {len(done)} of 3 files of numbers in {folder.name}/"] if done else [])
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert build(tmp_path) == [0, 1, 2]
    return tmp_path


def truncate_and_keep_the_time(path: Path) -> None:
    stat = path.stat()
    os.truncate(path, 900)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: os.truncate(path, 900),
        lambda path: path.write_bytes(b""),
        Path.unlink,
        lambda path: path.write_bytes(os.urandom(1_000)),
        lambda path: path.write_bytes(b"\x01" * 500 + b"\x03" + b"\x01" * 499),
        truncate_and_keep_the_time,
    ],
    ids=["truncated", "empty", "gone", "garbage", "one bit", "truncated, with its old time"],
)
def test_a_damaged_file_alone_is_made_again(folder: Path, damage: Callable[[Path], object]) -> None:
    path = folder / "files" / "1.bin"
    damage(path)
    assert build(folder) == [1]
    assert path.read_bytes() == b"\x01" * 1_000
    assert build(folder) == []


def test_a_file_with_another_time_and_the_same_bytes_is_reused_and_gets_its_time_back(folder: Path) -> None:
    path = folder / "files" / "1.bin"
    before = path.stat()
    os.utime(path, ns=(1, 1))
    assert build(folder) == []
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("text", [b"", b'{"of": {', b"\xff\xfe\x00", b"null", b"[]", b"7", b"{}", b'{"digest": ""}'])
def test_a_torn_manifest_is_not_believed(folder: Path, text: bytes) -> None:
    good = (folder / manifest.NAME).read_bytes()
    (folder / manifest.NAME).write_bytes(text)
    assert build(folder) == [0, 1, 2]
    assert json.loads((folder / manifest.NAME).read_bytes()).keys() == json.loads(good).keys()


def test_a_manifest_with_a_missing_or_changed_field_is_not_believed(folder: Path) -> None:
    path = folder / manifest.NAME
    known = json.loads(path.read_text())
    assert known.keys() == {"of", "answer", "files", "digest"}
    for field in known:
        for wrong in ({name: value for name, value in known.items() if name != field}, known | {field: None}):
            path.write_text(json.dumps(wrong))
            assert manifest.read(path, OF) == {}
    path.write_text(json.dumps(known))
    assert manifest.read(path, OF) == {name: value for name, value in known.items() if name != "digest"}


def test_files_of_another_definition_are_made_again(folder: Path) -> None:
    assert build(folder, OF | {"version": 2}) == [0, 1, 2]
    assert build(folder, OF | {"version": 2}) == []


def test_what_a_killed_build_left_is_removed(folder: Path) -> None:
    left = folder / "files" / "7.bin.partial-1"
    left.write_text("half")
    assert build(folder) == []
    assert not left.exists()


@pytest.mark.parametrize("failure", [RuntimeError("the builder broke"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_what_raises_leaves_no_file_behind(tmp_path: Path, failure: BaseException) -> None:
    def fails() -> None:
        with manifest.complete(tmp_path / "a.bin") as partial:
            partial.write_bytes(b"half")
            raise failure

    with pytest.raises(type(failure)):
        fails()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with one_line(rf"cannot build numbers in {tmp_path}/file: "):
        build(tmp_path / "file")
