"""The table of the tuning suite matches its description, and its answers are known without the measured engine."""

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from harness.datasets import benchmark_input
from harness.datasets.benchmark_input import COL_1, COL_2, jaro_winkler
from harness.model import LabError

ROWS, FILES, SEED = 30_000, 4, 7


def build(folder, rows=ROWS, files=FILES, seed=SEED, say=lambda text: None):
    return benchmark_input.ensure(folder, rows, files, seed, say)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return build(tmp_path_factory.mktemp("datasets"))


@pytest.mark.long
def test_the_rows_lie_in_as_many_files_as_asked_for_of_equal_size(table):
    assert [path.name for path in table.paths] == [f"part-{number:05}.parquet" for number in range(FILES)]
    assert sorted(table.folder.glob("*.parquet")) == table.paths
    assert [pq.read_metadata(path).num_rows for path in table.paths] == [7_500] * 4
    assert sum(path.stat().st_size for path in table.paths) == table.bytes
    assert sum(pq.read_metadata(path).num_rows for path in build(table.folder.parent, 10, 3).paths) == 10


@pytest.mark.long
def test_readers_see_strings_and_numbers(table):
    assert pl.read_parquet_schema(table.paths[0]) == {"col_1": pl.String, "col_2": pl.String, "amount": pl.Int32}


@pytest.mark.long
def test_the_answers_are_those_that_polars_finds(table):
    frame = pl.read_parquet(table.pattern)
    groups = frame.group_by("col_1", "col_2").len().sort(["len", "col_1", "col_2"], descending=[True, False, False])
    assert [list(row) for row in groups.head(10).rows()] == table.answers.top
    assert len(groups) == table.answers.groups > 10_000
    assert frame["amount"].cast(pl.Int64).sum() == table.answers.amount_sum


@pytest.mark.long
def test_equal_groups_are_in_the_order_of_their_names(tmp_path):
    top = build(tmp_path, 12, 1).answers.top
    assert [row[2] for row in top] == [1] * 10
    assert top == sorted(top)


@pytest.mark.long
def test_the_similarities_are_those_of_duckdb_for_every_pair_of_names(table):
    found = jaro_winkler(COL_1[:400], COL_2)
    with duckdb.connect() as connection:
        pairs = (
            "SELECT jaro_winkler_similarity(a, b) FROM (SELECT unnest($left) AS a, generate_subscripts($left, 1) AS i)"
        )
        query = f"{pairs}, (SELECT unnest($right) AS b, generate_subscripts($right, 1) AS j) ORDER BY i, j"
        theirs = connection.execute(query, {"left": COL_1[:400], "right": COL_2}).fetchnumpy()
    np.testing.assert_allclose(found.reshape(-1), next(iter(theirs.values())), rtol=1e-12)
    assert 0.3 < found.mean() < 0.7
    query = "SELECT sum(jaro_winkler_similarity(col_1, col_2)) FROM read_parquet($files)"
    (total,) = duckdb.execute(query, {"files": table.pattern}).fetchone()
    assert table.answers.similarity_sum == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [  # from Winkler's papers; every letter checked by hand
        ("MARTHA", "MARHTA", 0.9611),
        ("DWAYNE", "DUANE", 0.84),
        ("DIXON", "DICKSONX", 0.8133),
        ("CRATE", "TRACE", 0.7333),
        ("ABC", "XYZ", 0.0),
        ("SAME", "SAME", 1.0),
    ],
)
def test_a_similarity_is_the_one_of_the_papers(one, other, similarity):
    assert jaro_winkler([one, "OTHER"], ["ANOTHER", other])[0, 1] == pytest.approx(similarity, abs=5e-5)


@pytest.mark.long
def test_the_same_seed_makes_the_same_rows_and_another_others(table, tmp_path):
    assert pl.read_parquet(build(tmp_path).pattern).equals(pl.read_parquet(table.pattern))
    assert build(tmp_path, seed=8).answers != table.answers


@pytest.mark.long
def test_a_file_longer_than_a_chunk_has_the_rows_of_all_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.datasets.benchmark_input.CHUNK_ROWS", 100)
    table = build(tmp_path, 250, 1)
    frame = pl.read_parquet(table.pattern)
    assert (len(frame), frame["amount"].sum()) == (250, table.answers.amount_sum)
    assert frame["amount"].n_unique() > 200


def test_only_what_is_missing_is_made_again_as_it_was(tmp_path):
    table, said = build(tmp_path), []
    assert benchmark_input.needed_bytes(tmp_path, ROWS, FILES, SEED) == 0
    content = table.paths[2].read_bytes()
    table.paths[2].unlink()
    assert build(tmp_path, say=said.append) == table
    assert table.paths[2].read_bytes() == content
    assert said == [f"building 1 of 4 files of benchmark_input in {table.folder.name}/"]


def test_files_of_another_version_are_made_again(tmp_path, monkeypatch):
    build(tmp_path)
    monkeypatch.setattr(benchmark_input, "VERSION", benchmark_input.VERSION + 1)
    said = []
    build(tmp_path, say=said.append)
    assert said == [f"building 4 of 4 files of benchmark_input in benchmark_input-{ROWS}-{FILES}-{SEED}/"]


@pytest.mark.parametrize(("rows", "files"), [(100, 3), (400_000, 2)])
def test_the_disk_that_is_announced_is_enough(tmp_path, rows, files):
    needed = benchmark_input.needed_bytes(tmp_path, rows, files, SEED)
    table = build(tmp_path, rows, files)
    assert sum(path.stat().st_size for path in table.folder.iterdir()) < needed


def test_more_files_than_rows_are_refused(tmp_path):
    with pytest.raises(LabError, match="3 rows do not fill 4 files; choose at most one file a row"):
        build(tmp_path, 3, 4)
